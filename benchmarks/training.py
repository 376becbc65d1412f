"""The paper's ablation on data that can be had here: dense, OPQ, + clustering, + constraint, + dynamic negatives.

    python -m benchmarks.training --recipe static --sizes 8,16,32
    python -m benchmarks.training --recipe heads --sizes 24,48
    python -m benchmarks.training --recipe minilm-cpu --sizes 48 --sets insuranceqa --seeds 0 --skip "+ clustering"

Settings are those of recipes/ (SET-RECIPE.toml where there is one), chosen on dev queries; each row is measured once on
the test queries. Checkpoints lie in the cache: a run that was killed goes on, a line that is there already is not
measured again.
"""

import argparse
import copy
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import results
from benchmarks.baselines import vectors_of
from repconc import Encoder, load_dataset
from repconc.data.catalogue import folder_of, get
from repconc.evaluation.measures import Evaluation, evaluate
from repconc.evaluation.significance import paired_t_test
from repconc.files import cache_directory
from repconc.indexes.codes import CodeIndex
from repconc.indexes.flat import FlatIndex
from repconc.models.inputs import CachedVectors, Inputs, Texts
from repconc.training.loop import State
from repconc.training.pipeline import make_model
from repconc.training.reading import read_examples
from repconc.training.recipe import RECIPES, Recipe, make_recipe, read_recipe
from repconc.training.statistics import frequencies, twins_of, use_of
from repconc.training.trainer import Trainer

SUITE = "training"
ROWS = ("dense, untrained", "dense", "OPQ", "+ clustering", "+ constraint", "+ dynamic negatives")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="static")
    parser.add_argument("--sets", default="hotpotqa,insuranceqa")
    parser.add_argument("--sizes", default="8,16,32")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--skip", default="", help="rows to leave out, by comma")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    for seed in map(int, options.seeds.split(",")):
        for name in options.sets.split(","):
            Ablation(name, options.recipe, seed, options.skip.split(",")).run(sizes)


class Ablation:
    """All rows of one set, recipe and seed; they share the dense model."""

    def __init__(self, name: str, recipe: str, seed: int, skip: list[str]) -> None:
        if not folder_of(name).is_dir():
            get(name)
        self.dataset = load_dataset(folder_of(name))
        own = RECIPES / f"{name}-{recipe}.toml"  # settings that were chosen on the dev queries of this set
        self.recipe = make_recipe(read_recipe(own if own.exists() else recipe) | {"seed": seed})
        self.key = {"dataset": name, "recipe": recipe, "seed": seed}
        self.rows = [row for row in ROWS if row not in skip]
        if "+ constraint" not in self.rows and "+ dynamic negatives" in self.rows:
            raise SystemExit("Stage 2 goes on from the row '+ constraint': skip both or none.")
        self.encoder = Encoder(self.recipe.encoder)
        self.folder = cache_directory() / "training" / f"{name}-{recipe}-{seed}"

    def run(self, sizes: list[int]) -> None:
        wanted = [(row, size) for row in self.rows for size in (sizes if row in ROWS[2:] else [None])]
        known = {(line["row"], line["bytes"]) for line in results.read(SUITE) if self.key.items() <= line.items()}
        if known >= set(wanted):
            return
        self.made_with = results.provenance()
        self._read()
        trainer = self._trainer("dense", self.recipe)
        self._keep("dense, untrained", None, self._flat(trainer), 0.0, None)
        states = self._train_dense(trainer)
        self._keep("dense", None, self._flat(trainer), sum(state.seconds for state in states), states[-1].best)
        for size in sizes:
            if not known >= {(row, size) for row in self.rows if row in ROWS[2:]}:
                self._compress(copy.deepcopy(trainer.model), size)

    def models(self, size: int) -> tuple[Trainer, Trainer]:
        """The dense model and RepCONC, as `run` trained them: what is in the cache is not trained again."""
        self._read()
        dense = self._trainer("dense", self.recipe)
        self._train_dense(dense)
        compressed = self._trainer(f"constraint-{size}", self._sized(size), copy.deepcopy(dense.model))
        compressed.warm_up()
        compressed.stage_one()
        compressed.code()
        compressed.stage_two()
        return dense, compressed

    def _train_dense(self, trainer: Trainer) -> list[State]:
        return [trainer.dense(phase, f"dense-{n}") for n, phase in enumerate(self.recipe.dense, start=1)]

    def _read(self) -> None:
        cache = cache_directory() / "training"
        self.examples = read_examples(self.dataset, self.encoder, self.recipe, vectors=self._vectors(), cache=cache)
        self.queries = self._test_queries()

    def _sized(self, size: int) -> Recipe:
        quantizer = self.recipe.quantizer.model_copy(update={"bytes": size})
        return self.recipe.model_copy(update={"quantizer": quantizer})

    def _compress(self, model: Any, size: int) -> None:
        """OPQ, then stage 1 without and with the constraint, then stage 2."""
        recipe = self._sized(size)
        free = recipe.stage_one.model_copy(update={"constraint": False})
        opq = self._trainer(f"opq-{size}", recipe, copy.deepcopy(model))
        warm = opq.warm_up()
        opq.code()
        before = self._codes(opq)
        self._keep("OPQ", size, before, warm, None, codes=opq.codes)
        stages = {"+ clustering": recipe.model_copy(update={"stage_one": free}), "+ constraint": recipe}
        for row, chosen in ((row, stages[row]) for row in self.rows if row in stages):
            trainer = self._trainer(f"{row[2:]}-{size}", chosen, copy.deepcopy(model), warmed=opq.folder)
            trainer.warm_up()
            state = trainer.stage_one()
            trainer.code()
            seconds = warm + state.seconds
            self._keep(row, size, self._codes(trainer), seconds, state.best, codes=trainer.codes, against=before)
        if "+ dynamic negatives" not in self.rows:
            return
        state = trainer.stage_two()
        self._keep(
            "+ dynamic negatives", size, self._codes(trainer), seconds + state.seconds, state.best, against=before
        )

    def _trainer(self, name: str, recipe: Recipe, model: Any = None, warmed: Path | None = None) -> Trainer:
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        if warmed is not None:
            shutil.copy(warmed / "warmup.safetensors", folder)
        model = make_model(self.encoder, recipe) if model is None else model
        return Trainer(model, self.examples, recipe, folder)

    def _vectors(self) -> Path | None:
        return vectors_of(self.dataset, self.recipe.encoder.documents) if self.recipe.train == "heads" else None

    def _test_queries(self) -> Inputs:
        texts = [query.text for query in self.dataset.queries("test")]
        if self.recipe.train == "heads":
            return CachedVectors([self.encoder.embed_queries(texts)])
        return Texts(self.encoder, "query", texts)

    def _flat(self, trainer: Trainer) -> Evaluation:
        vectors = trainer.corpus.vectors(trainer.corpus.everything).cpu().numpy()
        return self._measure(trainer, FlatIndex(self.examples.document_ids, [vectors]).search)

    def _codes(self, trainer: Trainer) -> Evaluation:
        codec = trainer.quantizer.to_codec()
        return self._measure(trainer, CodeIndex(self.examples.document_ids, trainer.codes, codec).search)

    def _measure(self, trainer: Trainer, search: Callable[..., Any]) -> Evaluation:
        vectors = trainer.corpus.queries(self.queries, np.arange(len(self.queries))).cpu().numpy()
        ids = [query.id for query in self.dataset.queries("test")]
        run = dict(zip(ids, search(vectors, 100), strict=True))
        return evaluate(run, self.dataset.qrels("test"), ["MRR@10", "R@100"], self.dataset.relevance("test"))

    def _keep(
        self,
        row: str,
        size: int | None,
        evaluation: Evaluation,
        seconds: float,
        dev: float | None,
        *,
        codes: np.ndarray | None = None,
        against: Evaluation | None = None,
    ) -> None:
        if any(
            self.key.items() <= line.items() and (line["row"], line["bytes"]) == (row, size)
            for line in results.read(SUITE)
        ):
            return
        line = {
            **self.key,
            "row": row,
            "bytes": size,
            "bytes_per_document": size or 4 * self.encoder.dimension,
            "encoder": self.recipe.encoder.documents,
            "train": self.recipe.train,
            "threads": torch.get_num_threads(),
            "measures": {name: round(value, 5) for name, value in evaluation.means.items()},
            "dev MRR@10": None if dev is None else round(dev, 5),
            "seconds": round(seconds, 1),
        }
        if against is not None:
            line["p against OPQ"] = paired_t_test(evaluation.values["MRR@10"], against.values["MRR@10"])
        if codes is not None:
            line["use"] = dict(_use(codes, self.recipe.quantizer.codewords))
        results.append(SUITE, line, self.made_with)
        print(
            {key: line[key] for key in ("dataset", "seed", "row", "bytes", "measures", "dev MRR@10", "seconds")},
            flush=True,
        )


def _use(codes: np.ndarray, K: int) -> Iterator[tuple[str, Any]]:
    """Statistics of the codes, and the sorted frequencies of codewords, averaged over blocks (times K: 1 = uniform)."""
    for name, value in (use_of(codes, K) | twins_of(codes)).items():
        yield name, float(f"{value:.4g}")
    ranked = -np.sort(-frequencies(codes, K), axis=1)
    yield "frequencies", [float(f"{value:.4g}") for value in K * ranked.mean(axis=0)]


if __name__ == "__main__":
    main()
