"""Indexes whose documents lie by classes of decoded length: every search equals sums times gains, to the bit."""

from dataclasses import replace

import pytest

from repconc.codec import score
from repconc.errors import RepconcError
from repconc.indexes.check import check_index
from repconc.indexes.codes import CodeIndex
from repconc.indexes.faiss_export import export_faiss
from repconc.indexes.ivf import Index
from repconc.indexes.writing import add, build, compact, remove
from repconc.lengths import learn_lengths
from repconc.records import Hit, in_order
from tests.indexes.conftest import additive_codecs, batches, make_codes


@pytest.fixture
def classed():
    """Coding and scoring codecs; the first knows lengths."""
    coding, scoring = additive_codecs()
    return replace(coding, lengths=learn_lengths(coding.lengths_of(make_codes(range(300))), classes=5)), scoring


def expected(classed, numbers, query, k):
    coding, scoring = classed
    codes = make_codes(numbers)
    scores = coding.gains[coding.classes_of(codes)] * score(scoring.tables(query)[0], codes)
    return in_order(Hit(f"d{number}", float(value)) for number, value in zip(numbers, scores, strict=True))[:k]


def same(index, classed, numbers, queries):
    for query, hits in zip(queries, index.search(queries, 9, probes=index.manifest.lists), strict=True):
        assert [(hit.id, hit.score) for hit in hits] == [tuple(hit)[:2] for hit in expected(classed, numbers, query, 9)]


def test_through_its_whole_life_it_finds_what_sums_times_gains_say(tmp_path, classed, queries):
    folder = tmp_path / "index"
    coding, scoring = classed
    numbers = list(range(300))
    index = build(folder, batches(numbers), coding=coding, scoring=scoring, lists=12)
    assert len(index.segments[0].offsets) == 12 * 5 + 1
    same(index, classed, numbers, queries)
    add(folder, batches(range(300, 340)), at_most=2)
    add(folder, batches(range(340, 350)), at_most=2)
    numbers = [number for number in range(350) if number % 7]
    remove(folder, [f"d{number}" for number in range(0, 350, 7)])
    same(Index(folder), classed, numbers, queries)
    check_index(folder)
    compact(folder)
    same(Index(folder), classed, numbers, queries)
    check_index(folder)


def test_few_lists_and_filters_find_the_best_of_those(tmp_path, classed, queries):
    coding, scoring = classed
    index = build(tmp_path / "index", batches(range(300)), coding=coding, scoring=scoring, lists=12)
    everything, few = index.search(queries, 300, probes=12), index.search(queries, 5, probes=3)
    german = index.search(queries, 5, filter='lang = "de"', probes=12)
    for whole, best, some in zip(everything, few, german, strict=True):
        scores = {hit.id: hit.score for hit in whole}
        assert all(scores[hit.id] == hit.score for hit in best)
        assert [hit.id for hit in some] == [hit.id for hit in whole if int(hit.id[1:]) % 3 == 1][:5]


def test_codes_in_memory_find_the_same(classed, queries):
    coding, scoring = classed
    numbers = list(range(200))
    flat = CodeIndex([f"d{number}" for number in numbers], make_codes(numbers), scoring, coding)
    for query, hits in zip(queries, flat.search(queries, 9), strict=True):
        assert [(hit.id, hit.score) for hit in hits] == [tuple(hit)[:2] for hit in expected(classed, numbers, query, 9)]


def test_faiss_cannot_hold_them(tmp_path, classed):
    coding, scoring = classed
    index = build(tmp_path / "index", batches(range(300)), coding=coding, scoring=scoring, lists=12)
    with pytest.raises(RepconcError, match="no place for classes of lengths"):
        export_faiss(index, tmp_path / "out.faiss")
    assert not (tmp_path / "out.faiss").exists()
