"""Exhaustive search against the plainest possible one, ties included."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repconc.errors import RepconcError
from repconc.indexes import flat
from repconc.indexes.flat import FlatIndex
from repconc.indexes.top import best


@given(
    st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0, -np.inf]), min_size=1, max_size=40),
    st.integers(1, 50),
    st.randoms(use_true_random=False),
)
def test_best_is_the_head_of_a_full_sort(scores, k, random):
    ids = [str(number) for number in range(len(scores))]
    random.shuffle(ids)
    hits = best(np.array(scores, np.float32), ids, k)
    everything = sorted(((s, id) for s, id in zip(scores, ids, strict=True) if s > -np.inf), reverse=True)
    assert [(hit.score, hit.id) for hit in hits] == everything[:k]


@pytest.fixture
def index():
    vectors = np.random.default_rng(1).integers(-2, 3, size=(100, 4)).astype(np.float32)  # few values: many ties
    return FlatIndex([f"d{number}" for number in range(100)], [vectors[:30], vectors[30:]])


def test_search_agrees_with_a_full_sort_over_all_documents(index):
    queries = np.random.default_rng(2).integers(-2, 3, size=(9, 4)).astype(np.float32)
    for k in (1, 10, 100, 1000):
        for query, hits in zip(queries, index.search(queries, k), strict=True):
            scores = np.concatenate(index.blocks) @ query
            expected = sorted(zip(scores.tolist(), index.ids, strict=True), reverse=True)[:k]
            assert [(hit.score, hit.id) for hit in hits] == expected


def test_a_batch_that_does_not_fit_is_cut_without_changing_results(index, monkeypatch):
    queries = np.random.default_rng(3).normal(size=(7, 4))
    whole = index.search(queries, 5)
    monkeypatch.setattr(flat, "SCORES_IN_MEMORY", 200)
    cut = index.search(queries, 5)
    assert [[hit.id for hit in hits] for hits in cut] == [[hit.id for hit in hits] for hits in whole]
    assert len(index.search(queries[0], 3, threads=1)[0]) == 3


@pytest.mark.parametrize(
    ("queries", "k", "sentence"),
    [
        (np.ones(3), 1, "3 dimensions and the index 4"),
        (np.array([1, 2, np.nan, 3]), 1, "NaN or an infinite value"),
        (np.ones(4), 0, "k is 0"),
    ],
)
def test_a_wrong_query_is_one_sentence(index, queries, k, sentence):
    with pytest.raises(RepconcError, match=sentence):
        index.search(queries, k)


def test_ids_and_vectors_must_agree():
    with pytest.raises(RepconcError, match="1 ids for 2 vectors"):
        FlatIndex(["a"], [np.ones((2, 3), np.float32)])
    with pytest.raises(RepconcError, match="no vectors to search"):
        FlatIndex([], [])


def test_equal_vectors_tie_and_a_query_finds_the_same_alone_or_in_a_batch():
    """A matrix product rounds by position and batch shape; results must not."""
    generator = np.random.default_rng(5)
    vectors = generator.normal(size=(997, 96)).astype(np.float32)
    vectors[[3, 500, 501, 996]] = vectors[7]
    index = FlatIndex([f"d{number:03d}" for number in range(997)], [vectors[:640], vectors[640:]])
    queries = generator.normal(size=(33, 96)).astype(np.float32)
    queries[0] = vectors[7]
    together = index.search(queries, 50)
    assert [hit.id for hit in together[0][:5]] == ["d996", "d501", "d500", "d007", "d003"]
    assert len({hit.score for hit in together[0][:5]}) == 1
    assert [index.search(query, 50)[0] for query in queries] == together


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_vectors_that_are_not_finite_are_refused(value):
    with pytest.raises(RepconcError, match="NaN or an infinite value"):
        FlatIndex(["a", "b"], [np.array([[1, 2], [value, 0]], np.float32)])
