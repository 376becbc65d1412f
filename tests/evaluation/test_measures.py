"""Measures: against trec_eval's own code, and on what it leaves open."""

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from repconc.errors import RepconcError
from repconc.evaluation.measures import MEASURES, answer, evaluate, tied_share
from repconc.records import Hit, Query

documents = st.sampled_from([f"d{number}" for number in range(12)])
runs = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3", "extra"]),
    st.dictionaries(documents, st.sampled_from([0.5, 1.0, 2.0]), min_size=1),
    min_size=1,
)
judgements = st.dictionaries(
    st.sampled_from(["q1", "q2", "q3", "silent"]), st.dictionaries(documents, st.integers(0, 3), min_size=1), min_size=1
)


@settings(deadline=None)
@given(runs, judgements, st.integers(1, 2))
def test_measures_are_those_of_trec_eval_on_the_same_run_ties_included(run, qrels, relevance):
    if not run.keys() & qrels.keys():
        return
    ours = evaluate(
        {query: [Hit(id, score) for id, score in hits.items()] for query, hits in run.items()},
        qrels,
        ["RR", "MRR@10", "nDCG@10", "R@100", "P@5", "AP"],
        relevance,
    )
    names = {"recip_rank", "ndcg_cut_10", "recall_100", "P_5", "map"}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, names, relevance_level=relevance).evaluate(run)
    pairs = {"RR": "recip_rank", "nDCG@10": "ndcg_cut_10", "R@100": "recall_100", "P@5": "P_5", "AP": "map"}
    for row, query in enumerate(ours.query_ids):
        for measure, name in pairs.items():
            expected = theirs[query][name] if query in theirs else 0.0
            assert ours.values[measure][row] == pytest.approx(expected, abs=1e-6)
        reciprocal = ours.values["RR"][row]
        assert ours.values["MRR@10"][row] == pytest.approx(reciprocal if reciprocal >= 0.1 else 0, abs=1e-9)


def test_two_names_of_one_measure_give_one_value():
    means = evaluate({"q": [Hit("a", 2.0), Hit("b", 1.0)]}, {"q": {"b": 1}}, ["MRR@10", "RR@10", "MAP", "AP"]).means
    assert means == dict.fromkeys(["MRR@10", "RR@10", "MAP", "AP"], 0.5)


def test_a_measure_whose_provider_is_missing_is_one_sentence():
    with pytest.raises(RepconcError, match="ir-measures cannot compute INST here"):
        evaluate({"q": [Hit("a", 2.0)]}, {"q": {"a": 1}}, ["INST"])


def test_a_query_that_brings_nothing_back_counts_as_zero():
    qrels = {"answered": {"d": 1}, "silent": {"d": 1}, "empty": {"d": 1}}
    evaluation = evaluate({"answered": [Hit("d", 1.0)], "empty": []}, qrels)
    assert evaluation.means == dict.fromkeys(MEASURES, 1 / 3)
    assert [evaluation.values["MRR@10"][evaluation.query_ids.index(query)] for query in qrels] == [1, 0, 0]


def test_a_tie_is_broken_by_id_descending_in_every_measure():
    """One provider of ir-measures breaks ties the other way; the order must not depend on the measure."""
    run = {"q": [Hit("a", 1.0), Hit("b", 1.0)]}
    for measure in ("MRR@10", "RR", "P@1", "nDCG@1", "Success@1"):
        assert evaluate(run, {"q": {"b": 1}}, [measure]).means[measure] == 1, measure
        assert evaluate(run, {"q": {"a": 1}}, [measure]).means[measure] < 1, measure


def test_the_threshold_of_the_set_decides_what_is_relevant():
    run = {"q": [Hit("a", 2.0), Hit("b", 1.0)]}
    qrels = {"q": {"a": 1, "b": 2}}
    assert evaluate(run, qrels, ["MRR@10"], relevance=1).means["MRR@10"] == 1
    assert evaluate(run, qrels, ["MRR@10"], relevance=2).means["MRR@10"] == 0.5
    assert evaluate(run, qrels, ["RR(rel=1)@10"], relevance=2).means["RR(rel=1)@10"] == 1


def test_the_share_of_ties_counts_results_with_a_twin():
    hits = [Hit("a", 3.0), Hit("b", 2.0), Hit("c", 2.0), Hit("d", 1.0)]
    assert tied_share({"q": hits}) == 0.5
    assert tied_share({"q": hits}, depth=2) == 0.5, "the twin may stand below the cut"
    assert tied_share({"q": hits}, depth=1) == 0
    assert tied_share({"q": []}) == 0


def test_answers_are_kept_by_query_over_many_batches():
    queries = [Query(str(number), str(number)) for number in range(600)]
    seen = []
    run = answer(lambda texts, k: [[Hit(text, 1.0)] for text in texts], queries, 1, lambda *step: seen.append(step))
    assert run == {query.id: [Hit(query.text, 1.0)] for query in queries}
    assert seen == [(256, 600), (512, 600), (600, 600)]


def test_answers_are_kept_by_query():
    run = answer(lambda texts, k: [[Hit(text, float(k))] for text in texts], [Query("1", "a"), Query("2", "b")], k=7)
    assert run == {"1": [Hit("a", 7.0)], "2": [Hit("b", 7.0)]}


@pytest.mark.parametrize("measure", ["nonsense@10", "MRR@", "__import__('os')", "", "nDCG@0", "P@-3", "P(foo=1)@5"])
def test_an_unknown_measure_is_one_sentence(measure):
    with pytest.raises(RepconcError, match="is not a measure that ir-measures knows"):
        evaluate({"q": [Hit("d", 1.0)]}, {"q": {"d": 1}}, [measure])


def test_a_run_for_other_queries_is_refused():
    with pytest.raises(RepconcError, match="answers none of the judged queries"):
        evaluate({"x": [Hit("d", 1.0)]}, {"q": {"d": 1}})
    with pytest.raises(RepconcError, match="no judgements"):
        evaluate({"x": [Hit("d", 1.0)]}, {})


def test_values_are_arrays_in_the_order_of_the_queries():
    evaluation = evaluate({"b": [Hit("d", 1.0)]}, {"b": {"d": 1}, "a": {"d": 1}})
    assert evaluation.query_ids == ["a", "b"]
    np.testing.assert_array_equal(evaluation.values["R@100"], [0, 1])


def test_a_count_of_results_is_not_turned_into_one_of_relevant_results():
    run = {"q": [Hit("a", 2.0), Hit("b", 1.0)]}
    assert evaluate(run, {"q": {"a": 1}}, ["NumRet"]).means["NumRet"] == 2


def test_a_score_that_is_not_a_number_is_refused():
    with pytest.raises(RepconcError, match="not a number, for query 'q'"):
        evaluate({"q": [Hit("a", float("nan")), Hit("b", 1.0)]}, {"q": {"a": 1}})
