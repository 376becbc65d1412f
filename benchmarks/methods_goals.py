"""Whether the comparison comes out as the paper's, as a function of its lines: figures with goals.

RepCONC is to be best or tied for best wherever codes are a 64th of the vectors or smaller, and the paper's order is to
hold. A method is better where its mean is higher and a paired test says so in every seed.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.cells import mean_of
from benchmarks.figures import Figure
from repconc.evaluation.significance import paired_t_test

OURS = "RepCONC"
ORDER = ("PQ", "OPQ", "DPQ", "JPQ", OURS)
"""Of the paper's table at 64x, the worst first."""
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
        better = [name for name, own in cell.items() if not name.startswith(OURS) and p_value(cell[OURS], own) < 0.05]
        yield Figure(f"methods better than RepCONC: {where}", len(better), "methods", ", ".join(better), "<= 0")
        if all(name in cell for name in ORDER):
            wrong = [
                f"{low} < {high}"
                for low, high in pairwise(ORDER)
                if mean_of(cell[low], "MRR@10") >= mean_of(cell[high], "MRR@10")
            ]
            yield Figure(f"the paper's order does not hold: {where}", len(wrong), "pairs", ", ".join(wrong), "<= 0")


def p_value(worse: Sequence[Line], better: Sequence[Line], measure: str = "MRR@10") -> float:
    """The largest p-value over the seeds that both have; 1 where the second is not better in all of them."""
    pairs = [(one, other) for one in worse for other in better if one["seed"] == other["seed"]]
    return max((_two_tailed(one, other, measure) for one, other in pairs), default=1.0)


def _two_tailed(worse: Line, better: Line, measure: str) -> float:
    low, high = _values(worse, measure), _values(better, measure)
    return paired_t_test(low, high) if low.mean() < high.mean() else 1.0


def _values(line: Line, measure: str) -> np.ndarray:
    """[Q]: of each test question."""
    if measure == "R@100":
        return np.array(line["recalls"])
    return np.array([1 / rank if rank else 0.0 for rank in (int(digit, 16) for digit in line["ranks"])])
