"""One set, encoder and seed of the comparison: how each kind of method is measured there.

Unsupervised methods code the vectors of the trained dense model; supervised ones start from it, from the same OPQ and
the same mined negatives, and have the same epochs. Additive codes have a warm-up and negatives of their own.
"""

import shutil
import time
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.setting import Setting, train_dense
from repconc.baselines import bm25
from repconc.baselines.registry import methods
from repconc.evaluation.measures import Evaluation
from repconc.indexes.flat import FlatIndex
from repconc.training.trainer import Trainer

TIMED = 200
"""Test questions whose search is timed, one at a time on one thread."""
NEGATIVES = "stage-1-negatives-0.safetensors"
"""What the first supervised method of a size mines and the others take over."""
FOLDERS = {
    "OPQ": "opq",
    "RepCONC": "constraint",
    "RepCONC without stage 2": "constraint",
    "RepCONC without constraint": "clustering",
}
"""Models that `benchmarks.training` trains too, or that begin alike: what one has trained the other reads."""


class Measured(NamedTuple):
    """A method on one setting."""

    queries: np.ndarray  # [Q, D], or [Q] texts
    search: Any
    bytes: float
    shared: int = 0
    fit: float | None = None
    """Seconds."""
    code: float | None = None
    warm: float | None = None
    """Seconds of its warm-up, which are a part of `fit`."""


class Comparison:
    """All methods on one set, recipe and seed."""

    own: Path | None = None
    """Checkpoints of the method that was measured last, where no other reads them."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting

    def line(self, name: str, size: int | None) -> dict[str, Any]:
        """What a method does. size: None for those whose size is fixed."""
        self.own, start = None, time.perf_counter()
        measured = self._measure(name, methods()[name], size)
        about = {"method": name, **self.setting.key, "settings": self.setting.digest, "bytes": size}
        line = about | self._figures(measured)
        return line | {"seconds": round(time.perf_counter() - start, 1)}

    def forget(self) -> None:
        """Once a line is kept, its checkpoints need not fill the disk."""
        if self.own:
            shutil.rmtree(self.own)

    def _measure(self, name: str, method: Any, size: int | None) -> Measured:
        if method is bm25:
            return self._words()
        if hasattr(method, "dense"):
            return self._dense(name, method)
        if hasattr(method, "train"):
            return self._trained(name, method, size)
        return self._fitted(method, size)

    def _fitted(self, method: Any, size: int | None) -> Measured:
        queries, documents = self.vectors
        seed, start = self.setting.recipe.seed, time.perf_counter()
        count = self.setting.recipe.quantizer.sample  # those that OPQ learns from
        sample = np.sort(np.random.default_rng(seed).permutation(len(documents))[:count])
        coder = method.fit(documents[sample], size or 0, seed)
        fitted = time.perf_counter()
        coded = coder(self.setting.examples.document_ids, documents)
        code = time.perf_counter() - fitted
        return Measured(queries, coded.index.search, coded.bytes, coded.shared, fitted - start, code)

    def _trained(self, name: str, method: Any, size: int | None) -> Measured:
        setting, is_sized = self.setting, size is not None
        size = size or int(method.fixed(setting.encoder.dimension))
        base = setting.sized(size)
        recipe = method.recipe(base) if hasattr(method, "recipe") else base
        # What is not sized has nothing to warm up, and codes of another structure have a warm-up of their own.
        shared = self._opq(size) if is_sized and recipe.quantizer == base.quantizer else None
        trainer = setting.trainer(f"{FOLDERS.get(name, slug(name))}-{size}", recipe, self.dense.model)
        self.own = None if name in FOLDERS else trainer.folder
        if shared:
            take_over("warmup.safetensors", shared, trainer.folder)
            take_over(NEGATIVES, shared, trainer.folder)
        warm = trainer.warm_up() if is_sized else None
        seconds = (warm or 0.0) + sum(state.seconds for state in method.train(trainer))
        if shared:
            take_over(NEGATIVES, trainer.folder, shared)
        index, documents = setting.index(trainer), self.vectors[1]
        start = time.perf_counter()
        trainer.coding.encode(documents)
        code = time.perf_counter() - start
        # The warm-up's rotation stands behind both sides of the text model, and must be in memory too. Codebooks that
        # nobody learned are a formula: BPR's are all patterns of eight signs.
        beside = sum(weight.nbytes for module in list(trainer.model.text)[1:] for weight in module.parameters())
        if trainer.quantizer.codebooks.requires_grad:
            beside += index.nbytes - size * len(index)
        return Measured(setting.asked(trainer), index.search, size, beside, seconds, code, warm)

    def _opq(self, size: int) -> Path:
        """Where OPQ of this size is, which all methods that need one start from."""
        trainer = self.setting.trainer(f"{FOLDERS['OPQ']}-{size}", self.setting.sized(size), self.dense.model)
        trainer.warm_up()
        return trainer.folder

    def _words(self) -> Measured:
        dataset, start = self.setting.dataset, time.perf_counter()
        index = bm25.BM25(dataset.documents)
        texts = np.array([query.text for query in dataset.queries(self.setting.split)], dtype=object)
        return Measured(texts, index.search, index.nbytes / len(index), 0, time.perf_counter() - start)

    def _dense(self, name: str, method: Any) -> Measured:
        phases = tuple(method.dense(self.setting.recipe))
        recipe = self.setting.recipe.model_copy(update={"dense": phases})
        shared = phases == self.setting.recipe.dense
        trainer = self.setting.trainer("dense" if shared else slug(name), recipe)
        self.own = None if shared else trainer.folder
        states = train_dense(trainer)
        queries, documents = self.setting.vectors(trainer)
        index = FlatIndex(self.setting.examples.document_ids, [documents])
        return Measured(queries, index.search, 4 * documents.shape[1], 0, sum(state.seconds for state in states))

    def _figures(self, measured: Measured) -> dict[str, Any]:
        evaluation = self.setting.evaluate(measured.queries, measured.search)
        return {
            "bytes_per_document": round(measured.bytes, 1),
            "shared_bytes": measured.shared,
            "dimensions": self.setting.encoder.dimension,
            "documents": len(self.setting.examples.document_ids),
            "measures": {name: round(value, 5) for name, value in evaluation.means.items()},
            "ranks": _ranks(evaluation),
            "recalls": [float(f"{value:.3g}") for value in evaluation.values["R@100"].tolist()],
            "fit_seconds": None if measured.fit is None else round(measured.fit, 1),
            "warmup_seconds": None if measured.warm is None else round(measured.warm, 1),
            "code_seconds": None if measured.code is None else round(measured.code, 1),
            "milliseconds_a_query": round(_milliseconds(measured), 3),
        }

    @cached_property
    def dense(self) -> Trainer:
        """What all compressed ones start from."""
        trainer = self.setting.trainer("dense", self.setting.recipe)
        train_dense(trainer)
        return trainer

    @cached_property
    def vectors(self) -> tuple[np.ndarray, np.ndarray]:
        return self.setting.vectors(self.dense)


def _milliseconds(measured: Measured) -> float:
    """The mean of one question at a time, on one thread."""
    questions = measured.queries[:TIMED]
    with threadpool_limits(1):
        start = time.perf_counter()
        for number in range(len(questions)):
            measured.search(questions[number : number + 1], 10)
        return 1000 * (time.perf_counter() - start) / len(questions)


def _ranks(evaluation: Evaluation) -> str:
    """Where each test question finds its first relevant document, a hexadecimal digit each; 0 beyond the tenth.

    With the recalls of all questions beside it, a test of significance needs nothing but lines.
    """
    return "".join(f"{round(1 / value) if value else 0:x}" for value in evaluation.values["MRR@10"].tolist())


def take_over(name: str, source: Path, target: Path) -> None:
    """Copied whole or not at all: a run that is killed meanwhile leaves nothing that is cut off."""
    if (source / name).exists() and not (target / name).exists():
        partial = shutil.copy(source / name, target / f".{name}.partial")
        Path(partial).replace(target / name)


def slug(name: str) -> str:
    """As a part of a folder's name."""
    return "".join(letter if letter.isalnum() else "-" for letter in name.lower())
