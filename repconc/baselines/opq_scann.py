"""OPQ, then ScaNN: the vectors are turned by OPQ's rotation before ScaNN cuts and codes them, as in the paper."""

from collections.abc import Sequence

import numpy as np

from repconc.baselines import scann
from repconc.baselines.method import Coder, Compressed, Searchable
from repconc.maps import VectorMap
from repconc.quantization.opq import train_opq
from repconc.records import Hit

NAME = "OPQ + ScaNN"


class _Turned:
    def __init__(self, inner: Searchable, rotation: VectorMap) -> None:
        self._inner, self._rotation = inner, rotation

    def search(self, queries: np.ndarray, k: int = 10) -> list[list[Hit]]:
        return self._inner.search(self._rotation(queries), k)


def fit(documents: np.ndarray, bytes: int, seed: int) -> Coder:
    rotation = train_opq(documents, bytes, seed=seed).map
    assert rotation is not None
    turned = scann.fit(rotation(documents), bytes, seed)

    def code(ids: Sequence[str], vectors: np.ndarray) -> Compressed:
        inner = turned(ids, rotation(vectors))
        return Compressed(_Turned(inner.index, rotation), inner.bytes, inner.shared + rotation.nbytes)

    return code
