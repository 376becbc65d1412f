"""BM25 against its formula, written out by hand."""

import math

import pytest

from repconc.baselines.bm25 import BM25, K1, B
from repconc.errors import RepconcError
from repconc.records import Document

DOCUMENTS = [
    Document("a", "The king built castles", "Kings"),
    Document("b", "A castle by the river"),
    Document("c", "Music of the sea"),
    Document("d", "Music of the sea"),
]
STEMMED = {
    "a": ["king", "king", "built", "castl"],
    "b": ["castl", "river"],
    "c": ["music", "sea"],
    "d": ["music", "sea"],
}


def expected(query: list[str], id: str) -> float:
    """Lucene's BM25: idf = ln(1 + (N - n + 0.5) / (n + 0.5)), no factor (k1 + 1)."""
    average = sum(map(len, STEMMED.values())) / len(STEMMED)
    score = 0.0
    for word in query:
        n = sum(word in words for words in STEMMED.values())
        frequency = STEMMED[id].count(word)
        idf = math.log(1 + (len(STEMMED) - n + 0.5) / (n + 0.5))
        score += idf * frequency / (frequency + K1 * (1 - B + B * len(STEMMED[id]) / average))
    return score


def test_scores_are_those_of_the_formula():
    hits = BM25(DOCUMENTS).search(["which kings had a castle"])[0]
    assert [hit.id for hit in hits] == ["a", "b"]
    for hit in hits:
        assert hit.score == pytest.approx(expected(["king", "castl"], hit.id), rel=1e-5)


def test_ties_stand_in_the_one_order_and_are_cut_by_it():
    index = BM25(DOCUMENTS)
    assert [hit.id for hit in index.search(["music"])[0]] == ["d", "c"]
    assert [hit.id for hit in index.search(["music"], k=1)[0]] == ["d"]


@pytest.mark.parametrize("query", ["", "the of and", "zebra", "???"])
def test_a_query_without_a_known_word_finds_nothing(query):
    assert BM25(DOCUMENTS).search([query, "music"])[0] == []


def test_its_bytes_are_counted_and_an_empty_corpus_is_refused():
    assert BM25(DOCUMENTS).nbytes > 0
    with pytest.raises(RepconcError, match="no documents"):
        BM25([])
    with pytest.raises(RepconcError, match="nothing to index"):
        BM25([Document("a", "the of and")])
