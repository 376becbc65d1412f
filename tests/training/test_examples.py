"""Batches are a pure function of seed and step, and hold what they promise."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repconc import RepconcError
from repconc.training.examples import Batches


@given(
    pairs=st.integers(1, 60),
    size=st.integers(1, 70),
    seed=st.integers(0, 9),
    hard=st.integers(0, 3),
    depth=st.integers(1, 5),
)
def test_an_epoch_sees_every_pair_once(pairs, size, seed, hard, depth):
    known = np.stack([np.arange(pairs) % 7, np.arange(pairs)], axis=1)
    negatives = 1000 + np.arange(7 * depth).reshape(7, depth)
    batches = Batches(known, size, epochs=2, seed=seed)
    assert batches.steps == 2 * batches.in_epoch
    epoch = [batches.at(step, negatives, hard) for step in range(batches.in_epoch)]
    seen = np.concatenate([np.stack([b.queries, b.documents[: len(b.queries)]], axis=1) for b in epoch])
    assert sorted(map(tuple, seen.tolist())) == sorted(map(tuple, known.tolist()))
    sizes = [len(batch.queries) for batch in epoch]
    assert max(sizes) <= size and max(sizes) - min(sizes) <= 1, "no small rest at the end"
    for batch in epoch:
        chosen = batch.documents[len(batch.queries) :].reshape(len(batch.queries), -1)
        assert chosen.shape[1] == hard
        assert all(set(row) <= set(negatives[query]) for row, query in zip(chosen, batch.queries, strict=True))
    again = Batches(known, size, epochs=2, seed=seed).at(0, negatives, hard)
    assert np.array_equal(again.documents, epoch[0].documents)


def test_queries_with_few_negatives_take_what_there_is():
    negatives = np.array([[5, 6, -1, -1], [-1, -1, -1, -1]])
    batch = Batches(np.array([[0, 1], [1, 2]]), 2, 1, seed=0).at(0, negatives, hard=2)
    hard = batch.documents[2:]
    assert len(hard) == 2 and set(hard) <= {5, 6}


def test_no_pairs():
    with pytest.raises(RepconcError, match="no pairs"):
        Batches(np.empty((0, 2), np.int64), 8, 1, seed=0)
