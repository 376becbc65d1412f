"""Suite `methods`, the paper's comparison: every compression method over the same dense model, splits and bytes.

    repconc bench methods [--quick] [--sets hotpotqa,path/to/beir]
    python -m benchmarks.methods --recipes static --sets hotpotqa --sizes 16 --seeds 0,1,2
    python -m benchmarks.methods --plan

A line that is there already is not measured again, a run that was killed goes on, and a method that fails is said to
have failed while the rest goes on. Several processes share the work: each takes the next cell that nobody works on.
Checkpoints that only a finished line needed are removed.
The quick version (one set, one size, one seed, an eighth of the epochs) works in a folder that it removes.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.compared import Comparison
from benchmarks.figures import Figure
from benchmarks.methods_goals import goals
from benchmarks.methods_tables import main_table
from benchmarks.plan import Cell, Line, estimated, is_sized, missing, plan
from benchmarks.setting import Setting, folder_for
from repconc.baselines.registry import methods
from repconc.errors import RepconcError, first_line
from repconc.evaluation.tables import Table
from repconc.files import cache_directory, locked
from repconc.training.recipe import Recipe

SUITE = "methods"
KEEPS_ITS_LINES = True
"""Lines are more than figures: they are kept here, as they come."""
RECIPES, SETS = ("static", "heads"), ("hotpotqa", "insuranceqa")
QUICK_SETS, QUICK_SHARE, QUICK_TURNS = ("insuranceqa",), 1 / 8, 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipes", default=",".join(RECIPES))
    parser.add_argument("--sets", default=",".join(SETS), help="names, or BEIR or MS MARCO folders, by comma")
    parser.add_argument("--sizes", help="bytes by comma [default: the paper's ratios]")
    parser.add_argument("--seeds", help="by comma [default: 0,1,2 for the first two sizes of a recipe, else 0]")
    parser.add_argument("--methods", help="names by comma [default: all]")
    parser.add_argument("--plan", action="store_true", help="print the cells in their order, and measure nothing")
    options = parser.parse_args()
    sizes, seeds = (
        [int(part) for part in text.split(",")] if text else None for text in (options.sizes, options.seeds)
    )
    cells = plan(options.recipes.split(","), options.sets.split(","), sizes, seeds)
    wanted = options.methods.split(",") if options.methods else None
    if unknown := set(wanted or []) - methods().keys():
        parser.error(f"there is no method {min(unknown)!r}; there are: {', '.join(methods())}")
    _announce(cells, wanted, each=options.plan)
    if not options.plan and _measure_all(cells, wanted):
        raise SystemExit(3)


def run(
    quick: bool, sets: Sequence[str] | None = None, recipes: Sequence[str] | None = None
) -> Iterator[Figure | Table]:
    """Figures of the suite: each method where codes are a 64th of the vectors, then how the goals stand."""
    chosen = recipes or RECIPES
    if quick:
        lines = list(_hurried((sets or QUICK_SETS)[0], chosen[0]))
    else:
        cells = plan(chosen, sets or SETS)
        _announce(cells)
        failed = _measure_all(cells)
        yield Figure("cells that failed", len(failed), "lines", goal="<= 0")
        lines = results.read(SUITE)
    for line in lines:
        where = f"{line['dataset']}, {line['recipe']}, seed {line['seed']}, {line['bytes_per_document']:,.0f} bytes"
        yield Figure(f"{line['method']}: {where}", line["measures"]["MRR@10"], "MRR@10")
    if not quick:
        yield from goals(lines)
    for recipe in dict.fromkeys(line["recipe"] for line in lines):
        yield main_table(lines, recipe)


def _announce(cells: Sequence[Cell], wanted: Sequence[str] | None = None, each: bool = False) -> None:
    """How long it will take; a line for each cell where they are asked for."""
    estimates = list(estimated(cells, results.read(SUITE), wanted))
    for (recipe, dataset, size, seed), names, own in estimates if each else []:
        _say(f"{own / 60:4.0f} minutes, {len(names):2} methods: {dataset}, {recipe}, {size} bytes, seed {seed}")
    hours, count = sum(estimate.seconds for estimate in estimates) / 3600, sum(len(one.names) for one in estimates)
    _say(f"About {hours:.1f} hours on one core for {count} lines that are missing, in {len(cells)} cells.")
    known = [line["seconds"] for line in results.read(SUITE)]
    _say(f"{len(known)} lines are there already; they took {sum(known) / 3600:.1f} hours.")


def _measure_all(cells: Sequence[Cell], wanted: Sequence[str] | None = None) -> list[str]:
    """Measure what is missing; gives what failed. Cells that another process is at come last."""
    start, busy = time.monotonic(), []
    results.provenance()  # of the code as it is now, before it runs for hours
    failed: list[str] = []
    for cell in cells:
        try:
            with locked(folder_for(cell.dataset, cell.recipe, cell.seed), wait=False):
                failed += _measure(cell, wanted)
        except BlockingIOError:
            busy.append(cell)
    for cell in busy:
        with locked(folder_for(cell.dataset, cell.recipe, cell.seed)):
            failed += _measure(cell, wanted)
    _say(f"{(time.monotonic() - start) / 3600:.2f} hours; failed: {'; '.join(failed) or 'none'}.")
    return failed


def _measure(cell: Cell, wanted: Sequence[str] | None) -> list[str]:
    names = missing(cell, results.read(SUITE), wanted)
    if not names:
        return []
    failed, made_with = [], results.provenance()
    try:
        comparison = Comparison(Setting(cell.dataset, cell.recipe, cell.seed))
    except RepconcError as error:  # other sets go on
        _say(f"FAILED {cell.dataset}, {cell.recipe}: {error}")
        return [f"{cell.dataset}, {cell.recipe}, {cell.size} bytes, seed {cell.seed}: {error}"]
    for outcome in _lines(comparison, cell, names):
        if isinstance(outcome, str):
            failed.append(outcome)
        else:
            results.append(SUITE, outcome, made_with)
            comparison.forget()
    return failed


def _hurried(dataset: str, recipe: str) -> Iterator[Line]:
    """The first seed at a 64th of the vectors, with short training, of which nothing stays."""
    setting = Setting(dataset, recipe, 0)
    setting.recipe = hurried(setting.recipe)
    cell = Cell(recipe, dataset, max(1, setting.encoder.dimension // 16), 0)
    with tempfile.TemporaryDirectory(dir=cache_directory()) as scratch:
        setting.folder = Path(scratch)
        for outcome in _lines(Comparison(setting), cell, list(methods())):
            if not isinstance(outcome, str):
                yield outcome


def hurried(recipe: Recipe) -> Recipe:
    """The same training in a small part of its epochs."""

    def short(phase: Any) -> Any:
        return phase.model_copy(update={"epochs": phase.epochs * QUICK_SHARE, "evaluations": 1})

    changed = {
        "dense": tuple(map(short, recipe.dense)),
        "quantizer": recipe.quantizer.model_copy(update={"turns": QUICK_TURNS}),
        "stage_one": short(recipe.stage_one),
        "stage_two": short(recipe.stage_two),
    }
    return recipe.model_copy(update=changed)


def _lines(comparison: Comparison, cell: Cell, names: Sequence[str]) -> Iterator[Line | str]:
    """The line of each method, or in one sentence why it has none."""
    for name in names:
        size = cell.size if is_sized(methods()[name]) else None
        try:
            line = comparison.line(name, size)
        except Exception as error:  # whatever it is: the other methods go on
            sentence = f"{name}, {comparison.setting.key}, {size} bytes: {first_line(error)}"
            _say(f"FAILED {sentence}")
            yield sentence
            continue
        shown = ("method", "dataset", "recipe", "seed", "bytes", "measures", "seconds")
        _say(str({key: line[key] for key in shown}))
        yield line


def _say(text: str) -> None:
    """Beside the figures, which are for machines too."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
