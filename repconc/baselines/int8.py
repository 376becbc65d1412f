"""One byte a dimension, as sentence-transformers does it: each dimension's range in 256 steps."""

from collections.abc import Sequence

import numpy as np

from repconc.baselines.method import Coder, Compressed, Numbered, restored_search
from repconc.errors import import_extra

NAME = "int8 (sentence-transformers)"


def fixed(dimension: int) -> int:
    """Its bytes, whatever is asked for."""
    return dimension


def fit(documents: np.ndarray, bytes: int, seed: int) -> Coder:
    quantization = import_extra("sentence_transformers.util.quantization", extra="train")
    low, high = documents.min(axis=0), documents.max(axis=0)
    step = (high - low) / 255

    def restore(codes: np.ndarray) -> np.ndarray:
        """The middle of what a code stands for."""
        restored: np.ndarray = (codes.astype(np.float32) + np.float32(128.5)) * step + low
        return restored

    def code(ids: Sequence[str], vectors: np.ndarray) -> Compressed:
        codes = np.asarray(quantization.quantize_embeddings(vectors.clip(low, high), "int8", np.stack([low, high])))
        return Compressed(Numbered(ids, restored_search(codes, restore)), codes.shape[1], low.nbytes + high.nbytes)

    return code
