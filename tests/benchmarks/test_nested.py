"""A search by the first bytes of codes: with all bytes, or a shortlist of all documents, it is the whole search."""

import numpy as np
import pytest

from benchmarks.nested import Nested
from repconc.indexes.codes import CodeIndex
from repconc.quantization.residual import train_residual


@pytest.mark.parametrize(("first", "depth"), [(10, 5), (3, 400)])
def test_all_bytes_or_all_documents_lose_nothing(first, depth):
    random = np.random.default_rng(0)
    x, queries = random.normal(size=(400, 12)).astype(np.float32), random.normal(size=(7, 12)).astype(np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    codec = train_residual(x, 10, 16, rounds=1)
    codes, ids = codec.encode(x), [f"d{number:03}" for number in range(400)]
    expected = CodeIndex(ids, codes, codec, codec.with_lengths(codes)).search(queries, 5)
    assert Nested(ids, codes, codec).find(queries, 5, first, depth) == expected
