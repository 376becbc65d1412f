"""How figures stand in tables."""

from collections.abc import Iterable, Mapping
from statistics import mean, stdev
from typing import Any


def mean_of(lines: Iterable[Mapping[str, Any]], measure: str) -> float:
    """Of a measure over lines, which are those of seeds."""
    return float(mean(line["measures"][measure] for line in lines))


def with_spread(values: list[float]) -> str:
    """The mean over seeds, with the standard deviation where there are several and it shows."""
    spread = f" ± {stdev(values):.3f}" if len(values) > 1 and stdev(values) >= 0.0005 else ""
    return f"{mean(values):.3f}{spread}"
