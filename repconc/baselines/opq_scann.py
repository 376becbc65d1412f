"""OPQ, then ScaNN: the vectors are turned by OPQ's rotation before ScaNN cuts and codes them, as in the paper."""

from collections.abc import Sequence

import numpy as np

from repconc.baselines import scann
from repconc.baselines.method import Coder, Compressed, Mapped
from repconc.maps import VectorMap
from repconc.quantization.opq import train_opq

NAME = "OPQ + ScaNN"


def fit(documents: np.ndarray, bytes: int, seed: int, rotation: VectorMap | None = None) -> Coder:
    """rotation: that of an OPQ which is there already."""
    rotation = rotation or train_opq(documents, bytes, seed=seed).map
    assert rotation is not None
    turn, turned = rotation, scann.fit(rotation(documents), bytes, seed)

    def code(ids: Sequence[str], vectors: np.ndarray) -> Compressed:
        inner = turned(ids, turn(vectors))
        return Compressed(Mapped(inner.index, turn), inner.bytes, inner.shared + turn.nbytes)

    return code
