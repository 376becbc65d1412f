"""The paper's comparison: every compression method over the same dense model, the same splits, the same bytes.

    python -m benchmarks.methods --recipes static --sets hotpotqa --sizes 16 --seeds 0,1,2

Unsupervised methods code the vectors of the trained dense model; supervised ones start from it and from the same OPQ,
with the epochs and the mined negatives of the recipe. A line that is there already is not measured again, a run that
was killed goes on, and a method that fails is said to have failed while the rest goes on.
"""

import argparse
import shutil
import time
from collections.abc import Collection, Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import results
from benchmarks.setting import Setting, train_dense
from repconc.baselines import bm25
from repconc.baselines.registry import methods
from repconc.errors import first_line
from repconc.evaluation.measures import Evaluation
from repconc.indexes.flat import FlatIndex
from repconc.training.trainer import Trainer

SUITE = "methods"
SIZES = {"static": (16, 8, 4, 32), "heads": (24, 48, 4, 6, 8, 12, 16)}
"""Bytes; the first two are measured with three seeds, the others with one. The first is a 64th of the vectors."""
SAMPLE = 65_536
TIMED = 200
"""Test questions whose search is timed, one at a time on one thread."""
SHARED = ("warmup.safetensors", "stage-1-negatives-0.safetensors")
"""What the first supervised method of a size makes and the others take over."""


class Measured(NamedTuple):
    """A method on one setting."""

    queries: np.ndarray  # [Q, D], or [Q] texts
    search: Any
    bytes: float
    shared: int = 0
    fit: float | None = None
    """Seconds."""
    code: float | None = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipes", default="static,heads")
    parser.add_argument("--sets", default="hotpotqa,insuranceqa")
    parser.add_argument("--sizes", help="bytes by comma [default: the paper's ratios]")
    parser.add_argument("--seeds", help="by comma [default: 0,1,2 for the first two sizes of a recipe, else 0]")
    parser.add_argument("--methods", help="names by comma [default: all]")
    options = parser.parse_args()
    wanted = options.methods.split(",") if options.methods else None
    start, failed = time.monotonic(), []
    for recipe in options.recipes.split(","):
        for name in options.sets.split(","):
            for seed, sizes in _plan(recipe, options.sizes, options.seeds).items():
                comparison = Comparison(name, recipe, seed)
                comparison.run(sizes, wanted)
                failed += comparison.failed
    print(f"{(time.monotonic() - start) / 3600:.2f} hours; failed: {'; '.join(failed) or 'none'}.")
    if failed:
        raise SystemExit(3)


def _plan(recipe: str, sizes: str | None, seeds: str | None) -> dict[int, list[int]]:
    """For each seed the sizes that are measured with it."""
    chosen = [int(size) for size in sizes.split(",")] if sizes else list(SIZES[recipe])
    if seeds:
        return {int(seed): chosen for seed in seeds.split(",")}
    return {0: chosen} | {seed: [size for size in chosen if size in SIZES[recipe][:2]] for seed in (1, 2)}


class Comparison:
    """All methods on one set, recipe and seed."""

    def __init__(self, name: str, recipe: str, seed: int) -> None:
        self.setting, self.made_with = Setting(name, recipe, seed), results.provenance()
        self.failed: list[str] = []

    def run(self, sizes: Iterable[int], wanted: Collection[str] | None = None) -> None:
        """Methods of these names, or all. Those whose size is fixed get one line."""
        for size in sizes:
            for name, method in methods().items():
                sized = not hasattr(method, "fixed") and (hasattr(method, "fit") or hasattr(method, "train"))
                own = size if sized else None
                line = self.setting.key | {"method": name, "bytes": own}
                if (wanted is None or name in wanted) and not results.has(SUITE, line):
                    self._attempt(name, method, own)

    def _attempt(self, name: str, method: Any, size: int | None) -> None:
        try:
            measured = self._measure(name, method, size)
            line = {"method": name, **self.setting.key, "bytes": size, **self._figures(measured)}
        except Exception as error:  # whatever it is: the other methods go on
            self.failed.append(f"{name}, {self.setting.key}, {size} bytes: {first_line(error)}")
            print("FAILED", self.failed[-1], flush=True)
            return
        results.append(SUITE, line, self.made_with)
        print({key: line[key] for key in ("method", "dataset", "recipe", "seed", "bytes", "measures")}, flush=True)

    def _measure(self, name: str, method: Any, size: int | None) -> Measured:
        if method is bm25:
            return self._words()
        if hasattr(method, "dense"):
            return self._dense(name, method)
        return self._trained(name, method, size) if hasattr(method, "train") else self._fitted(method, size)

    def _fitted(self, method: Any, size: int | None) -> Measured:
        queries, documents = self.vectors
        seed, start = self.setting.recipe.seed, time.perf_counter()
        sample = np.sort(np.random.default_rng(seed).permutation(len(documents))[:SAMPLE])
        coder = method.fit(documents[sample], size or 0, seed)
        fitted = time.perf_counter()
        coded = coder(self.setting.examples.document_ids, documents)
        code = time.perf_counter() - fitted
        return Measured(queries, coded.index.search, coded.bytes, coded.shared, fitted - start, code)

    def _trained(self, name: str, method: Any, size: int | None) -> Measured:
        setting = self.setting
        size = size or method.fixed(setting.encoder.dimension)
        base = setting.sized(size)
        recipe = method.recipe(base) if hasattr(method, "recipe") else base
        trainer = setting.trainer(f"{_slug(name)}-{size}", recipe, self.dense.model)
        shared = setting.folder / f"shared-{size}"
        shared.mkdir(exist_ok=True)
        _take_over(shared, trainer.folder)
        seconds = trainer.warm_up()
        seconds += sum(state.seconds for state in method.train(trainer))
        if not hasattr(method, "fixed"):  # negatives that other codes found are not those of OPQ
            _take_over(trainer.folder, shared)
        index, start = setting.index(trainer), time.perf_counter()
        trainer.coding.encode(self.vectors[1])
        code = time.perf_counter() - start
        return Measured(setting.asked(trainer), index.search, size, index.nbytes - size * len(index), seconds, code)

    def _words(self) -> Measured:
        dataset, start = self.setting.dataset, time.perf_counter()
        index = bm25.BM25(dataset.documents)
        texts = np.array([query.text for query in dataset.queries("test")], dtype=object)
        return Measured(texts, index.search, index.nbytes / len(index), 0, time.perf_counter() - start)

    def _dense(self, name: str, method: Any) -> Measured:
        phases = tuple(method.dense(self.setting.recipe))
        recipe = self.setting.recipe.model_copy(update={"dense": phases})
        trainer = self.setting.trainer("dense" if phases == self.setting.recipe.dense else _slug(name), recipe)
        states = train_dense(trainer)
        queries, documents = self.setting.vectors(trainer)
        index = FlatIndex(self.setting.examples.document_ids, [documents])
        return Measured(queries, index.search, 4 * documents.shape[1], 0, sum(state.seconds for state in states))

    def _figures(self, measured: Measured) -> dict[str, Any]:
        evaluation = self.setting.evaluate(measured.queries, measured.search)
        with threadpool_limits(1):
            start = time.perf_counter()
            for number in range(TIMED):
                measured.search(measured.queries[number : number + 1], 10)
            milliseconds = 1000 * (time.perf_counter() - start) / TIMED
        return {
            "bytes_per_document": round(measured.bytes, 1),
            "shared_bytes": measured.shared,
            "documents": len(self.setting.examples.document_ids),
            "measures": {name: round(value, 5) for name, value in evaluation.means.items()},
            "ranks": _ranks(evaluation),
            "fit_seconds": None if measured.fit is None else round(measured.fit, 1),
            "code_seconds": None if measured.code is None else round(measured.code, 1),
            "milliseconds_a_query": round(milliseconds, 3),
        }

    @cached_property
    def dense(self) -> Trainer:
        trainer = self.setting.trainer("dense", self.setting.recipe)
        train_dense(trainer)
        return trainer

    @cached_property
    def vectors(self) -> tuple[np.ndarray, np.ndarray]:
        return self.setting.vectors(self.dense)


def _ranks(evaluation: Evaluation) -> list[int]:
    """Where each test question finds its first relevant document; 0 beyond the tenth. So tests need no other file."""
    return [round(1 / value) if value else 0 for value in evaluation.values["MRR@10"].tolist()]


def _take_over(source: Path, target: Path) -> None:
    for name in SHARED:
        if (source / name).exists() and not (target / name).exists():
            shutil.copy(source / name, target)


def _slug(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name.lower())


if __name__ == "__main__":
    main()
