"""Optimized product quantization (Ge et al., 2013): a rotation is learned before the vector is cut.

It is the warm-up of all trained methods, so a trainer that is warmed up has it already.
"""

import numpy as np

from repconc.baselines.method import Coder, product_coder
from repconc.quantization.opq import train_opq
from repconc.training.loop import State
from repconc.training.trainer import Trainer

NAME = "OPQ"


def fit(documents: np.ndarray, bytes: int, seed: int) -> Coder:
    return product_coder(train_opq(documents, bytes, seed=seed))


def train(trainer: Trainer) -> list[State]:
    trainer.code()
    return []
