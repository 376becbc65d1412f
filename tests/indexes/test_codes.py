"""Exhaustive search over codes against decoded vectors, ties included."""

import numpy as np
import pytest

from repconc import RepconcError
from repconc.codec import Codec, score
from repconc.indexes.codes import CodeIndex
from repconc.indexes.flat import FlatIndex


@pytest.fixture
def index():
    random = np.random.default_rng(0)
    codec = Codec(random.normal(size=(3, 5, 4)).astype("f4"), 11)  # 11 dimensions in 3 blocks of 4: padded
    codes = random.integers(0, 5, size=(300, 3)).astype(np.uint8)  # 125 codes for 300 documents: many ties
    return CodeIndex([f"d{number}" for number in range(300)], codes, codec, codec), codes


def test_it_finds_what_decoded_vectors_find(index):
    index, codes = index
    queries = np.random.default_rng(1).normal(size=(7, 11)).astype("f4")
    flat = FlatIndex(index.ids, [index.codec.decode(codes)[:, :11]])
    for ours, plain in zip(index.search(queries, 40), flat.search(queries, 40), strict=True):
        assert [hit.id for hit in ours] == [hit.id for hit in plain]
        assert np.allclose([hit.score for hit in ours], [hit.score for hit in plain], atol=1e-5)


def test_a_score_is_the_sum_of_table_entries_in_order(index):
    index, codes = index
    query = np.random.default_rng(2).normal(size=11).astype("f4")
    expected = score(index.codec.tables(query)[0], codes)
    hits = index.search(query, 300)[0]
    assert {hit.id: hit.score for hit in hits} == {f"d{n}": float(value) for n, value in enumerate(expected)}
    keys = [(hit.score, hit.id) for hit in hits]
    assert keys == sorted(keys, reverse=True)


def test_alone_or_in_a_batch(index):
    index, _ = index
    queries = np.random.default_rng(3).normal(size=(9, 11)).astype("f4")
    assert index.search(queries, 20) == [index.search(query, 20)[0] for query in queries]


def test_bad_input(index):
    index, codes = index
    with pytest.raises(RepconcError, match="dimensions"):
        index.search(np.ones(7))
    with pytest.raises(RepconcError, match="NaN"):
        index.search(np.full(11, np.nan))
    with pytest.raises(RepconcError, match="k is 0"):
        index.search(np.ones(11), 0)
    with pytest.raises(RepconcError, match="1 ids for 300"):
        CodeIndex(["a"], codes, index.codec, index.codec)
