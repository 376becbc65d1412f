"""The paper's ablation on data that can be had here: dense, OPQ, + clustering, + constraint, + dynamic negatives.

    python -m benchmarks.training --recipe static --sizes 8,16,32
    python -m benchmarks.training --recipe heads --sizes 24,48
    python -m benchmarks.training --recipe minilm-cpu --sizes 48 --sets insuranceqa --seeds 0 --skip "+ clustering"
    python -m benchmarks.training --codes additive --recipe static --sizes 4,8,16,32

Settings are those of recipes/ (SET-RECIPE.toml where there is one), chosen on dev queries; each row is measured once on
the test queries. Checkpoints lie in the cache: a run that was killed goes on, a line that is there already is not
measured again. Additive codes have lines of their own (training-additive), without a teacher up to the last row, which
is the recipe as it is.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks import results
from benchmarks.setting import Setting, train_dense
from repconc.evaluation.measures import Evaluation
from repconc.evaluation.significance import paired_t_test
from repconc.indexes.flat import FlatIndex
from repconc.models.dual import DualEncoder
from repconc.training.loop import State
from repconc.training.recipe import Codes, Recipe
from repconc.training.stage_one import StageOneLoss
from repconc.training.statistics import frequencies, twins_of, use_of
from repconc.training.trainer import Trainer

SUITES = {"product": "training", "additive": "training-additive"}
UNCOMPRESSED = ("dense, untrained", "dense")
STAGES = ("+ clustering", "+ constraint", "+ dynamic negatives")
ROWS = {
    "product": (*UNCOMPRESSED, "OPQ", *STAGES),
    "additive": (*UNCOMPRESSED, "residual", *STAGES, "+ distillation"),
}
"""By the structure of codes; the third is the warm-up."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="static")
    parser.add_argument("--sets", default="hotpotqa,insuranceqa")
    parser.add_argument("--sizes", default="8,16,32")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--skip", default="", help="rows to leave out, by comma")
    parser.add_argument("--codes", default="product", choices=SUITES)
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    for seed in map(int, options.seeds.split(",")):
        for name in options.sets.split(","):
            Ablation(name, options.recipe, seed, options.skip.split(","), options.codes).run(sizes)


class Ablation:
    """All rows of one set, recipe and seed; they share the dense model."""

    def __init__(self, name: str, recipe: str, seed: int, skip: list[str], codes: Codes = "product") -> None:
        self.setting, self.codes, self.suite = Setting(name, recipe, seed), codes, SUITES[codes]
        self.warmed = ROWS[codes][len(UNCOMPRESSED)]
        # Where the recipe has no teacher, the row of the teacher would be the one before it.
        without = _untaught(self.setting.recipe)
        self.taught = "+ distillation" in ROWS[codes] and without != self.setting.recipe
        self.rows = [row for row in ROWS[codes] if row not in skip and (self.taught or row != "+ distillation")]
        if "+ constraint" not in self.rows and "+ dynamic negatives" in self.rows:
            raise SystemExit("Stage 2 goes on from the row '+ constraint': skip both or none.")

    def run(self, sizes: list[int]) -> None:
        wanted = [(row, size) for row in self.rows for size in ([None] if row in UNCOMPRESSED else sizes)]
        key = self.setting.key
        known = {(line["row"], line["bytes"]) for line in results.read(self.suite) if key.items() <= line.items()}
        if known >= set(wanted):
            return
        self.made_with = results.provenance()
        trainer = self.setting.trainer("dense", self.setting.recipe)
        if ("dense, untrained", None) not in known:  # to embed all documents takes a while
            self._keep("dense, untrained", None, self._flat(trainer), 0.0, None)
        states = train_dense(trainer)
        if ("dense", None) not in known:
            self._keep("dense", None, self._flat(trainer), sum(state.seconds for state in states), states[-1].best)
        for size in sizes:
            if not known >= {(row, size) for row in self.rows if row not in UNCOMPRESSED}:
                self._compress(trainer.model, size)

    def models(self, size: int) -> tuple[Trainer, Trainer]:
        """The dense model and RepCONC, as `run` trained them: what is in the cache is not trained again."""
        dense = self.setting.trainer("dense", self.setting.recipe)
        train_dense(dense)
        whole = "distillation" if self.taught else "constraint"
        compressed = self._trainer(whole, size, self.setting.sized(size, self.codes), dense.model)
        train_stages(compressed)
        return dense, compressed

    def _compress(self, model: DualEncoder, size: int) -> None:
        """The warm-up, then stage 1 without and with the constraint, then stage 2; where it has a row, the teacher."""
        whole = self.setting.sized(size, self.codes)
        recipe = _untaught(whole) if self.taught else whole
        free = recipe.stage_one.model_copy(update={"constraint": False})
        opq = self._trainer("opq", size, recipe, model)
        warm = opq.warm_up()
        opq.code()
        before = self._codes(opq)
        self._keep(self.warmed, size, before, warm, None, codes=opq.codes)
        stages = {"+ clustering": recipe.model_copy(update={"stage_one": free}), "+ constraint": recipe}
        for row, chosen in ((row, stages[row]) for row in self.rows if row in stages):
            trainer = self._trainer(row[2:], size, chosen, model, warmed=opq.folder)
            trainer.warm_up()
            state = trainer.stage_one()
            trainer.code()
            seconds = warm + state.seconds
            self._keep(row, size, self._codes(trainer), seconds, state.best, codes=trainer.codes, against=before)
        if "+ dynamic negatives" in self.rows:
            state = trainer.stage_two()
            seconds += state.seconds
            self._keep("+ dynamic negatives", size, self._codes(trainer), seconds, state.best, against=before)
        if "+ distillation" in self.rows:
            trainer = self._trainer("distillation", size, whole, model, warmed=opq.folder)
            states = train_stages(trainer)
            seconds = warm + sum(state.seconds for state in states)
            found = self._codes(trainer)
            self._keep("+ distillation", size, found, seconds, states[-1].best, codes=trainer.codes, against=before)

    def _trainer(self, name: str, size: int, recipe: Recipe, model: Any, warmed: Path | None = None) -> Trainer:
        return self.setting.trainer(_folder(name, size, self.codes), recipe, model, warmed)

    def _flat(self, trainer: Trainer) -> Evaluation:
        queries, documents = self.setting.vectors(trainer)
        return self.setting.evaluate(queries, FlatIndex(self.setting.examples.document_ids, [documents]).search)

    def _codes(self, trainer: Trainer) -> Evaluation:
        return self.setting.evaluate(self.setting.asked(trainer), self.setting.index(trainer).search)

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
        if results.has(self.suite, self.setting.key | {"row": row, "bytes": size}):
            return
        line = {
            **self.setting.key,
            "row": row,
            "bytes": size,
            "bytes_per_document": size or 4 * self.setting.encoder.dimension,
            "encoder": self.setting.recipe.encoder.documents,
            "train": self.setting.recipe.train,
            "threads": torch.get_num_threads(),
            "measures": {name: round(value, 5) for name, value in evaluation.means.items()},
            "dev MRR@10": None if dev is None else round(dev, 5),
            "seconds": round(seconds, 1),
        }
        if against is not None:
            line[f"p against {self.warmed}"] = paired_t_test(evaluation.values["MRR@10"], against.values["MRR@10"])
        if codes is not None:
            line["use"] = dict(_use(codes, self.setting.recipe.quantizer.codewords))
        results.append(self.suite, line, self.made_with)
        print(
            {key: line[key] for key in ("dataset", "seed", "row", "bytes", "measures", "dev MRR@10", "seconds")},
            flush=True,
        )


def _untaught(recipe: Recipe) -> Recipe:
    """Without the teacher."""
    stages = {
        name: getattr(recipe, name).model_copy(update={"distillation": 0.0}) for name in ("stage_one", "stage_two")
    }
    return recipe.model_copy(update=stages)


def train_stages(trainer: Trainer, loss_of: type[StageOneLoss] = StageOneLoss) -> list[State]:
    """Both stages, from the warm-up."""
    trainer.warm_up()
    first = trainer.stage_one(loss_of)
    trainer.code()
    return [first, trainer.stage_two()]


def _folder(name: str, size: int, codes: Codes) -> str:
    return f"{name}-{size}" if codes == "product" else f"{codes}-{name}-{size}"


def _use(codes: np.ndarray, K: int) -> Iterator[tuple[str, Any]]:
    """Statistics of the codes, and the sorted frequencies of codewords, averaged over blocks (times K: 1 = uniform)."""
    for name, value in (use_of(codes, K) | twins_of(codes)).items():
        yield name, float(f"{value:.4g}")
    ranked = -np.sort(-frequencies(codes, K), axis=1)
    yield "frequencies", [float(f"{value:.4g}") for value in K * ranked.mean(axis=0)]


if __name__ == "__main__":
    main()
