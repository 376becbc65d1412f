"""ANCE (Xiong et al., 2021): uncompressed, trained with hard negatives that are searched anew every so many steps."""

from repconc.training.recipe import DensePhase, Recipe

NAME = "ANCE style"


def dense(base: Recipe) -> list[DensePhase]:
    return [base.dense[0].model_copy(update={"negatives": "refreshed"})]
