"""Tests of significance, against their definitions and their promises."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from repconc.evaluation.compare import compare, comparison_table
from repconc.evaluation.significance import bootstrap_interval, holm, paired_t_test, stars
from repconc.records import Hit


def test_the_t_test_is_that_of_the_formula():
    generator = np.random.default_rng(0)
    first, second = generator.random(50), generator.random(50)
    difference = first - second
    t = difference.mean() / (difference.std(ddof=1) / np.sqrt(50))
    assert paired_t_test(first, second) == pytest.approx(2 * stats.t.sf(abs(t), df=49))


def test_the_t_test_at_its_edges():
    ones = np.ones(10)
    assert paired_t_test(ones, ones) == 1
    assert paired_t_test(ones, ones * 2) == 0
    assert paired_t_test(ones[:1], ones[:1] * 2) == 1, "one query proves nothing"


def test_holm_on_a_worked_example():
    """Holm (1979): 0.01 * 4, then max with 0.013 * 3, and so on."""
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_lies_between_none_and_bonferroni_and_keeps_the_order(p_values):
    corrected = holm(p_values)
    for p, c in zip(p_values, corrected, strict=True):
        assert p <= c <= 1
    smallest = int(np.argmin(p_values))
    assert corrected[smallest] == pytest.approx(min(1, p_values[smallest] * len(p_values)))
    order = np.argsort(p_values, kind="stable")
    assert (np.diff(np.array(corrected)[order]) >= 0).all()


def test_the_bootstrap_interval_covers_the_mean_as_often_as_it_says():
    generator = np.random.default_rng(7)
    covered = 0
    for trial in range(200):
        low, high = bootstrap_interval(generator.normal(0.5, 0.2, size=60), level=0.9, seed=trial)
        covered += low <= 0.5 <= high
    assert 165 <= covered <= 192  # 180 expected; the percentile interval is a little short


def test_the_bootstrap_is_the_same_for_the_same_seed():
    values = np.random.default_rng(0).random(40)
    assert bootstrap_interval(values, seed=3) == bootstrap_interval(values, seed=3)
    assert bootstrap_interval(values, seed=3) != bootstrap_interval(values, seed=4)


def test_marks():
    assert [stars(p) for p in (0.2, 0.05, 0.049, 0.01, 0.009)] == ["", "", "*", "*", "**"]


def systems() -> tuple[dict, dict]:
    """A good run, one like it, and one that is always worse."""
    qrels = {f"q{number}": {"good": 1} for number in range(40)}
    good = {query: [Hit("good", 2.0), Hit("bad", 1.0)] for query in qrels}
    like = {query: hits if number else [Hit("bad", 1.0)] for number, (query, hits) in enumerate(good.items())}
    worse = {query: [Hit("bad", 2.0), Hit("good", 1.0)] if n % 4 else good[query] for n, query in enumerate(qrels)}
    return {"good": good, "like": like, "worse": worse}, qrels


def test_each_run_is_compared_with_the_first_and_corrected_over_all():
    runs, qrels = systems()
    comparison = compare(runs, qrels, ["MRR@10"])
    reference, like, worse = (comparison[name]["MRR@10"] for name in runs)
    assert (reference.mean, reference.p, reference.difference) == (1, None, None)
    assert like.p_holm == like.p == pytest.approx(0.323, abs=0.001)
    assert worse.p_holm == 2 * worse.p < 1e-9
    assert worse.difference == pytest.approx(-0.375)
    assert worse.difference_interval[1] < 0


def test_the_table_marks_real_differences_only():
    runs, qrels = systems()
    text = comparison_table(compare(runs, qrels, ["MRR@10"])).render("text")
    lines = {line.split()[0]: line for line in text.splitlines()}
    assert "**" in lines["worse"] and "*" not in lines["like"] and "*" not in lines["good"]
