"""RepCONC without its constraint: documents take their nearest codewords in stage 1."""

from repconc.baselines.repconc import train
from repconc.training.recipe import Recipe

__all__ = ["NAME", "recipe", "train"]

NAME = "RepCONC without constraint"


def recipe(base: Recipe) -> Recipe:
    return base.model_copy(update={"stage_one": base.stage_one.model_copy(update={"constraint": False})})
