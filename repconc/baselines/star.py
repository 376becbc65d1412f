"""STAR (Zhan et al., 2021): uncompressed, trained with static hard negatives."""

from repconc.training.recipe import DensePhase, Recipe

NAME = "STAR style"


def dense(base: Recipe) -> list[DensePhase]:
    return [base.dense[0].model_copy(update={"negatives": "static"})]
