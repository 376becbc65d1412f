"""RaBitQ (Gao and Long, 2024), by faiss: one bit a dimension of randomly turned vectors, and two factors a document.

Its size is fixed by the dimension.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from repconc.baselines.method import Coder, Compressed, Numbered
from repconc.errors import import_extra

NAME = "RaBitQ (faiss)"


def fixed(dimension: int) -> int:
    """Its bytes, whatever is asked for: the bits and two floats."""
    return -(-dimension // 8) + 8


def fit(documents: np.ndarray, bytes: int, seed: int) -> Coder:
    faiss = import_extra("faiss", extra="faiss")
    D = documents.shape[1]
    index: Any = faiss.index_factory(D, "RR,RaBitQ", faiss.METRIC_INNER_PRODUCT)
    index.train(documents)

    def code(ids: Sequence[str], vectors: np.ndarray) -> Compressed:
        index.reset()
        index.add(vectors)
        size = faiss.downcast_index(index.index).code_size
        return Compressed(Numbered(ids, index.search), size, 4 * D * (D + 1))

    return code
