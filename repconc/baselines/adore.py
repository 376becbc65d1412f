"""ADORE (Zhan et al., 2021): uncompressed; after STAR the query encoder goes on alone, over fixed documents."""

from repconc.baselines import star
from repconc.training.recipe import DensePhase, Recipe

NAME = "ADORE style"


def dense(base: Recipe) -> list[DensePhase]:
    first = star.dense(base)[0]
    return [first, first.model_copy(update={"negatives": "dynamic", "batch": base.stage_two.batch})]
