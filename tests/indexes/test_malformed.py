"""Arrays that do not fit together never reach the native code: they are refused with a Python error."""

import numpy as np
import pytest

from repconc.kernel import kernel
from tests.indexes.test_lists import unaligned

pytestmark = pytest.mark.skipif(kernel() is None, reason="the native kernel was not built")


@pytest.mark.parametrize(
    "changes",
    [
        {"content": np.zeros(7, np.uint8)},
        {"content": np.zeros((2, 6), np.uint8)},
        {"content": np.zeros(12, np.int8)},
        {"content": np.zeros(24, np.uint8)[::2]},
        {"tables": np.zeros((1, 3, 256), np.float64)},
        {"tables": np.zeros((1, 0, 256), np.float32)},
        {"tables": np.full((1, 3, 256), np.nan, np.float32)},
        {"tables": np.zeros((1, 3, 255), np.float32)},
        {"tables": np.zeros((2, 3, 256), np.float32)},
        {"starts": np.array([[1]])},
        {"starts": np.array([[-1]]), "stops": np.array([[1]])},
        {"stops": np.array([[5]])},
        {"stops": np.array([[1, 2]])},
        {"starts": unaligned((1, 1), np.int64)},
        {"k": 0},
        {"k": -1},
        {"allowed": np.zeros(0, np.uint8)},
        {"gains": np.zeros(0, np.float32)},
        {"gains": np.ones(2, np.float32)},
        {"gains": np.ones(2, np.float32), "starts": np.array([[0, 3]]), "stops": np.array([[2, 4]])},
        {"gains": np.ones(2, np.float32), "starts": np.array([[0, 3]]), "stops": np.array([[3, 2]])},
        {"gains": np.ones(257, np.float32), "starts": np.zeros((1, 257), int), "stops": np.zeros((1, 257), int)},
        {"gains": np.zeros(1, np.float32)},
        {"gains": np.full(1, np.nan, np.float32)},
        {"gains": np.full(1, np.inf, np.float32)},
        {"gains": np.ones(1)},
        {"first": 0},
        {"first": 4},
        {"depth": -1},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_malformed_scans_are_refused(changes):
    good = {
        "content": np.zeros(12, np.uint8),
        "tables": np.zeros((1, 3, 256), np.float32),
        "starts": np.array([[0]]),
        "stops": np.array([[4]]),
        "k": 2,
        "allowed": None,
        "threads": 1,
        "gains": np.ones(1, np.float32),
        "first": 2,
        "depth": 3,
    }
    assert len(kernel().scan(*good.values())[1]) == 4
    bad = good | ({"stops": np.array([[0]])} if list(changes) == ["starts"] else {}) | changes
    with pytest.raises((TypeError, ValueError, OverflowError)):
        kernel().scan(*bad.values())


@pytest.mark.parametrize(
    "changes",
    [
        {"codewords": np.zeros((2, 128), np.int8)},
        {"codewords": np.zeros((2, 3, 127), np.int8)},
        {"codewords": np.zeros((2, 3, 256), np.int8)},
        {"codewords": np.zeros((2, 3, 128), np.uint8)},
        {"codewords": np.zeros((2, 3, 256), np.int8)[..., ::2]},
        {"codewords": np.zeros((2, 4, 128), np.int8)},
        {"codewords": np.zeros((3, 3, 128), np.int8)},
        {"scales": np.ones((2, 4), np.float32)},
        {"scales": np.ones((2, 3))},
        {"scales": unaligned((2, 3), np.float32)},
        {"queries": np.zeros((1, 129), np.float32)},
        {"queries": np.zeros((1, 0), np.float32)},
        {"queries": np.zeros((1, 6))},
        {"queries": unaligned((1, 6), np.float32)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_malformed_additive_tables_are_refused(changes):
    good = {
        "codewords": np.ones((2, 3, 128), np.int8),
        "scales": np.ones((2, 3), np.float32),
        "queries": np.ones((1, 5), np.float32),
    }
    np.testing.assert_allclose(kernel().additive_tables(*good.values()), np.full((1, 2, 3), 5))
    with pytest.raises((TypeError, ValueError)):
        kernel().additive_tables(*(good | changes).values())
