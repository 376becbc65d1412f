"""DPQ (Chen et al., 2020; Zhang et al., 2021): the ranking loss without constraint; see `training/dpq.py`."""

from repconc.baselines.method import one_stage
from repconc.training.dpq import DifferentiableLoss
from repconc.training.loop import State
from repconc.training.trainer import Trainer

NAME = "DPQ"
recipe = one_stage


def train(trainer: Trainer) -> list[State]:
    state = trainer.stage_one(DifferentiableLoss)
    trainer.code()
    return [state]
