"""ADORE (Zhan et al., 2021): uncompressed; after STAR the query encoder goes on alone, over fixed documents.

Its second phase is what RepCONC's stage 2 is without codes, so it has the settings of that.
"""

from repconc.baselines import star
from repconc.training.recipe import DensePhase, Recipe

NAME = "ADORE style"
TAKEN = ("batch", "epochs", "encoder_rate", "dropout", "depth", "evaluations")


def dense(base: Recipe) -> list[DensePhase]:
    first = star.dense(base)[0]
    settings = {name: getattr(base.stage_two, name) for name in TAKEN}
    return [first, first.model_copy(update={"negatives": "dynamic", **settings})]
