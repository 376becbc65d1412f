"""RepBERT (Zhan et al., 2020): uncompressed, trained with the other documents of the batch as negatives."""

from repconc.training.recipe import DensePhase, Recipe

NAME = "RepBERT style"


def dense(base: Recipe) -> list[DensePhase]:
    return [base.dense[0].model_copy(update={"negatives": "in-batch"})]
