"""RepCONC (Zhan et al., 2022), the method of this project: constrained clustering, then dynamic hard negatives."""

from repconc.training.loop import State
from repconc.training.trainer import Trainer

NAME = "RepCONC"


def train(trainer: Trainer) -> list[State]:
    first = trainer.stage_one()
    trainer.code()
    return [first, trainer.stage_two()]
