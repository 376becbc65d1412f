"""OPQ, then ScaNN: the vectors are turned by OPQ's rotation before ScaNN cuts and codes them, as in the paper."""

from collections.abc import Sequence

import numpy as np

from repconc.baselines import scann
from repconc.baselines.method import Coder, Compressed, Mapped
from repconc.quantization.opq import train_opq

NAME = "OPQ + ScaNN"


def fit(documents: np.ndarray, bytes: int, seed: int) -> Coder:
    rotation = train_opq(documents, bytes, seed=seed).map
    assert rotation is not None
    turned = scann.fit(rotation(documents), bytes, seed)

    def code(ids: Sequence[str], vectors: np.ndarray) -> Compressed:
        inner = turned(ids, rotation(vectors))
        return Compressed(Mapped(inner.index, rotation), inner.bytes, inner.shared + rotation.nbytes)

    return code
