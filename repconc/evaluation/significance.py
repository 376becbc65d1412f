"""Is one system better than another, or was it luck? Paired tests over the same queries."""

from collections.abc import Sequence

import numpy as np
from scipy import stats

RESAMPLES = 10_000


def paired_t_test(first: np.ndarray, second: np.ndarray) -> float:
    """The p-value of the two-tailed paired t-test; 1 where the two never differ."""
    difference = first - second
    if not difference.any() or len(difference) < 2:
        return 1.0
    if np.ptp(difference) == 0:  # the same difference on every query: no chance is involved
        return 0.0
    return float(stats.ttest_rel(first, second).pvalue)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: p-values that may be compared with 0.05 although several tests were made."""
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(np.argsort(p_values)):
        largest = max(largest, min(1.0, p_values[index] * (len(p_values) - rank)))
        corrected[index] = largest
    return corrected


def bootstrap_interval(values: np.ndarray, level: float = 0.95, seed: int = 0) -> tuple[float, float]:
    """The percentile interval of the mean, over queries drawn with replacement."""
    generator = np.random.default_rng(seed)
    size = max(1, 10_000_000 // len(values))
    means = np.concatenate(
        [
            values[generator.integers(len(values), size=(min(size, RESAMPLES - start), len(values)))].mean(axis=1)
            for start in range(0, RESAMPLES, size)
        ]
    )
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def stars(p: float) -> str:
    """The paper's marks: * for p < 0.05, ** for p < 0.01."""
    return "**" if p < 0.01 else "*" if p < 0.05 else ""
