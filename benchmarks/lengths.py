"""What decoded lengths do to a ranking: codes without any training, as they are and with lengths given back.

    python -m benchmarks.lengths --sizes 8,16

PQ, OPQ and residual (additive) codes of the trained dense model's vectors, whose length is 1: their squared error, how
much the lengths of decoded vectors differ, and what dev questions find, before and after scores are multiplied by the
gains of sixteen classes of lengths (repconc/lengths.py). Seed 0.
"""

import argparse
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks import results
from benchmarks.setting import Setting, on_dev
from repconc.codec import Codec
from repconc.evaluation.tables import Table
from repconc.indexes.codes import CodeIndex
from repconc.lengths import learn_lengths
from repconc.quantization.structures import warm_up

SUITE = "lengths"
COLUMNS = ("squared error", "spread of lengths", "MRR@10", "MRR@10 with lengths", "R@100", "R@100 with lengths")
KINDS: dict[str, dict[str, Any]] = {
    "PQ": {"codes": "product", "rotate": False},
    "OPQ": {"codes": "product"},
    "residual": {"codes": "additive"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="hotpotqa,insuranceqa")
    parser.add_argument("--sizes", default="8,16")
    options = parser.parse_args()
    for name in options.sets.split(","):
        _measure(name, [int(size) for size in options.sizes.split(",")])


def _measure(name: str, sizes: list[int]) -> None:
    made_with = results.provenance()
    setting, queries, documents = on_dev(name)
    quantizer = setting.recipe.quantizer
    for size in sizes:
        for kind, chosen in KINDS.items():
            key = setting.key | {"kind": kind, "bytes": size}
            if results.has(SUITE, key):
                continue
            codec = warm_up(documents, bytes=size, codewords=quantizer.codewords, turns=quantizer.turns, **chosen)
            line = key | figures_of(setting, codec, codec.encode(documents), queries, documents)
            results.append(SUITE, line, made_with)
            print(line, flush=True)


def figures_of(
    setting: Setting, codec: Codec, codes: np.ndarray, queries: np.ndarray, documents: np.ndarray
) -> dict[str, float]:
    """What is lost by codes [N, M] of documents [N, D], and what questions [Q, D] find."""
    lengths = codec.lengths_of(codes)
    figures = {
        "squared error": float(((codec.transform(documents) - codec.decode(codes)) ** 2).sum(axis=1).mean()),
        "spread of lengths": float(lengths.std() / lengths.mean()),
    }
    for how, coding in (("", codec), (" with lengths", replace(codec, lengths=learn_lengths(lengths)))):
        index = CodeIndex(setting.examples.document_ids, codes, codec, coding)
        figures |= {f"{name}{how}": value for name, value in setting.evaluate(queries, index.search).means.items()}
    return {name: round(value, 5) for name, value in figures.items()}


def lengths_table() -> Table:
    """All that was measured."""
    rows = [
        [f"{line['dataset']}, {line['kind']}", str(line["bytes"]), *(f"{line[column]:.3f}" for column in COLUMNS)]
        for line in results.read(SUITE)
    ]
    return Table(["set and codes", "bytes", *COLUMNS], rows)


if __name__ == "__main__":
    main()
