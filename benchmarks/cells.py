"""How figures stand in tables."""

from collections.abc import Iterable, Mapping
from statistics import mean, stdev
from typing import Any


def mean_of(lines: Iterable[Mapping[str, Any]], measure: str) -> float:
    """Of a measure over lines, which are those of seeds."""
    return float(mean(line["measures"][measure] for line in lines))


def fastest(lines: Iterable[Mapping[str, Any]], column: str) -> float | None:
    """Of all seeds that have a time: the machine does other work beside, which only adds to it."""
    return min((line[column] for line in lines if line[column] is not None), default=None)


def with_spread(values: list[float]) -> str:
    """The mean over seeds, with the standard deviation where there are several and it shows."""
    spread = f" ± {stdev(values):.3f}" if len(values) > 1 and stdev(values) >= 0.0005 else ""
    return f"{mean(values):.3f}{spread}"
