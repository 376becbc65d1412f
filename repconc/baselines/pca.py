"""Truncation: the strongest principal directions (Pearson, 1901), one byte each.

What Matryoshka models (Kusupati et al., 2022) train for, done afterwards.
"""

from collections.abc import Sequence

import numpy as np

from repconc.baselines import int8
from repconc.baselines.method import Coder, Compressed, Mapped

NAME = "PCA + int8"


def fit(documents: np.ndarray, bytes: int, seed: int) -> Coder:
    _, vectors = np.linalg.eigh((documents.T @ documents).astype(np.float64))  # of inner products: not centred
    directions = np.ascontiguousarray(vectors[:, ::-1][:, :bytes], np.float32)  # [D, bytes]
    cut = int8.fit(documents @ directions, bytes, seed)

    def code(ids: Sequence[str], whole: np.ndarray) -> Compressed:
        inner = cut(ids, whole @ directions)
        index = Mapped(inner.index, lambda queries: queries @ directions)
        return Compressed(index, inner.bytes, inner.shared + directions.nbytes)

    return code
