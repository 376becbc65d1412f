"""What every index does with queries before it searches: look at them, and cut a batch into groups."""

from collections.abc import Iterator

import numpy as np

from repconc.codec import Codec
from repconc.errors import RepconcError

QUERIES_AT_A_TIME = 64
"""Their tables are in memory together, and codes that several of them read are read once."""


def read_queries(queries: np.ndarray, dimension: int) -> np.ndarray:
    """One vector [D] or several [B, D] -> [B, D] float32."""
    vectors = np.require(queries, dtype=np.float32, requirements="A")
    vectors = vectors[None] if vectors.ndim == 1 else vectors
    if vectors.ndim != 2:
        raise RepconcError("Give one query vector, or a matrix with one in each row.")
    if vectors.shape[1] != dimension:
        raise RepconcError(
            f"The queries have {vectors.shape[1]} dimensions and the index {dimension}: "
            "they must come from the index's own model."
        )
    if not np.isfinite(vectors).all():
        raise RepconcError("A query vector holds NaN or an infinite value.")
    return vectors


def whole_number(name: str, value: int) -> int:
    """Refuse what cannot count anything."""
    if not isinstance(value, int | np.integer) or value < 1:
        raise RepconcError(f"{name} is {value}; it must be a whole number of at least one.")
    return int(value)


def in_groups(vectors: np.ndarray, codec: Codec) -> Iterator[np.ndarray]:
    """[B, D] -> [b, width] at a time, transformed; a query is the same alone and in a batch."""
    for start in range(0, len(vectors), QUERIES_AT_A_TIME):
        group = vectors[start : start + QUERIES_AT_A_TIME]
        if codec.map is None:
            yield codec.transform(group)
        else:  # one by one: a mapped batch rounds differently
            yield np.concatenate([codec.transform(vector) for vector in group])
