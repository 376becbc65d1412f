"""The one order of results."""

from itertools import pairwise

import numpy as np
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from repconc.records import Document, Hit, in_order

ids = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"]), min_size=1, max_size=3)
few_scores = st.sampled_from([0.0, 1.0, 1.0 + 1e-9, 0.5, -2.0, 16777216.0, 16777217.0])


@given(st.dictionaries(ids, few_scores, min_size=1, max_size=12), st.randoms())
def test_order_is_float32_score_then_id_descending_whatever_the_input_order(scores, random):
    hits = [Hit(id, score) for id, score in scores.items()]
    expected = in_order(hits)
    random.shuffle(hits)
    assert in_order(hits) == expected
    for first, second in pairwise(expected):
        higher = np.float32(first.score) > np.float32(second.score)
        assert higher or (np.float32(first.score) == np.float32(second.score) and first.id > second.id)


@given(st.dictionaries(ids, st.sampled_from([0.0, 1.0, 0.5]), min_size=2, max_size=8))
def test_order_is_that_of_trec_eval(scores):
    """trec_eval's reciprocal rank tells where it put each document."""
    ranked = in_order(Hit(id, score) for id, score in scores.items())
    for rank, hit in enumerate(ranked, 1):
        evaluator = pytrec_eval.RelevanceEvaluator({"q": {hit.id: 1}}, {"recip_rank"})
        assert evaluator.evaluate({"q": scores})["q"]["recip_rank"] == 1 / rank


def test_full_text_joins_title_and_text():
    assert Document("1", "text", "Title").full_text == "Title text"
    assert Document("1", "text").full_text == "text"
