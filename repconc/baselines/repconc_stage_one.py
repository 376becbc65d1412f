"""RepCONC without stage 2: static hard negatives only."""

from repconc.training.loop import State
from repconc.training.trainer import Trainer

NAME = "RepCONC without stage 2"


def train(trainer: Trainer) -> list[State]:
    state = trainer.stage_one()
    trainer.code()
    return [state]
