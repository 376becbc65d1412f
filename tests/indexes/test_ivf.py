"""The index against plain sums of table entries: ids, scores and ties."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from repconc.errors import RepconcError
from repconc.indexes.ivf import Index
from repconc.indexes.scan import Scanner
from repconc.indexes.writing import add, build, compact, remove, set_probes
from tests.indexes.conftest import batches, codecs, make_codes, make_documents, plain_search


def expect(index, numbers, queries, k=10):
    """With all lists probed the result is that of the plain search."""
    for query, hits in zip(queries, index.search(queries, k, probes=index.manifest.lists), strict=True):
        assert hits == plain_search(index.scoring, numbers, query, k)


@pytest.mark.parametrize("k", [1, 10, 299, 300, 1000])
def test_all_lists_give_the_plain_result(index, queries, k):
    expect(index, range(300), queries, k)


def test_scores_agree_with_decoded_vectors(index, queries):
    decoded = index.scoring.decode(make_codes(range(300)))[:, :15]
    for query, hits in zip(queries, index.search(queries, 300, probes=12), strict=True):
        exact = {f"d{number}": value for number, value in enumerate(decoded @ query)}
        assert max(abs(hit.score - exact[hit.id]) for hit in hits) < 1e-5


def test_few_lists_give_the_best_of_those_lists(index, queries):
    everything = {f"d{number}": number for number in range(300)}
    vectors = index.scoring.decode(make_codes(range(300)))
    centroids = index.centroids.astype(np.float32)
    owners = ((vectors[:, None] - centroids[None]) ** 2).sum(axis=2).argmin(axis=1)
    for query, hits in zip(queries, index.search(queries, 5, probes=3), strict=True):
        near = np.argsort(-(centroids @ np.pad(query, (0, 1))), kind="stable")[:3]
        assert hits == plain_search(index.scoring, [n for n in everything.values() if owners[n] in near], query, 5)


def test_more_lists_are_read_where_they_hold_too_few(index, queries):
    assert {len(hits) for hits in index.search(queries, 250, probes=1)} == {250}
    assert {len(hits) for hits in index.search(queries, 9, probes=1, filter="year = 2007")} == {9}


def test_one_or_many_queries_and_threads_find_the_same(index, queries):
    together = index.search(queries, 10)
    assert together == index.search(queries, 10, threads=4)
    assert together == [index.search(query, 10)[0] for query in queries]


def test_hits_bring_their_documents(index, queries):
    hits = index.search(queries[0], 3, documents=True)[0]
    assert [hit.document for hit in hits] == make_documents([int(hit.id[1:]) for hit in hits])


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    M=st.integers(1, 9),
    K=st.integers(1, 256),
    sizes=st.lists(st.integers(0, 90), min_size=1, max_size=6),
    k=st.integers(1, 60),
    scale=st.sampled_from([1e-20, 1.0, 1e15]),
    seed=st.integers(0, 9),
)
def test_the_scan_with_faiss_is_the_scan_without(M, K, sizes, k, scale, seed):
    random = np.random.default_rng(seed)
    coding, _ = codecs(M, K, 3 * M, seed)
    codes = [random.integers(0, max(1, K // (1 + 9 * (seed % 2))), (n, M)).astype(np.uint8) for n in sizes]
    query = (scale * random.normal(size=3 * M)).astype(np.float32)
    found = [Scanner(coding, use_faiss=use).scan(query, codes, k) for use in (False, True)]
    for places, scores in found:
        order = np.argsort(places)
        assert np.array_equal(places[order], found[0][0])
        assert np.array_equal(scores[order], found[0][1])
    assert len(found[0][0]) >= min(k, sum(sizes))


class TestChanges:
    def test_add_update_remove_compact(self, folder, queries):
        assert add(folder, batches(range(300, 400))).added == 100
        expect(Index(folder), range(400), queries)
        assert remove(folder, [f"d{number}" for number in range(0, 400, 7)]).removed == 58
        rest = [number for number in range(400) if number % 7]
        expect(Index(folder), rest, queries)
        changed = add(folder, [(make_documents([7, 8]), make_codes([7, 8]))], replace=True)
        assert changed == (1, 1, 0), "d7 was removed and comes anew, d8 is replaced"
        rest = sorted([*rest, 7])
        expect(Index(folder), rest, queries)
        before = [Index(folder).search(queries, 20, probes=probes) for probes in (1, 4, 12)]
        assert compact(folder).removed == 59
        after = Index(folder)
        assert [after.search(queries, 20, probes=probes) for probes in (1, 4, 12)] == before
        assert len(after) == len(rest) and len(after.segments) == 1
        expect(after, rest, queries)

    def test_a_reader_sees_the_index_of_its_opening(self, folder, queries):
        before = Index(folder)
        results = before.search(queries[:1], 5, documents=True)
        remove(folder, [hit.id for hit in results[0]])
        compact(folder)
        expect(before, range(300), queries)
        assert before.search(queries[:1], 5, documents=True) == results
        assert not {hit.id for hit in results[0]} & {hit.id for hit in Index(folder).search(queries[:1], 300)[0]}

    def test_an_update_changes_text_and_code(self, folder):
        document = make_documents([3])[0]
        changed = type(document)("d3", "new text", "New", {"year": 1900})
        add(folder, [([changed], make_codes([9]))], replace=True)
        index = Index(folder)
        assert index.get("d3") == changed
        assert len(index) == 300
        assert [hit.id for hit in index.search(np.ones(15), 5, filter="year = 1900")[0]] == ["d3"]

    def test_all_documents_may_go(self, folder, queries):
        remove(folder, [f"d{number}" for number in range(300)])
        assert len(Index(folder)) == 0 and Index(folder).search(queries[:1], 3) == [[]]
        compact(folder)
        add(folder, batches([5]))
        expect(Index(folder), [5], queries)

    def test_adding_does_not_rewrite(self, folder):
        before = {path.name: path.stat().st_mtime_ns for path in folder.glob("0*")}
        add(folder, batches(range(300, 310)))
        assert {name: (folder / name).stat().st_mtime_ns for name in before} == before

    def test_probes_are_kept(self, folder):
        set_probes(folder, 5)
        assert Index(folder).manifest.probes == 5
        with pytest.raises(RepconcError, match="13 and the index has 12 lists"):
            set_probes(folder, 13)


class TestBadInput:
    @pytest.mark.parametrize(
        ("call", "sentence"),
        [
            (lambda index: index.search(np.ones((2, 16))), "16 dimensions and the index 15"),
            (lambda index: index.search(np.full(15, np.nan)), "NaN"),
            (lambda index: index.search(np.ones(15), 0), "k is 0"),
            (lambda index: index.search(np.ones(15), probes=0), "probes is 0"),
            (lambda index: index.search(np.ones(15), filter="colour = 3"), "'colour'; the fields are: lang, year"),
            (lambda index: index.search(np.ones(15), filter="year >"), "cannot be read"),
            (lambda index: add(index.folder, batches([3])), "'d3' is in the index already"),
            (lambda index: remove(index.folder, ["d1", "nobody"]), "no document 'nobody'"),
            (lambda index: add(index.folder, [(make_documents([800, 800]), make_codes([1, 2]))]), "'d800' comes twice"),
        ],
    )
    def test_one_sentence_and_nothing_changed(self, index, queries, call, sentence):
        before = {path.name: path.read_bytes() for path in index.folder.iterdir()}
        with pytest.raises(RepconcError, match=sentence):
            call(index)
        assert {path.name: path.read_bytes() for path in index.folder.iterdir()} == before

    def test_no_index(self, tmp_path):
        with pytest.raises(RepconcError, match="holds no index"):
            Index(tmp_path)
        with pytest.raises(RepconcError, match="is not there"):
            add(tmp_path / "nowhere", [])

    def test_an_index_is_not_built_over_another(self, folder):
        coding, scoring = codecs()
        with pytest.raises(RepconcError, match="holds an index already"):
            build(folder, batches(range(9)), coding=coding, scoring=scoring)

    def test_nothing_to_build_from(self, tmp_path):
        coding, scoring = codecs()
        with pytest.raises(RepconcError, match="no documents"):
            build(tmp_path / "new", [], coding=coding, scoring=scoring)
        with pytest.raises(RepconcError, match="9 documents cannot fill 20 lists"):
            build(tmp_path / "new", batches(range(9)), coding=coding, scoring=scoring, lists=20)
