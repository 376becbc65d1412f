"""ScaNN (Guo et al., 2020): product codes of four bits whose loss weighs the error along the document more.

By the scann package, its hashing alone: every document is scored, no vector is kept to sort the best again.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from repconc.baselines.method import Coder, Compressed, Numbered
from repconc.errors import RepconcError, import_extra

NAME = "ScaNN"
THRESHOLD = 0.2
"""From which similarity on errors along the document count more: the value of its documentation."""
DEEPEST = 1000
CODEWORDS = 16
"""A block: four bits."""


def fit(documents: np.ndarray, bytes: int, seed: int) -> Coder:
    """It learns while it codes, from a sample of what it codes."""
    D = documents.shape[1]
    if D % (2 * bytes):
        raise RepconcError(f"ScaNN cuts vectors into equal parts: {D} dimensions do not make {2 * bytes} parts.")
    scann = import_extra("scann", extra="scann")

    def code(ids: Sequence[str], vectors: np.ndarray) -> Compressed:
        builder = scann.scann_ops_pybind.builder(vectors, min(DEEPEST, len(vectors)), "dot_product")
        searcher = builder.score_ah(D // (2 * bytes), anisotropic_quantization_threshold=THRESHOLD).build()

        def places(queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
            numbers, scores = searcher.search_batched(queries, final_num_neighbors=k)
            return np.asarray(scores), np.asarray(numbers).astype(np.int64)

        return Compressed(Numbered(ids, places), bytes, _shared(searcher, bytes * len(vectors)))

    return code


def _shared(searcher: Any, codes: int) -> int:
    """What it would write to disk beside codes and vectors. Four bits take a byte there, and half of it in memory."""
    with tempfile.TemporaryDirectory() as folder:
        searcher.serialize(folder)
        written = sum(path.stat().st_size for path in Path(folder).iterdir() if path.name != "dataset.npy")
    return max(0, written - 2 * codes)
