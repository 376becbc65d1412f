"""Several runs beside each other: means with intervals, differences from the first run, and whether they are real."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from repconc.evaluation.measures import MEASURES, Evaluation, evaluate
from repconc.evaluation.significance import bootstrap_interval, holm, paired_t_test, stars
from repconc.evaluation.tables import Table
from repconc.records import Qrels, Run


@dataclass(frozen=True)
class Cell:
    """One system on one measure; the last four are about its difference from the reference, which itself has none."""

    mean: float
    interval: tuple[float, float]
    difference: float | None = None
    difference_interval: tuple[float, float] | None = None
    p: float | None = None
    p_holm: float | None = None


Comparison = dict[str, dict[str, Cell]]
"""System -> measure -> cell; the first system is the reference."""


def compare(
    runs: Mapping[str, Run], qrels: Qrels, measures: Sequence[str] = MEASURES, relevance: int = 1, seed: int = 0
) -> Comparison:
    """Compare each run with the first, query by query; p-values are corrected over the runs of one measure."""
    evaluations = {name: evaluate(run, qrels, measures, relevance) for name, run in runs.items()}
    reference, *others = evaluations.values()
    comparison: Comparison = {name: {} for name in runs}
    for measure in measures:
        p_values = [paired_t_test(other.values[measure], reference.values[measure]) for other in others]
        tests = [None, *zip(p_values, holm(p_values), strict=True)]
        for (name, evaluation), test in zip(evaluations.items(), tests, strict=True):
            comparison[name][measure] = _cell(evaluation, reference, measure, test, seed)
    return comparison


def _cell(
    evaluation: Evaluation, reference: Evaluation, measure: str, test: tuple[float, float] | None, seed: int
) -> Cell:
    values = evaluation.values[measure]
    interval = bootstrap_interval(values, seed=seed)
    if test is None:
        return Cell(float(values.mean()), interval)
    difference = values - reference.values[measure]
    return Cell(
        float(values.mean()), interval, float(difference.mean()), bootstrap_interval(difference, seed=seed), *test
    )


def comparison_table(comparison: Comparison) -> Table:
    """One row per system; a figure, its 95 % interval, and the marks of its difference from the first row."""
    measures = list(next(iter(comparison.values())))
    rows = [[name, *(cell_text(cells[measure]) for measure in measures)] for name, cells in comparison.items()]
    note = (
        f"[95 % bootstrap interval]; */** differs from {next(iter(comparison))} at p < 0.05/0.01, "
        "two-tailed paired t-test, Holm-corrected."
    )
    return Table(["system", *measures], rows, note)


def cell_text(cell: Cell, digits: int = 4) -> str:
    """A figure, the mark of its difference from the reference, and its interval."""
    low, high = cell.interval
    mark = stars(cell.p_holm) if cell.p_holm is not None else ""
    return f"{cell.mean:.{digits}f}{mark} [{low:.3f}, {high:.3f}]"
