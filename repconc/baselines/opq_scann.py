"""OPQ, then ScaNN: the vectors are turned by OPQ's rotation before ScaNN cuts and codes them, as in the paper.

ScaNN's codes are of four bits, so the rotation is learned for twice as many blocks of 16 codewords: one that was
learned for blocks of eight bits can be worse than none.
"""

from collections.abc import Sequence

import numpy as np

from repconc.baselines import scann
from repconc.baselines.method import Coder, Compressed, Mapped
from repconc.quantization.opq import train_opq

NAME = "OPQ + ScaNN"


def fit(documents: np.ndarray, bytes: int, seed: int) -> Coder:
    turn = train_opq(documents, 2 * bytes, scann.CODEWORDS, seed=seed).map
    assert turn is not None
    turned = scann.fit(turn(documents), bytes, seed)

    def code(ids: Sequence[str], vectors: np.ndarray) -> Compressed:
        inner = turned(ids, turn(vectors))
        return Compressed(Mapped(inner.index, turn), inner.bytes, inner.shared + turn.nbytes)

    return code
