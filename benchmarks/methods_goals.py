"""Whether the comparison comes out as the paper's, as a function of its lines: figures with goals.

RepCONC is to be best or tied for best wherever codes are a 64th of the vectors or smaller, and the paper's order is to
hold. Two tests, each careful with what it is asked: a star for us wants a paired test in every seed (`p_value`); for
others to be better than us one test over all seeds together is enough, in any measure (`pooled_p_value`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.cells import mean_of
from benchmarks.figures import Figure
from repconc.baselines import repconc, repconc_additive
from repconc.evaluation.significance import paired_t_test

OURS, ADDITIVE = repconc.NAME, repconc_additive.NAME
ORDER = ("PQ", "OPQ", "DPQ", "JPQ", OURS)
"""Of the paper's table at 64x, the worst first."""
MEASURES = ("MRR@10", "R@100")
Line = dict[str, Any]


def goals(lines: Iterable[Line]) -> Iterator[Figure]:
    """For each set, encoder and size that RepCONC was measured at."""
    cells: dict[tuple[str, str, int], dict[str, list[Line]]] = {}
    for line in lines:
        if line["bytes"] is not None:
            cell = cells.setdefault((line["dataset"], line["recipe"], line["bytes"]), {})
            cell.setdefault(line["method"], []).append(line)
    for (dataset, recipe, size), cell in cells.items():
        if OURS not in cell or 64 * size > 4 * cell[OURS][0]["dimensions"]:
            continue
        where = f"{dataset}, {recipe}, {size} bytes"
        for ours in (OURS, ADDITIVE):
            if ours in cell:
                better = better_than(ours, cell)
                yield Figure(f"methods better than {ours}: {where}", len(better), "methods", ", ".join(better), "<= 0")
        if all(name in cell for name in ORDER):
            wrong = [
                f"{low} < {high}"
                for low, high in pairwise(ORDER)
                if mean_of(cell[low], "MRR@10") >= mean_of(cell[high], "MRR@10")
            ]
            yield Figure(f"the paper's order does not hold: {where}", len(wrong), "pairs", ", ".join(wrong), "<= 0")


def better_than(ours: str, cell: Mapping[str, Sequence[Line]]) -> list[str]:
    """Which methods of others are, and in what."""
    return [
        f"{name} ({measure})"
        for name, own in cell.items()
        for measure in MEASURES
        if not name.startswith(OURS) and pooled_p_value(cell[ours], own, measure) < 0.05
    ]


def p_value(worse: Sequence[Line], better: Sequence[Line], measure: str = "MRR@10") -> float:
    """The largest p-value over the seeds that both have; 1 where the second is not better in all of them."""
    pairs = [(one, other) for one in worse for other in better if one["seed"] == other["seed"]]
    return max((_tested(_values(one, measure), _values(other, measure)) for one, other in pairs), default=1.0)


def pooled_p_value(worse: Sequence[Line], better: Sequence[Line], measure: str = "MRR@10") -> float:
    """Of one test over what each question has in the mean over the seeds that both have; 1 where that is not better."""
    seeds = {line["seed"] for line in worse} & {line["seed"] for line in better}
    if not seeds:
        return 1.0
    low, high = (
        np.mean([_values(line, measure) for line in lines if line["seed"] in seeds], axis=0)
        for lines in (worse, better)
    )
    return _tested(low, high)


def _tested(low: np.ndarray, high: np.ndarray) -> float:
    """A two-tailed p-value, or 1 where the second is not the higher one."""
    return paired_t_test(low, high) if low.mean() < high.mean() else 1.0


def _values(line: Line, measure: str) -> np.ndarray:
    """[Q]: of each test question."""
    if measure == "R@100":
        return np.array(line["recalls"])
    return np.array([1 / rank if rank else 0.0 for rank in (int(digit, 16) for digit in line["ranks"])])
