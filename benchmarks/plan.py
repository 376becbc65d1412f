"""Which cells the comparison of methods measures, in which order, and how long that takes.

The most valuable come first, so that a run that is interrupted leaves a useful table: seed 0 where codes are a 64th of
the vectors, for every set and encoder; then its other seeds; then three seeds of a second size; then the other sizes.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from benchmarks.setting import label_of
from repconc.baselines.registry import methods

SIZES = {"static": (16, 8, 4, 32), "heads": (24, 8, 48, 16, 4, 12, 6)}
"""Bytes by recipe. The first is a 64th of the vectors; it and the second are measured with three seeds."""
PAPER_SIZES = (48, 16, 32, 24, 12, 8, 4)
"""Those of any other recipe: the paper's, for 768 dimensions."""
SEEDS = (0, 1, 2)
GUESSED = {"train": 150.0, "dense": 80.0, "fit": 20.0}
"""Seconds of a method by its kind, until a line says better."""
Line = dict[str, Any]


class Cell(NamedTuple):
    """All methods on one set, with one encoder, size and seed."""

    recipe: str
    dataset: str
    size: int
    seed: int


class Estimate(NamedTuple):
    """What is still to be done in a cell."""

    cell: Cell
    names: list[str]
    seconds: float


def plan(
    recipes: Sequence[str],
    datasets: Sequence[str],
    sizes: Sequence[int] | None = None,
    seeds: Sequence[int] | None = None,
) -> list[Cell]:
    """The cells in their order. sizes, seeds: instead of the usual ones."""
    cells = {}
    for dataset in datasets:
        for recipe in recipes:
            for place, size in enumerate(sizes or SIZES.get(recipe, PAPER_SIZES)):
                for seed in seeds or (SEEDS if size in SIZES.get(recipe, PAPER_SIZES)[:2] else SEEDS[:1]):
                    cells[Cell(recipe, dataset, size, seed)] = (min(place, 2), seed, place)
    return sorted(cells, key=lambda cell: cells[cell])


def is_sized(method: Any) -> bool:
    """Whether it comes in the size that is asked for; the others have one line for each seed."""
    return not hasattr(method, "fixed") and (hasattr(method, "fit") or hasattr(method, "train"))


def missing(cell: Cell, lines: Iterable[Line], wanted: Sequence[str] | None = None) -> list[str]:
    """Methods of these names, or all, that have no line in a cell yet."""
    known = {(line["method"], line["bytes"]) for line in lines if key_of(cell).items() <= line.items()}
    return [
        name
        for name, method in methods().items()
        if (wanted is None or name in wanted) and (name, cell.size if is_sized(method) else None) not in known
    ]


def key_of(cell: Cell) -> Line:
    """What a cell's lines have in common with those of its other sizes."""
    return {"dataset": label_of(cell.dataset), "recipe": Path(cell.recipe).stem, "seed": cell.seed}


def estimated(cells: Iterable[Cell], lines: Sequence[Line], wanted: Sequence[str] | None = None) -> Iterator[Estimate]:
    """Each cell with what is missing in it once those before it are measured, and how long that takes."""
    planned = list(lines)
    for cell in cells:
        names = missing(cell, planned, wanted)
        planned += [
            {"method": name, "bytes": cell.size if is_sized(methods()[name]) else None, **key_of(cell)}
            for name in names
        ]
        yield Estimate(cell, names, sum(_seconds(name, cell, lines) for name in names))


def _seconds(name: str, cell: Cell, lines: Sequence[Line]) -> float:
    """As long as the method took elsewhere on the same set with the same encoder."""
    alike = {key: value for key, value in key_of(cell).items() if key != "seed"} | {"method": name}
    took = [max(line["seconds"], line["fit_seconds"] or 0.0) for line in lines if alike.items() <= line.items()]
    kinds = (GUESSED[kind] for kind in GUESSED if hasattr(methods()[name], kind))
    return float(mean(took)) if took else next(kinds, GUESSED["fit"])
