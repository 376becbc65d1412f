"""Batches are a pure function of seed and step, and hold what they promise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repconc import RepconcError
from repconc.training.examples import Batches, Examples, piece_of


def examples_of(relevant, labelled):
    """Only what batches look at."""
    return Examples([], None, None, [np.array(known, np.int64) for known in relevant], labelled, None)


@given(
    queries=st.integers(1, 40),
    extra=st.integers(0, 30),
    ratio=st.sampled_from([0.0, 0.5, 2.0]),
    size=st.integers(1, 70),
    seed=st.integers(0, 9),
    hard=st.integers(0, 3),
)
def test_an_epoch_sees_every_pair_once(queries, extra, ratio, size, seed, hard):
    relevant = [[n, n + 100] if n % 3 == 0 else [n] for n in range(queries)] + [[200 + n] for n in range(extra)]
    examples = examples_of(relevant, queries)
    negatives = np.full((queries + extra, 4), -1)
    negatives[:queries] = 1000 + np.arange(4 * queries).reshape(queries, 4)
    batches = Batches(examples, size, epochs=2, seed=seed, pieces=ratio)
    assert batches.steps == 2 * batches.in_epoch
    epochs = [
        [batches.at(step, negatives, hard) for step in range(start, start + batches.in_epoch)]
        for start in (0, batches.in_epoch)
    ]
    for epoch in epochs:
        seen = [pair for b in epoch for pair in zip(b.queries.tolist(), b.documents.tolist(), strict=False)]
        labelled = [pair for pair in seen if pair[0] < queries]
        assert sorted(labelled) == sorted((n, d) for n in range(queries) for d in relevant[n])
        pieces = [pair for pair in seen if pair[0] >= queries]
        assert len(set(pieces)) == len(pieces) == min(round(ratio * len(labelled)), extra)
        assert all(document == 200 + query - queries for query, document in pieces)
        sizes = [len(batch.queries) for batch in epoch]
        assert max(sizes) <= size and max(sizes) - min(sizes) <= 1, "no small rest at the end"
        assert min(sizes) == batches.smallest
        for batch in epoch:
            chosen = batch.documents[len(batch.queries) :]
            assert len(chosen) == hard * (batch.queries < queries).sum(), "pieces have no hard negatives"
            assert set(chosen) <= set(negatives[batch.queries].ravel())
    again = Batches(examples, size, epochs=2, seed=seed, pieces=ratio).at(0, negatives, hard)
    assert np.array_equal(again.documents, epochs[0][0].documents)


def test_queries_with_few_negatives_take_what_there_is():
    negatives = np.array([[5, 6, -1, -1], [-1, -1, -1, -1]])
    batch = Batches(examples_of([[1], [2]], 2), 2, 1, seed=0).at(0, negatives, hard=2)
    hard = batch.documents[2:]
    assert len(hard) == 2 and set(hard) <= {5, 6}


def test_no_pairs():
    with pytest.raises(RepconcError, match="no pairs"):
        Batches(examples_of([[1]], 0), 8, 1, seed=0)


@given(st.lists(st.text("abc", min_size=1, max_size=3), max_size=40), st.integers(0, 99))
def test_a_piece_is_some_words_in_a_row(words, seed):
    piece = piece_of(" ".join(words), np.random.default_rng(seed)).split()
    assert min(6, len(words)) <= len(piece) <= 19
    assert any(words[start : start + len(piece)] == piece for start in range(len(words) + 1))
