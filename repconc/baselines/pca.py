"""Truncation: the strongest principal directions, one byte each; what Matryoshka models train for, done afterwards."""

from collections.abc import Sequence

import numpy as np

from repconc.baselines import int8
from repconc.baselines.method import Coder, Compressed, Searchable
from repconc.records import Hit

NAME = "PCA + int8"


class _Cut:
    def __init__(self, inner: Searchable, directions: np.ndarray) -> None:
        self._inner, self._directions = inner, directions

    def search(self, queries: np.ndarray, k: int = 10) -> list[list[Hit]]:
        return self._inner.search(queries @ self._directions, k)


def fit(documents: np.ndarray, bytes: int, seed: int) -> Coder:
    _, vectors = np.linalg.eigh((documents.T @ documents).astype(np.float64))  # of inner products: not centred
    directions = np.ascontiguousarray(vectors[:, ::-1][:, :bytes], np.float32)  # [D, bytes]
    cut = int8.fit(documents @ directions, bytes, seed)

    def code(ids: Sequence[str], whole: np.ndarray) -> Compressed:
        inner = cut(ids, whole @ directions)
        return Compressed(_Cut(inner.index, directions), inner.bytes, inner.shared + directions.nbytes)

    return code
