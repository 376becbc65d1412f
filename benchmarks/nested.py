"""What the first bytes of an additive code are worth: they are scanned, and what they find is scored with all bytes.

    python -m benchmarks.nested --size 32 --first 4,8,16

Residual codes of the trained dense model's vectors, without any training of codes, dev questions, seed 0: once with
levels learned one after the other, where the first codebooks are those that a code of that size would have, and once
learned together as the warm-up does. Either way a beam search chooses codewords for the code as a whole, not for its
first bytes, and one index serves both: its classes of lengths are those of whole codes. How long such a scan takes is
in `repconc bench additive`.
"""

import argparse
from functools import partial
from typing import Any

from benchmarks import results
from benchmarks.setting import on_dev
from repconc.evaluation.tables import Table
from repconc.indexes.codes import CodeIndex
from repconc.quantization.residual import ROUNDS, train_residual

SUITE = "nested"
KINDS = {"one after the other": 0, "together": ROUNDS}
DEPTHS = (100, 300, 1000)
MEASURES = ("MRR@10", "R@100")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="hotpotqa,insuranceqa")
    parser.add_argument("--size", type=int, default=32)
    parser.add_argument("--first", default="4,8,16")
    options = parser.parse_args()
    for name in options.sets.split(","):
        _measure(name, options.size, [int(count) for count in options.first.split(",")])


def _measure(name: str, size: int, prefixes: list[int]) -> None:
    made_with = results.provenance()
    setting, queries, documents = on_dev(name)
    for kind, rounds in KINDS.items():
        key = setting.key | {"levels": kind, "bytes": size}
        ways = {f"all {size}": (size, 100)}
        ways |= {f"{first} of {size}, best {depth}": (first, depth) for first in prefixes for depth in DEPTHS}
        missing = {how: way for how, way in ways.items() if not results.has(SUITE, key | {"how": how})}
        if not missing:
            continue
        codec = train_residual(documents, size, setting.recipe.quantizer.codewords, rounds=rounds)
        codes = codec.encode(documents)
        index = CodeIndex(setting.examples.document_ids, codes, codec, codec.with_lengths(codes))
        for how, (first, depth) in missing.items():
            means = setting.evaluate(queries, partial(index.search, first=first, depth=depth)).means
            line = key | {"how": how, "measures": {measure: round(value, 5) for measure, value in means.items()}}
            results.append(SUITE, line, made_with)
            print(line, flush=True)


def nested_table() -> Table:
    """How the levels were learned, what was searched, and what dev questions found."""
    rows: list[list[Any]] = [
        [f"{line['dataset']}, {line['levels']}", line["how"], *(f"{line['measures'][name]:.3f}" for name in MEASURES)]
        for line in results.read(SUITE)
    ]
    return Table(["set, levels learned", "bytes that are scanned", *MEASURES], rows)


if __name__ == "__main__":
    main()
