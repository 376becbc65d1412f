"""Distill-VQ (Xiao et al., 2022): compressed scores learn to rank as uncompressed ones of the same encoder.

Document vectors stay. The query encoder and the codebooks learn by the divergence between the two distributions over
retrieved and random documents, with nearest codewords, and no clustering loss. No label is in the loss; batches are
those of stage 1, a question with its answer, one retrieved document, and those of the other questions.
"""

from torch import Tensor

from repconc.baselines.method import one_stage
from repconc.training.loop import State
from repconc.training.recipe import Recipe
from repconc.training.stage_one import StageOneLoss
from repconc.training.trainer import Trainer

NAME = "Distill-VQ"


class DistilledLoss(StageOneLoss):
    """Distillation alone."""

    constrained = False

    def clustered(self, documents: Tensor, decoded: Tensor) -> Tensor:
        return documents.new_zeros(())


def recipe(base: Recipe) -> Recipe:
    """A teacher can say of retrieved documents how right they are, also where a recipe leaves them out."""
    longer = one_stage(base)
    taught = longer.stage_one.model_copy(update={"distillation": 1.0, "hard": max(1, longer.stage_one.hard)})
    return longer.model_copy(update={"stage_one": taught})


def train(trainer: Trainer) -> list[State]:
    trainer.model.separate_queries()
    state = trainer.stage_one(DistilledLoss, sides=["query"])
    trainer.code()
    return [state]
