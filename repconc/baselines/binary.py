"""Binary vectors of sentence-transformers: the sign of each dimension; its size is fixed by the dimension.

Documents' signs are scored against whole queries, which ranks better than counting equal bits.
"""

from collections.abc import Sequence

import numpy as np

from repconc.baselines.method import Coder, Compressed, Numbered, restored_search
from repconc.errors import import_extra

NAME = "binary (sentence-transformers)"


def fixed(dimension: int) -> int:
    """Its bytes, whatever is asked for."""
    return -(-dimension // 8)


def fit(documents: np.ndarray, bytes: int, seed: int) -> Coder:
    quantization = import_extra("sentence_transformers.util.quantization", extra="train")
    D = documents.shape[1]

    def restore(codes: np.ndarray) -> np.ndarray:
        return 2 * np.unpackbits(codes, axis=1)[:, :D].astype(np.float32) - 1

    def code(ids: Sequence[str], vectors: np.ndarray) -> Compressed:
        bits = np.asarray(quantization.quantize_embeddings(vectors, "ubinary"))  # [N, D / 8]
        return Compressed(Numbered(ids, restored_search(bits, restore)), bits.shape[1], 0)

    return code
