"""What the first bytes of an additive code are worth: they are scanned, and what they find is scored with all bytes.

    python -m benchmarks.nested --recipe heads --size 48 --first 4,8,16

RepCONC with additive codes, trained with the settings of the comparison; dev questions, seed 0. A beam search chooses
codewords for the code as a whole, not for its first bytes, and one index serves both: its classes of lengths are those
of whole codes. How long such a scan takes is in `repconc bench additive`.
"""

import argparse
from functools import partial
from typing import Any

from benchmarks import results
from benchmarks.training import Ablation
from repconc.evaluation.tables import Table

SUITE = "nested"
DEPTHS = (100, 300, 1000)
MEASURES = ("MRR@10", "R@100")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="heads")
    parser.add_argument("--sets", default="hotpotqa,insuranceqa")
    parser.add_argument("--size", type=int, default=48)
    parser.add_argument("--first", default="4,8,16")
    options = parser.parse_args()
    for name in options.sets.split(","):
        _measure(name, options.recipe, options.size, [int(count) for count in options.first.split(",")])


def _measure(name: str, recipe: str, size: int, prefixes: list[int]) -> None:
    made_with, ablation = results.provenance(), Ablation(name, recipe, 0, [], "additive")
    setting = ablation.setting
    setting.split = setting.recipe.validation_split
    ways = {f"all {size}": (size, 100)}
    ways |= {f"{first} of {size}, best {depth}": (first, depth) for first in prefixes for depth in DEPTHS}
    key = setting.key | {"bytes": size}
    missing = {how: way for how, way in ways.items() if not results.has(SUITE, key | {"how": how})}
    if not missing:
        return
    _, trained = ablation.models(size)
    index, queries = setting.index(trained), setting.asked(trained)
    for how, (first, depth) in missing.items():
        means = setting.evaluate(queries, partial(index.search, first=first, depth=depth)).means
        line = key | {"how": how, "measures": {measure: round(value, 5) for measure, value in means.items()}}
        results.append(SUITE, line, made_with)
        print(line, flush=True)


def nested_table() -> Table:
    """What was searched, and what dev questions found."""
    rows: list[list[Any]] = [
        [f"{line['dataset']}, {line['recipe']}", line["how"], *(f"{line['measures'][name]:.3f}" for name in MEASURES)]
        for line in results.read(SUITE)
    ]
    return Table(["set and encoder", "bytes that are scanned", *MEASURES], rows)


if __name__ == "__main__":
    main()
