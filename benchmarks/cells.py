"""How figures stand in tables."""

from statistics import mean, stdev


def with_spread(values: list[float]) -> str:
    """The mean over seeds, with the standard deviation where there are several and it shows."""
    spread = f" ± {stdev(values):.3f}" if len(values) > 1 and stdev(values) >= 0.0005 else ""
    return f"{mean(values):.3f}{spread}"
