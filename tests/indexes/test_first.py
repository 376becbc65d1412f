"""A search by the first bytes of codes: what they choose is scored with all bytes."""

from functools import partial

import numpy as np
import pytest

from repconc.codec import score
from repconc.errors import RepconcError
from repconc.indexes import ivf, scan
from repconc.indexes.blocks import to_blocks
from repconc.indexes.codes import CodeIndex
from repconc.indexes.writing import add, build
from repconc.quantization.residual import train_residual
from repconc.records import Hit, in_order
from tests.indexes.conftest import additive_codecs, batches, codecs, make_codes


@pytest.mark.parametrize(("first", "depth"), [(10, 5), (3, 400)])
def test_all_bytes_or_all_documents_lose_nothing(first, depth):
    random = np.random.default_rng(0)
    x, queries = random.normal(size=(400, 12)).astype(np.float32), random.normal(size=(7, 12)).astype(np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    codec = train_residual(x, 10, 16, rounds=1)
    codes, ids = codec.encode(x), [f"d{number:03}" for number in range(400)]
    index = CodeIndex(ids, codes, codec, codec.with_lengths(codes))
    assert index.search(queries, 5, first=first, depth=depth) == index.search(queries, 5)


@pytest.mark.parametrize(("k", "depth"), [(1, 20), (3, 30)])
@pytest.mark.parametrize("make", [codecs, additive_codecs])
def test_an_index_of_several_segments_scores_what_the_first_bytes_choose(
    make, k, depth, tmp_path, queries, monkeypatch
):
    monkeypatch.setattr(scan, "DEPTH", 20)
    coding, scoring = make()
    build(tmp_path / "index", batches(range(200)), coding=coding, scoring=scoring, lists=6)
    add(tmp_path / "index", batches(range(200, 300)))
    index = ivf.Index(tmp_path / "index")
    for query, hits in zip(queries, index.search(queries, k, probes=6, first=2), strict=True):
        tables = scoring.tables(query)[0]
        chosen = []
        for numbers in (range(200), range(200, 300)):  # so many of each segment, and what ties with the last of them
            codes = make_codes(numbers)
            shorter = score(tables[:2], codes[:, :2])
            kept = np.flatnonzero(shorter >= np.sort(shorter)[-depth])
            whole = zip(kept.tolist(), score(tables, codes[kept]).tolist(), strict=True)
            chosen += [Hit(f"d{numbers[place]}", value) for place, value in whole]
        assert hits == in_order(chosen)[:k]
    assert index.search(queries, 2, first=4) == index.search(queries, 2), "all of them"


@pytest.mark.parametrize("first", [0, 5, 2.5, -1])
@pytest.mark.parametrize("native", [True, False])
def test_bytes_that_codes_do_not_have_are_refused(index, queries, first, native, monkeypatch):
    if not native:
        monkeypatch.setattr("repconc.indexes.scan.kernel", lambda: None)
    with pytest.raises(RepconcError, match=f"^first is {first}; "):
        index.search(queries, 2, first=first)


def test_threads_find_the_same():
    """Enough documents that several begin."""
    random = np.random.default_rng(0)
    codes, tables = random.integers(0, 16, (200_000, 4)).astype(np.uint8), random.normal(size=(2, 4, 16))
    lists = np.zeros((2, 1), np.int64)
    ask = partial(scan.scan, to_blocks(codes), tables.astype(np.float32), lists, lists + 200_000, 5, first=2, depth=300)
    for (alone, scores), (together, same) in zip(ask(threads=1), ask(threads=3), strict=True):
        order, other = np.argsort(alone), np.argsort(together)
        np.testing.assert_array_equal(alone[order], together[other])
        np.testing.assert_array_equal(scores[order], same[other])
