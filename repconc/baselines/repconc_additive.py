"""RepCONC with additive codes (ours): whole codewords that are added up, after a warm-up of their own."""

from repconc.baselines.repconc import train
from repconc.training.recipe import Recipe

__all__ = ["NAME", "recipe", "train"]

NAME = "RepCONC with additive codes"


def recipe(base: Recipe) -> Recipe:
    return base.model_copy(update={"quantizer": base.quantizer.model_copy(update={"codes": "additive"})})
