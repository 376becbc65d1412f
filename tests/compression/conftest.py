"""Vectors in clusters, queries beside their documents, and a recipe that is done in a second."""

from typing import NamedTuple

import numpy as np
import pytest

from repconc.compression.given import Given, open_given
from repconc.records import Qrels
from repconc.training.recipe import Recipe, make_recipe

RECIPE = {
    "train": "heads",
    "dense": [],
    "quantizer": {"codewords": 16, "turns": 5},
    "stage_one": {"epochs": 1, "batch": 256, "iterations": 20, "evaluations": 1, "distillation": 1.0},
    "stage_two": {"epochs": 0.5, "batch": 64, "depth": 20, "evaluations": 1, "distillation": 1.0},
}


class World(NamedTuple):
    """N documents, Q queries; query q is answered by document q."""

    documents: np.ndarray
    queries: np.ndarray
    qrels: Qrels


def opened(world: World, mode: str, **options: object) -> Given:
    queries = {} if mode == "documents" else {"queries": world.queries}
    return open_given(world.documents, **queries, qrels=world.qrels if mode == "labels" else None, **options)


@pytest.fixture(scope="session")
def world() -> World:
    random = np.random.default_rng(0)
    centres = random.normal(size=(20, 12))
    documents = centres[random.integers(0, 20, 600)] + 0.5 * random.normal(size=(600, 12))
    queries = documents[:120] + 0.2 * random.normal(size=(120, 12))
    return World(documents.astype("f4"), queries.astype("f4"), {str(n): {str(n): 1} for n in range(120)})


@pytest.fixture(scope="session")
def recipe() -> Recipe:
    return make_recipe(RECIPE)
