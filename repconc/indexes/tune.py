"""How many lists to read: users know the quality or the latency that they want, not `probes`."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from repconc.errors import RepconcError
from repconc.indexes.ivf import Index
from repconc.indexes.lists import Progress
from repconc.records import Hit

Quality = Callable[[list[list[Hit]]], float]
"""A measure of the results of all queries; higher is better."""


class Point(NamedTuple):
    """What a number of probes gives."""

    probes: int
    quality: float
    milliseconds: float
    """Median of a single query on one thread, without encoding it."""


def measure_curve(index: Index, queries: np.ndarray, k: int, quality: Quality, progress: Progress) -> list[Point]:
    """Quality and latency for 1, 2, 4, ... lists and for all; queries: [B, D]."""
    steps = [2**power for power in range((index.manifest.lists - 1).bit_length())] + [index.manifest.lists]
    points = []
    for number, probes in enumerate(steps, start=1):
        hits, times = [], []
        for query in queries:
            start = time.perf_counter()
            hits += index.search(query, k, probes=probes)
            times.append(time.perf_counter() - start)
        points.append(Point(probes, quality(hits), float(np.median(times)) * 1e3))
        progress(number, len(steps))
    return points


def choose(points: Sequence[Point], *, target: float | None = None, latency: float | None = None) -> Point:
    """The fewest lists that keep `target` of the exhaustive quality, or the most that answer within `latency` ms."""
    if target is not None:
        return next(point for point in points if point.quality >= target * points[-1].quality)
    assert latency is not None
    quick = [point for point in points if point.milliseconds <= latency]
    if not quick:
        raise RepconcError(
            f"No setting answers within {latency:g} ms: one list takes {points[0].milliseconds:.2f} ms on this machine."
        )
    return quick[-1]
