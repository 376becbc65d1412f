"""Given vectors, compressed with labels, with queries only, or with nothing (`repconc compress`), beside its rivals.

    python -m benchmarks.compression --modes labels,queries,documents --sizes 24,48
    python -m benchmarks.compression --ablation --modes labels --sizes 24

Vectors are those of MiniLM-L6; queries and labels are the train split, of which a part is held out inside, as for a
user; each row is measured once on the test queries, which nothing has seen. Settings are those of recipes/compress-*.
A line that is there already is not measured again.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import results
from benchmarks.baselines import vectors_of
from repconc import Encoder, load_dataset
from repconc.compression.given import look_through, open_given
from repconc.compression.learner import codecs_of, scale_of
from repconc.compression.learning import Asked, Mode, choose_queries, make_examples, split_queries
from repconc.compression.rivals import System, coded, exhaustive, mapped, rivals
from repconc.data.catalogue import folder_of, get
from repconc.evaluation.measures import Evaluation, evaluate
from repconc.evaluation.significance import bootstrap_interval, paired_t_test
from repconc.files import cache_directory
from repconc.indexes.flat import FlatIndex
from repconc.models.heads import make_heads
from repconc.training.recipe import Recipe, make_recipe, read_recipe
from repconc.training.trainer import Trainer

SUITE, ENCODER = "compression", "minilm"
MEASURES = ("MRR@10", "nDCG@10", "R@100")
CODEWORDS = 256
STILL = {"encoder_rate": 1e-12}
"""A rate at which maps stay what they are."""
ABLATIONS: dict[str, dict[str, Any]] = {
    "without document map": {"document_map": False},
    "without maps": {"document_map": False, "stage_one": STILL, "stage_two": STILL},
    "without stand-ins": {"pieces": 0.0},
    "without constraint": {"stage_one": {"constraint": False}},
    "without distillation": {"stage_one": {"distillation": 0.0}, "stage_two": {"distillation": 0.0}},
    "distillation alone": {"stage_one": {"distillation": 1.0}, "stage_two": {"distillation": 1.0}},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="hotpotqa,insuranceqa")
    parser.add_argument("--modes", default="labels,queries,documents")
    parser.add_argument("--sizes", default="24,48")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--ablation", action="store_true", help="the settings that leave one thing out")
    options = parser.parse_args()
    for seed in map(int, options.seeds.split(",")):
        for name in options.sets.split(","):
            bench = Bench(name, seed)
            for size in map(int, options.sizes.split(",")):
                bench.rivals(size)
                for mode in options.modes.split(","):
                    for change in ABLATIONS if options.ablation else [""]:
                        bench.ours(mode, size, change)


class Bench:
    """One set and seed."""

    def __init__(self, name: str, seed: int) -> None:
        if not folder_of(name).is_dir():
            get(name)
        self.dataset, self.seed = load_dataset(folder_of(name)), seed
        self.vectors = vectors_of(self.dataset, ENCODER)
        self.made_with = results.provenance()
        self.test = self.asked("test")
        self.all = look_through(open_given(self.vectors), set(), None, seed, lambda done, total: None)
        self.key = {"dataset": name, "seed": seed}
        self._opqs: dict[int, Evaluation] = {}
        self._warmed: dict[int, bytes] = {}

    def rivals(self, size: int) -> None:
        for system in rivals(self.all, self.test, size, CODEWORDS, self.seed, print):  # OPQ also where all are known
            if system.name == "OPQ":
                self._opqs[size] = self._evaluation(system)
            self._keep(size, system.name, system, None)

    def ours(self, mode: Mode, size: int, change: str) -> None:
        row = f"{mode}, {change}" if change else mode
        if results.has(SUITE, self.key | {"bytes": size, "row": row}):
            return
        given = open_given(
            self.vectors,
            queries=None if mode == "documents" else self.asked("train").vectors,
            query_ids=None if mode == "documents" else self.asked("train").ids,
            qrels=self.dataset.qrels("train") if mode == "labels" else None,
        )
        rows = choose_queries(given, mode, self.seed)
        sample = self.all  # all documents: they are not too many
        splits = split_queries(given, sample, mode, rows, self.seed)
        recipe, document_map = _recipe(mode, size, self.seed, ABLATIONS.get(change, {}))
        recipe = recipe.model_copy(update={"scale": recipe.scale or scale_of(sample, splits)})
        model = make_heads(sample.vectors.shape[1], unit=sample.unit, document_map=document_map, seed=self.seed)
        with tempfile.TemporaryDirectory() as scratch:
            examples = make_examples(given, sample, splits, mode, self.seed)
            trainer = Trainer(model, examples, recipe, Path(scratch))
            seconds = self._warm_up(trainer, size)
            seconds += trainer.stage_one().seconds
            trainer.code()
            self._keep(size, f"{row}, stage 1", coded(row, sample, self.test, *codecs_of(trainer)), seconds)
            seconds += trainer.stage_two().seconds
        codecs = codecs_of(trainer)
        self._keep(size, f"{row}, maps uncompressed", mapped(row, sample, self.test, *codecs), None)
        self._keep(size, row, coded(row, sample, self.test, *codecs), seconds)

    def _warm_up(self, trainer: Trainer, size: int) -> float:
        """The same for all modes, so it is done once; gives the seconds that it took."""
        file = trainer.folder / "warmup.safetensors"
        if size in self._warmed:
            file.write_bytes(self._warmed[size])
        seconds = trainer.warm_up()
        self._warmed[size] = file.read_bytes()
        return seconds

    def asked(self, split: str) -> Asked:
        queries = self.dataset.queries(split)
        path = cache_directory() / "vectors" / f"{self.dataset.name}-{ENCODER}-{split}.npy"
        if not path.exists():
            np.save(path, Encoder(ENCODER).embed_queries([query.text for query in queries]))
        return Asked([query.id for query in queries], np.load(path))

    def _evaluation(self, system: System) -> Evaluation:
        return evaluate(system.run, self.dataset.qrels("test"), MEASURES, self.dataset.relevance("test"))

    def _keep(self, size: int, row: str, system: System, seconds: float | None) -> None:
        if results.has(SUITE, self.key | {"bytes": size, "row": row}):
            return
        evaluation = self._evaluation(system)
        line: dict[str, Any] = {
            **self.key,
            "bytes": size,
            "row": row,
            "bytes_per_document": system.bytes,
            "shared_bytes": system.shared,
            "measures": {name: round(value, 5) for name, value in evaluation.means.items()},
            "seconds": None if seconds is None else round(seconds, 1),
        }
        if size in self._opqs:
            line["p against OPQ"] = paired_t_test(evaluation.values["MRR@10"], self._opqs[size].values["MRR@10"])
        line["R@100 against uncompressed"] = self._difference(evaluation)
        results.append(SUITE, line, self.made_with)
        print({key: line[key] for key in ("dataset", "seed", "bytes", "row", "measures", "seconds")}, flush=True)

    def _difference(self, evaluation: Evaluation) -> list[float]:
        """The mean of the paired difference in R@100, and its 95 % interval."""
        if not hasattr(self, "_whole"):
            flat = FlatIndex(self.all.ids, [self.all.vectors])
            self._whole = self._evaluation(System("", 0, 0, exhaustive(flat, self.test)))
        difference = evaluation.values["R@100"] - self._whole.values["R@100"]
        return [round(value, 5) for value in (float(difference.mean()), *bootstrap_interval(difference))]


def _recipe(mode: str, size: int, seed: int, change: dict[str, Any]) -> tuple[Recipe, bool]:
    values = read_recipe(f"compress-{mode}")
    for table in ("stage_one", "stage_two"):
        values[table] = values[table] | change.get(table, {})
    values |= {"seed": seed, "quantizer": values.get("quantizer", {}) | {"bytes": size}, "dense": []}
    values["pieces"] = change.get("pieces", values.get("pieces", 0.0))
    return make_recipe(values), change.get("document_map", True)


if __name__ == "__main__":
    main()
