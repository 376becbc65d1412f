"""One set, recipe and seed: the dense model that all compressed ones start from, and the test questions.

Checkpoints lie in the cache: what was trained once is read the next time.
"""

import copy
import hashlib
import shutil
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.baselines import vectors_of
from repconc import Encoder, load_dataset
from repconc.data.catalogue import CATALOGUE, folder_of, get
from repconc.evaluation.measures import Evaluation, evaluate
from repconc.files import cache_directory
from repconc.indexes.codes import CodeIndex
from repconc.models.inputs import CachedVectors, Inputs, Texts
from repconc.training.examples import Examples
from repconc.training.loop import State
from repconc.training.pipeline import make_model
from repconc.training.reading import read_examples
from repconc.training.recipe import RECIPES, Codes, Recipe, make_recipe, read_recipe, with_codes
from repconc.training.trainer import Trainer

MEASURES = ("MRR@10", "MRR@100", "nDCG@10", "R@100")
Search = Callable[[np.ndarray, int], Any]


class Setting:
    """What is shared by all that is compared."""

    def __init__(self, name: str, recipe: str, seed: int) -> None:
        """name: of a set of ours, or any other that `load_dataset` opens."""
        if name in CATALOGUE and not folder_of(name).is_dir():
            get(name)
        self.dataset = load_dataset(folder_of(name) if name in CATALOGUE else name)
        own = RECIPES / f"{name}-{recipe}.toml"  # settings that were chosen on the dev queries of this set
        chosen = make_recipe(read_recipe(own if own.exists() else recipe) | {"seed": seed})
        self.recipe = with_codes(chosen, "product")  # whatever the default of so many documents is
        self.split = "test" if "test" in self.dataset.splits else self.recipe.validation_split
        self.key = {"dataset": label_of(name), "recipe": Path(recipe).stem, "seed": seed}
        self.encoder = Encoder(self.recipe.encoder)
        self.folder = folder_for(name, recipe, seed)

    @property
    def digest(self) -> str:
        """Of all settings, so that a line says which it was measured with."""
        return hashlib.sha256(self.recipe.model_dump_json().encode()).hexdigest()[:12]

    @cached_property
    def examples(self) -> Examples:
        heads, cache = self.recipe.train == "heads", cache_directory() / "training"
        vectors = vectors_of(self.dataset, self.recipe.encoder.documents) if heads else None
        return read_examples(self.dataset, self.encoder, self.recipe, vectors=vectors, cache=cache)

    @cached_property
    def queries(self) -> Inputs:
        texts = [query.text for query in self.dataset.queries(self.split)]
        if self.recipe.train == "heads":
            return CachedVectors([self.encoder.embed_queries(texts)])
        return Texts(self.encoder, "query", texts)

    def sized(self, size: int, codes: Codes = "product") -> Recipe:
        quantizer = self.recipe.quantizer.model_copy(update={"bytes": size})
        return with_codes(self.recipe.model_copy(update={"quantizer": quantizer}), codes)

    def trainer(self, name: str, recipe: Recipe, model: Any = None, warmed: Path | None = None) -> Trainer:
        """In a folder of its own. model: copied; None: as the encoder comes. warmed: whose OPQ it starts from."""
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        if warmed is not None:
            shutil.copy(warmed / "warmup.safetensors", folder)
        model = make_model(Encoder(recipe.encoder), recipe) if model is None else copy.deepcopy(model)
        return Trainer(model, self.examples, recipe, folder)

    def asked(self, trainer: Trainer) -> np.ndarray:
        """Test questions [Q, D] under a model."""
        return trainer.corpus.queries(self.queries, np.arange(len(self.queries))).cpu().numpy()

    def vectors(self, trainer: Trainer) -> tuple[np.ndarray, np.ndarray]:
        """Test questions [Q, D] and all documents [N, D] under a model."""
        return self.asked(trainer), trainer.corpus.vectors(trainer.corpus.everything).cpu().numpy()

    def evaluate(self, queries: np.ndarray, search: Search) -> Evaluation:
        ids = [query.id for query in self.dataset.queries(self.split)]
        run = dict(zip(ids, search(queries, 100), strict=True))
        return evaluate(run, self.dataset.qrels(self.split), MEASURES, self.dataset.relevance(self.split))

    def index(self, trainer: Trainer) -> CodeIndex:
        """The codes of a trained model."""
        return CodeIndex(self.examples.document_ids, trainer.codes, trainer.quantizer.to_codec(), trainer.coding)


def on_dev(name: str) -> tuple[Setting, np.ndarray, np.ndarray]:
    """The static encoder's setting, seed 0, its dev questions [Q, D] and documents [N, D] under the dense model."""
    setting = Setting(name, "static", 0)
    setting.split = setting.recipe.validation_split
    dense = setting.trainer("dense", setting.recipe)
    train_dense(dense)
    return setting, *setting.vectors(dense)


def label_of(name: str) -> str:
    """A set as result lines call it: a folder by its own name, wherever it lies, unless a set of ours has that name."""
    if not Path(name).is_dir() or name in CATALOGUE:
        return name
    own = Path(name).resolve().name
    return f"{own}, a folder" if own in CATALOGUE else own


def folder_for(name: str, recipe: str, seed: int) -> Path:
    """Where the checkpoints of a setting lie; two folders of the same name have two."""
    label = label_of(name).replace("/", "-").replace(":", "-")
    if name not in CATALOGUE:
        label += "-" + hashlib.sha256(str(Path(name).resolve()).encode()).hexdigest()[:8]
    return cache_directory() / "training" / f"{label}-{Path(recipe).stem}-{seed}"


def train_dense(trainer: Trainer) -> list[State]:
    """All dense phases of its recipe."""
    return [trainer.dense(phase, f"dense-{n}") for n, phase in enumerate(trainer.recipe.dense, start=1)]
