"""A search by the first bytes of codes: what they choose is scored with all bytes."""

import numpy as np
import pytest

from repconc.codec import score
from repconc.errors import RepconcError
from repconc.indexes import ivf
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


@pytest.mark.parametrize("make", [codecs, additive_codecs])
def test_an_index_of_several_segments_scores_what_the_first_bytes_choose(make, tmp_path, queries, monkeypatch):
    monkeypatch.setattr(ivf, "DEPTH", 20)
    coding, scoring = make()
    build(tmp_path / "index", batches(range(200)), coding=coding, scoring=scoring, lists=6)
    add(tmp_path / "index", batches(range(200, 300)))
    index = ivf.Index(tmp_path / "index")
    for query, hits in zip(queries, index.search(queries, 2, probes=6, first=2), strict=True):
        tables = scoring.tables(query)[0]
        chosen = []
        for numbers in (range(200), range(200, 300)):  # 20 of each segment, and what ties with the last of them
            codes = make_codes(numbers)
            shorter = score(tables[:2], codes[:, :2])
            kept = np.flatnonzero(shorter >= np.sort(shorter)[-20])
            whole = zip(kept.tolist(), score(tables, codes[kept]).tolist(), strict=True)
            chosen += [Hit(f"d{numbers[place]}", value) for place, value in whole]
        assert hits == in_order(chosen)[:2]
    assert index.search(queries, 2, first=4) == index.search(queries, 2), "all of them"


@pytest.mark.parametrize("first", [0, 5, 2.5, -1])
def test_bytes_that_codes_do_not_have_are_refused(index, queries, first):
    with pytest.raises(RepconcError, match=f"^first is {first}; "):
        index.search(queries, 2, first=first)
