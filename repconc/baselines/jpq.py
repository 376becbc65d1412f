"""JPQ (Zhan et al., 2021): OPQ's codes stay; the query encoder and the codebooks learn by dynamic hard negatives."""

from repconc.baselines.method import one_stage
from repconc.training.loop import State
from repconc.training.trainer import Trainer

NAME = "JPQ"
recipe = one_stage


def train(trainer: Trainer) -> list[State]:
    trainer.code()
    return [trainer.stage_two()]
