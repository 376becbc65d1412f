"""The trained dense model that all compressed ones start from: what compression can lose at most."""

from repconc.training.recipe import DensePhase, Recipe

NAME = "uncompressed"


def dense(base: Recipe) -> list[DensePhase]:
    return list(base.dense)
