"""RepCONC with additive codes (ours): whole codewords that are added up, after a warm-up of their own."""

from repconc.baselines.repconc import train
from repconc.training.recipe import Recipe, with_codes

__all__ = ["NAME", "recipe", "train"]

NAME = "RepCONC with additive codes"


def recipe(base: Recipe) -> Recipe:
    return with_codes(base, "additive")
