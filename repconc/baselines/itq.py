"""Iterative quantization (Gong et al., 2012): principal directions, turned so that signs lose little; Hamming distance.

With V the [n, B] projections on the strongest B directions, find the rotation R that minimises |sign(V R) - V R|^2 by
turns: signs for a fixed R, then R = U W^T from the singular value decomposition of V^T sign(V R).
"""

from collections.abc import Sequence

import numpy as np

from repconc.baselines.method import Coder, Compressed, Numbered
from repconc.errors import RepconcError, import_extra

NAME = "ITQ + LSH"
TURNS = 50


def fit(documents: np.ndarray, bytes: int, seed: int) -> Coder:
    D = documents.shape[1]
    if 8 * bytes > D:
        raise RepconcError(f"ITQ has one bit a direction: {bytes} bytes need {8 * bytes} dimensions, not {D}.")
    mean, turned = learn(documents, 8 * bytes, seed)
    faiss = import_extra("faiss", extra="faiss")

    def bits(vectors: np.ndarray) -> np.ndarray:
        """[., D] -> [., bytes]"""
        return np.packbits((vectors - mean) @ turned >= 0, axis=1)

    def code(ids: Sequence[str], vectors: np.ndarray) -> Compressed:
        index = faiss.IndexBinaryFlat(8 * bytes)
        index.add(bits(vectors))

        def places(queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
            distances, numbers = index.search(bits(queries), k)
            return -distances, numbers

        return Compressed(Numbered(ids, places), bytes, mean.nbytes + turned.nbytes)

    return code


def learn(documents: np.ndarray, bits: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The mean [D] and the projection [D, bits] behind whose signs the bits stand."""
    mean = documents.mean(axis=0)
    centred = documents - mean
    _, directions = np.linalg.eigh((centred.T @ centred).astype(np.float64))
    strongest = directions[:, ::-1][:, :bits].astype(np.float32)
    projected = centred @ strongest  # [n, bits]
    rotation = np.linalg.qr(np.random.default_rng(seed).normal(size=(bits, bits)))[0].astype(np.float32)
    for _ in range(TURNS):
        u, _, wt = np.linalg.svd(projected.T @ np.sign(projected @ rotation))
        rotation = u @ wt
    return mean, strongest @ rotation
