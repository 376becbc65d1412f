"""The fewest lists that are good enough, the most that are quick enough."""

import numpy as np
import pytest

from repconc.errors import RepconcError
from repconc.indexes.tune import Point, choose, measure_curve, refine
from repconc.indexes.writing import build
from tests.indexes.conftest import additive_codecs, batches, codecs

CURVE = [Point(1, 0.5, 0.1), Point(2, 0.79, 0.3), Point(4, 0.8, 0.5), Point(8, 0.8, 0.9)]


def test_the_choice():
    assert choose(CURVE, target=0.98).probes == 2
    assert choose(CURVE, target=1.0).probes == 4
    assert choose(CURVE, target=0.0).probes == 1
    assert choose(CURVE, latency=0.6).probes == 4
    with pytest.raises(RepconcError, match=r"within 0.05 ms: one list takes 0.10 ms"):
        choose(CURVE, latency=0.05)


@pytest.mark.parametrize("make", [codecs, additive_codecs])
def test_the_curve_ends_at_the_exhaustive_result(make, queries, tmp_path):
    coding, scoring = make()
    index = build(tmp_path / "index", batches(range(300)), coding=coding, scoring=scoring, lists=12)
    exhaustive = index.search(queries, 5, probes=12)
    agreement = lambda hits: float(np.mean([a == b for a, b in zip(hits, exhaustive, strict=True)]))  # noqa: E731
    steps = []
    points = measure_curve(index, queries, 5, agreement, lambda done, total: steps.append((done, total)))
    assert [point.probes for point in points] == [1, 2, 4, 8, 12]
    assert points[-1].quality == 1.0 and points[0].quality < 1.0
    assert all(point.milliseconds > 0 for point in points) and steps[-1] == (5, 5)


def test_between_powers_of_two_the_curve_is_measured_closer():
    at = lambda probes: Point(probes, min(0.8, 0.1 * probes), 0.1 * probes)  # noqa: E731
    coarse = [at(probes) for probes in (1, 2, 4, 8, 16, 32, 64, 100)]
    assert choose(refine(coarse, at, target=0.6), target=0.6).probes == 5
    assert choose(refine(coarse, at, latency=5.0), latency=5.0).probes in range(47, 51)
    assert refine(coarse, at, target=0.0) == coarse
    assert refine(coarse, at, latency=99.0) == coarse
