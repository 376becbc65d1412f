"""How many lists to read: users know the quality or the latency that they want, not `probes`."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from repconc.errors import RepconcError
from repconc.indexes.ivf import Index
from repconc.packages import Progress
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
    index.search(queries, k, probes=index.manifest.lists)  # so that every block was verified before the clock starts
    steps = [2**power for power in range((index.manifest.lists - 1).bit_length())] + [index.manifest.lists]
    points = []
    for number, probes in enumerate(steps, start=1):
        points.append(measure(index, queries, k, quality, probes))
        progress(number, len(steps))
    if not points[-1].quality:
        raise RepconcError("Even a search of all lists finds nothing that is relevant to these queries.")
    return points


def measure(index: Index, queries: np.ndarray, k: int, quality: Quality, probes: int) -> Point:
    hits, times = [], []
    for query in queries:
        start = time.perf_counter()
        hits += index.search(query, k, probes=probes)
        times.append(time.perf_counter() - start)
    return Point(probes, quality(hits), float(np.median(times)) * 1e3)


def refine(
    points: Sequence[Point], at: Callable[[int], Point], *, target: float | None = None, latency: float | None = None
) -> list[Point]:
    """Measure between the chosen point and its neighbour that does not do, until they are close; gives all points."""
    found = list(points)
    while True:
        chosen = choose(found, target=target, latency=latency)
        place = found.index(chosen) + (-1 if target is not None else 1)
        if not 0 <= place < len(found) or abs(found[place].probes - chosen.probes) <= max(1, chosen.probes // 16):
            return found
        found = sorted([*found, at((found[place].probes + chosen.probes) // 2)])


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
