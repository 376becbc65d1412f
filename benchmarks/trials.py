"""What was tried to make additive codes better: one setting at a time, measured on dev questions.

    python -m benchmarks.trials --recipe heads --sizes 8,24 --sets insuranceqa

All trials of a size start from the same dense model, warm-up and mined negatives. A killed run goes on, and a line that
is there is not measured again.
"""

import argparse
import shutil
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from benchmarks import results
from benchmarks.compared import NEGATIVES, slug, take_over
from benchmarks.setting import Setting, train_dense
from benchmarks.training import train_stages
from repconc.evaluation.tables import Table
from repconc.losses.clustering import clustering
from repconc.training.recipe import Recipe, paper_weight
from repconc.training.stage_one import StageOneLoss

SUITE = "trials"
Change = Callable[[Recipe], Recipe]


class PartialSums(StageOneLoss):
    """The clustering loss on all partial sums, so that the first bytes of a code are a code. For one process."""

    def quantized(self, documents: Tensor, codes: Tensor) -> Tensor:
        self.codes = codes
        return super().quantized(documents, codes)

    def clustered(self, documents: Tensor, decoded: Tensor) -> Tensor:
        partial, losses = torch.zeros_like(documents), []
        for codebook, chosen in zip(self.quantizer.codebooks, self.codes.T, strict=True):
            partial = partial + codebook[chosen]
            losses.append(clustering(documents, partial))
        return torch.stack(losses).mean()


def changed(table: str, name: str, value: Any) -> Change:
    return lambda recipe: _with(recipe, table, name, value)


def times(table: str, name: str, factor: float) -> Change:
    return lambda recipe: _with(recipe, table, name, factor * getattr(getattr(recipe, table), name))


def weighted(factor: float) -> Change:
    """The paper's lambda times a number."""
    return lambda recipe: _with(recipe, "stage_one", "weight", factor * paper_weight(recipe.quantizer.bytes))


def as_it_is(recipe: Recipe) -> Recipe:
    return recipe


TRIALS: dict[str, Change] = {
    "as it is": as_it_is,
    "beam 1": changed("quantizer", "beam", 1),
    "beam 64": changed("quantizer", "beam", 64),
    "stage 1: a third of the codebook rate": times("stage_one", "codebook_rate", 1 / 3),
    "stage 1: three times the codebook rate": times("stage_one", "codebook_rate", 3),
    "stage 1: three times the encoder rate": times("stage_one", "encoder_rate", 3),
    "stage 1: epsilon .001": changed("stage_one", "epsilon", 0.001),
    "stage 1: epsilon .01": changed("stage_one", "epsilon", 0.01),
    "stage 1: without constraint": changed("stage_one", "constraint", False),
    "stage 1: a third of lambda": weighted(1 / 3),
    "stage 1: three times lambda": weighted(3),
    "stage 1: partial sums": as_it_is,
    "stage 1: batch 4096": changed("stage_one", "batch", 4096),
    "stage 2: three times the codebook rate": times("stage_two", "codebook_rate", 3),
    "stage 2: three times the encoder rate": times("stage_two", "encoder_rate", 3),
    "stage 2: twice the epochs": times("stage_two", "epochs", 2),
}
LOSSES = {"stage 1: partial sums": PartialSums}
"""Of stage 1, where it is not the usual one."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="heads")
    parser.add_argument("--sets", default="hotpotqa,insuranceqa")
    parser.add_argument("--sizes", default="8,24")
    options = parser.parse_args()
    for size in map(int, options.sizes.split(",")):
        for name in options.sets.split(","):
            _try(Setting(name, options.recipe, 0), size)


def _try(setting: Setting, size: int) -> None:
    key, made_with = setting.key | {"bytes": size}, results.provenance()
    missing = {name: change for name, change in TRIALS.items() if not results.has(SUITE, key | {"trial": name})}
    if not missing:
        return
    dense = setting.trainer("dense", setting.recipe)
    whole = train_dense(dense)[-1].best
    recipe = setting.sized(size, "additive")
    warmed = setting.trainer(f"trial-warmed-{size}", recipe, dense.model)
    warmed.warm_up()
    for name, change in missing.items():
        trainer = setting.trainer(f"trial-{slug(name)}-{size}", change(recipe), dense.model, warmed=warmed.folder)
        take_over(NEGATIVES, warmed.folder, trainer.folder)
        first, second = train_stages(trainer, LOSSES.get(name, StageOneLoss))
        line = key | {
            "trial": name,
            "stage 1": round(first.best, 5),
            "stage 2": round(second.best, 5),
            "uncompressed": round(whole, 5),
            "seconds": round(first.seconds + second.seconds, 1),
        }
        take_over(NEGATIVES, trainer.folder, warmed.folder)
        shutil.rmtree(trainer.folder)
        results.append(SUITE, line, made_with)
        print(line, flush=True)


def _with(recipe: Recipe, table: str, name: str, value: Any) -> Recipe:
    return recipe.model_copy(update={table: getattr(recipe, table).model_copy(update={name: value})})


def trials_table() -> Table:
    """A row a trial, a column a set and size: MRR@10 after both stages."""
    lines = results.read(SUITE)
    columns = list(dict.fromkeys((line["dataset"], line["recipe"], line["bytes"]) for line in lines))
    found = {(line["trial"], line["dataset"], line["recipe"], line["bytes"]): line for line in lines}
    rows = []
    for name in TRIALS:
        cells = [found.get((name, *column)) for column in columns]
        rows.append(
            [name, *("" if cell is None else f"{cell['stage 1']:.4f}, {cell['stage 2']:.4f}" for cell in cells)]
        )
    heads = [f"{dataset}, {recipe}, {size} bytes" for dataset, recipe, size in columns]
    return Table(["dev MRR@10 after stage 1, stage 2", *heads], rows)


if __name__ == "__main__":
    main()
