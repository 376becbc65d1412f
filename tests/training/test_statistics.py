"""Statistics of codes against counting by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from repconc.training.statistics import twins_of, use_of


def test_uniform_use_has_entropy_one():
    codes = np.stack([np.arange(256), np.random.default_rng(0).permutation(256)], axis=1).astype(np.uint8)
    use = use_of(codes, 256)
    assert use == {"entropy": pytest.approx(1), "largest": pytest.approx(1), "unused": 0}


def test_one_codeword_for_all():
    use = use_of(np.zeros((50, 3), np.uint8), 4)
    assert use == {"entropy": pytest.approx(0), "largest": 4, "unused": 0.75}


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=30))
def test_collisions_and_twins_by_counting_pairs(rows):
    codes = np.array(rows, np.uint8)
    same = [[i != j and rows[i] == rows[j] for j in range(len(rows))] for i in range(len(rows))]
    measured = twins_of(codes)
    assert measured["collision"] == pytest.approx(np.sum(same) / (len(rows) * (len(rows) - 1)))
    assert measured["twins"] == pytest.approx(np.mean([any(row) for row in same]))
