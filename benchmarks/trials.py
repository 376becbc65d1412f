"""What was tried to make codes better: one setting at a time, measured on dev questions.

    python -m benchmarks.trials --recipe heads --sizes 8,24 --sets insuranceqa
    python -m benchmarks.trials --codes product --recipe heads --sizes 24 --trials splits
    python -m benchmarks.trials --codes product --recipe heads --sizes 8 --trials lengths

All trials of a size start from the same dense model, warm-up and mined negatives, but for those of other codebooks. A
killed run goes on, and a line that is there is not measured again.
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
from benchmarks.training import SUITES as STRUCTURES
from benchmarks.training import train_stages
from repconc.baselines import jpq
from repconc.evaluation.tables import Table
from repconc.losses.clustering import clustering
from repconc.quantization.quantizer import Quantizer
from repconc.training.loop import State
from repconc.training.recipe import Codes, Recipe, paper_loss, paper_weight
from repconc.training.stage_one import StageOneLoss
from repconc.training.trainer import Trainer

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


class OtherLengths(StageOneLoss):
    """Lengths are given back to product codes too, and additive codes go without, in both stages."""

    def __init__(self, quantizer: Quantizer, *settings: Any) -> None:
        super().__init__(quantizer, *settings)
        quantizer.unit = not quantizer.unit


def changed(table: str, name: str, value: Any) -> Change:
    return lambda recipe: _with(recipe, table, name, value)


def times(table: str, name: str, factor: float) -> Change:
    return lambda recipe: _with(recipe, table, name, factor * getattr(getattr(recipe, table), name))


def slower(table: str, factor: float) -> Change:
    """Both rates times a number."""
    return lambda recipe: times(table, "codebook_rate", factor)(times(table, "encoder_rate", factor)(recipe))


def weighted(factor: float) -> Change:
    """The paper's lambda times a number."""
    return lambda recipe: _with(recipe, "stage_one", "weight", factor * paper_weight(recipe.quantizer.bytes))


def half_bytes(recipe: Recipe) -> Recipe:
    """Twice as many levels of 16 codewords: as many bits, though each takes a byte here; codebooks of an eighth."""
    size = recipe.quantizer.bytes
    kept = _with(weighted(1)(recipe), "stage_two", "loss", paper_loss(size))
    return _with(_with(kept, "quantizer", "codewords", 16), "quantizer", "bytes", 2 * size)


def split(share: float) -> Change:
    """As many epochs as the recipe has, this share of them in stage 1."""

    def change(recipe: Recipe) -> Recipe:
        total = recipe.stage_one.epochs + recipe.stage_two.epochs
        first = _with(recipe, "stage_one", "epochs", share * total)
        second = _with(first, "stage_two", "epochs", total - share * total)
        if share:
            return second
        often = recipe.stage_one.evaluations + recipe.stage_two.evaluations  # dev chooses as often, too
        return _with(second, "stage_two", "evaluations", often)

    return change


def as_it_is(recipe: Recipe) -> Recipe:
    return recipe


TRIALS: dict[str, Change] = {
    "as it is": as_it_is,
    "beam 1": changed("quantizer", "beam", 1),
    "beam 64": changed("quantizer", "beam", 64),
    "twice as many levels of 16 codewords": half_bytes,
    "stage 1: a third of the codebook rate": times("stage_one", "codebook_rate", 1 / 3),
    "stage 1: three times the codebook rate": times("stage_one", "codebook_rate", 3),
    "stage 1: three times the encoder rate": times("stage_one", "encoder_rate", 3),
    "stage 1: three times the epochs": times("stage_one", "epochs", 3),
    "stage 1: epsilon .001": changed("stage_one", "epsilon", 0.001),
    "stage 1: epsilon .01": changed("stage_one", "epsilon", 0.01),
    "stage 1: without constraint": changed("stage_one", "constraint", False),
    "stage 1: a third of lambda": weighted(1 / 3),
    "stage 1: three times lambda": weighted(3),
    "stage 1: partial sums": as_it_is,
    "stage 1: batch 4096": changed("stage_one", "batch", 4096),
    "stage 2: a third of both rates": slower("stage_two", 1 / 3),
    "stage 2: a tenth of both rates": slower("stage_two", 1 / 10),
    "stage 2: three times the codebook rate": times("stage_two", "codebook_rate", 3),
    "stage 2: three times the encoder rate": times("stage_two", "encoder_rate", 3),
    "stage 2: twice the epochs": times("stage_two", "epochs", 2),
}
SPLITS: dict[str, Change] = {
    "as it is": as_it_is,
    "without stage 1": changed("stage_one", "epochs", 0.0),
    "without stage 1, its epochs in stage 2": split(0.0),
    "an eighth of all epochs in stage 1": split(1 / 8),
    "a quarter of all epochs in stage 1": split(1 / 4),
}
"""How epochs are best divided between the stages; without stage 1 RepCONC is JPQ."""
LENGTHS: dict[str, Change] = {"as it is": as_it_is, "lengths the other way round": as_it_is}
"""What lengths do for each structure: additive codes of vectors of length 1 have them back, product codes do not."""
GROUPS = {"settings": TRIALS, "splits": SPLITS, "lengths": LENGTHS}
LOSSES = {"stage 1: partial sums": PartialSums, "lengths the other way round": OtherLengths}
"""Of stage 1, where it is not the usual one."""
ADDITIVE_ONLY = {"beam 1", "beam 64", "twice as many levels of 16 codewords", "stage 1: partial sums"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="heads")
    parser.add_argument("--sets", default="hotpotqa,insuranceqa")
    parser.add_argument("--sizes", default="8,24")
    parser.add_argument("--codes", default="additive", choices=STRUCTURES)
    parser.add_argument("--trials", default="settings", choices=GROUPS)
    options = parser.parse_args()
    for size in map(int, options.sizes.split(",")):
        for name in options.sets.split(","):
            _try(Setting(name, options.recipe, 0), size, options.codes, GROUPS[options.trials])


def _try(setting: Setting, size: int, codes: Codes, trials: dict[str, Change]) -> None:
    key, made_with = setting.key | {"bytes": size, "codes": codes}, results.provenance()
    missing = {
        name: change
        for name, change in trials.items()
        if not results.has(SUITE, key | {"trial": name}) and (codes == "additive" or name not in ADDITIVE_ONLY)
    }
    if not missing:
        return
    dense = setting.trainer("dense", setting.recipe)
    whole = train_dense(dense)[-1].best
    recipe = setting.sized(size, codes)
    warmed = setting.trainer(f"trial-warmed-{codes}-{size}", recipe, dense.model)
    warmed.warm_up()
    for name, change in missing.items():
        folder, chosen = f"trial-{slug(name)}-{codes}-{size}", change(recipe)
        alike = chosen.quantizer.model_copy(update={"beam": recipe.quantizer.beam}) == recipe.quantizer
        trainer = setting.trainer(folder, chosen, dense.model, warmed=warmed.folder if alike else None)
        if alike:
            take_over(NEGATIVES, warmed.folder, trainer.folder)
        *first, second = _train(trainer, LOSSES.get(name, StageOneLoss))
        line = key | {
            "trial": name,
            "stage 1": round(first[0].best, 5) if first else None,
            "stage 2": round(second.best, 5),
            "uncompressed": round(whole, 5),
            "seconds": round(sum(state.seconds for state in (*first, second)), 1),
        }
        if alike:
            take_over(NEGATIVES, trainer.folder, warmed.folder)
        shutil.rmtree(trainer.folder)
        results.append(SUITE, line, made_with)
        print(line, flush=True)


def _train(trainer: Trainer, loss_of: type[StageOneLoss]) -> list[State]:
    """Both stages, or the second alone where the first has no epochs."""
    if trainer.recipe.stage_one.epochs:
        return train_stages(trainer, loss_of)
    trainer.warm_up()
    return jpq.train(trainer)


def _with(recipe: Recipe, table: str, name: str, value: Any) -> Recipe:
    return recipe.model_copy(update={table: getattr(recipe, table).model_copy(update={name: value})})


def trials_table(group: str, codes: str) -> Table:
    """A row a trial, a column a set and size: MRR@10 after each stage."""
    lines = [line for line in results.read(SUITE) if line["codes"] == codes and line["trial"] in GROUPS[group]]
    tried = [line for line in lines if line["trial"] != "as it is"]
    columns = list(dict.fromkeys((line["dataset"], line["recipe"], line["bytes"]) for line in tried))
    found = {(line["trial"], line["dataset"], line["recipe"], line["bytes"]): _cell(line) for line in lines}
    rows = [[name, *(found.get((name, *column), "") for column in columns)] for name in GROUPS[group]]
    rows = [row for row in rows if any(row[1:])]
    heads = [f"{dataset}, {recipe}, {size} bytes" for dataset, recipe, size in columns]
    return Table(["dev MRR@10 after stage 1, stage 2", *heads], rows)


def _cell(line: dict[str, Any]) -> str:
    second = f"{line['stage 2']:.4f}"
    return second if line["stage 1"] is None else f"{line['stage 1']:.4f}, {second}"


if __name__ == "__main__":
    main()
