"""What the first bytes of an additive code are worth: they are scanned, and what they find is scored with all bytes.

    python -m benchmarks.nested --size 32 --first 4,8,16

Residual codes of the trained dense model's vectors, without any training of codes, dev questions, seed 0: once with
levels learned one after the other, where the first bytes of a code are the best code of that size, and once learned
together as the warm-up does. `repconc bench additive` says how much time it saves.
"""

import argparse
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from benchmarks import results
from benchmarks.setting import Setting, train_dense
from repconc.additive import AdditiveCodec
from repconc.evaluation.tables import Table
from repconc.indexes.codes import CodeIndex
from repconc.lengths import learn_lengths
from repconc.quantization.residual import ROUNDS, train_residual
from repconc.records import Hit, in_order

SUITE = "nested"
KINDS = {"one after the other": 0, "together": ROUNDS}
DEPTHS = (100, 300, 1000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="hotpotqa,insuranceqa")
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--first", default="4,8,16")
    options = parser.parse_args()
    for name in options.sets.split(","):
        _measure(name, options.size, [int(count) for count in options.first.split(",")])


def _measure(name: str, size: int, prefixes: list[int]) -> None:
    setting, made_with = Setting(name, "static", 0), results.provenance()
    setting.split = setting.recipe.validation_split
    dense = setting.trainer("dense", setting.recipe)
    train_dense(dense)
    queries, documents = setting.vectors(dense)
    for kind, rounds in KINDS.items():
        key = setting.key | {"levels": kind, "bytes": size}
        if results.has(SUITE, key):
            continue
        codec = train_residual(documents, size, setting.recipe.quantizer.codewords, rounds=rounds)
        codes = codec.encode(documents)
        codec = replace(codec, lengths=learn_lengths(codec.lengths_of(codes)))
        search = Nested(setting.examples.document_ids, codes, codec)
        found = {"all": setting.evaluate(queries, search.all.search).means}
        for first in prefixes:
            for depth in DEPTHS:
                find = partial(search.find, first=first, depth=depth)
                found[f"{first} of {size}, best {depth}"] = setting.evaluate(queries, find).means
        for how, means in found.items():
            line = key | {"how": how, "measures": {measure: round(value, 5) for measure, value in means.items()}}
            results.append(SUITE, line, made_with)
            print(line, flush=True)


class Nested:
    """Codes [N, M] that are searched by their first bytes, then by all of them."""

    def __init__(self, ids: list[str], codes: np.ndarray, codec: AdditiveCodec) -> None:
        self.ids, self.codes, self.codec = ids, codes, codec
        self.all = CodeIndex(ids, codes, codec, codec)
        self._numbers = {id: number for number, id in enumerate(ids)}
        self._gains = codec.gains[codec.classes_of(codes)]

    def find(self, queries: np.ndarray, k: int, first: int, depth: int) -> list[list[Hit]]:
        """The `depth` best by the first bytes, each with the length of its own first bytes; of those the best k."""
        codes, codec = self.codes[:, :first], AdditiveCodec(self.codec.codebooks[:first], self.codec.dimension)
        coding = replace(codec, lengths=learn_lengths(codec.lengths_of(codes)))
        shortlists = CodeIndex(self.ids, codes, codec, coding).search(queries, depth)
        tables = self.codec.tables(queries)  # [B, M, K]
        return [self._again(own, hits)[:k] for own, hits in zip(tables, shortlists, strict=True)]

    def _again(self, tables: np.ndarray, hits: list[Hit]) -> list[Hit]:
        numbers = np.array([self._numbers[hit.id] for hit in hits])
        sums = tables[np.arange(len(tables)), self.codes[numbers]].sum(axis=1) * self._gains[numbers]
        scored = zip(numbers.tolist(), sums.tolist(), strict=True)
        return in_order(Hit(self.ids[number], score) for number, score in scored)


def nested_table() -> Table:
    """How the levels were learned, what was searched, and what dev questions found."""
    rows: list[list[Any]] = [
        [f"{line['dataset']}, {line['levels']}", line["how"], *(f"{value:.3f}" for value in line["measures"].values())]
        for line in results.read(SUITE)
    ]
    return Table(["set, levels learned", "bytes that are scanned", "MRR@10", "R@100"], rows)


if __name__ == "__main__":
    main()
