"""The index against plain sums of table entries: ids, scores and ties."""

import numpy as np
import pytest

from repconc.codec import Codec
from repconc.errors import RepconcError
from repconc.indexes.ivf import Index
from repconc.indexes.writing import add, build, compact, remove, set_probes
from repconc.records import Document
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


def test_memory_counts_what_is_there_twice(index, queries):
    index.search(queries, 3)
    on_disk = sum(index.sizes()[part] for part in ("codes", "lists", "codebooks", "removed"))
    again = [*index.lists._levels, index.scoring.by_dimension]
    assert index.nbytes == on_disk + sum(part.nbytes for part in again)


def test_one_dimension_is_enough(tmp_path):
    codec = Codec(np.array([[[1.0], [2.0]]], np.float32), 1)
    codes = np.array([[0], [1], [1]], np.uint8)
    built = build(tmp_path / "index", [(make_documents(range(3)), codes)], coding=codec, scoring=codec, lists=2)
    assert [hit.id for hit in built.search(np.ones(1), 3, probes=2)[0]] == ["d2", "d1", "d0"]
    add(built.folder, [(make_documents([7]), codes[:1])])
    assert len(Index(built.folder).search(np.ones(1), 9)[0]) == 4


class TestChanges:
    def test_a_filter_may_name_what_only_removed_documents_had(self, tmp_path):
        coding, scoring = codecs()
        documents = [Document("a", ""), Document("b", "", metadata={"year": 1})]
        folder = build(tmp_path / "i", [(documents, make_codes([1, 2]))], coding=coding, scoring=scoring).folder
        remove(folder, ["b"])
        for _ in range(2):
            assert [hit.id for hit in Index(folder).search(np.ones(15), filter="not year = 1")[0]] == ["a"]
            compact(folder)

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

    def test_numbers_of_files_are_never_used_twice(self, tmp_path, queries):
        coding, scoring = codecs()
        folder = tmp_path / "index"
        build(folder, batches(range(20)), coding=coding, scoring=scoring, lists=2)
        add(folder, batches(range(20, 40)))
        add(folder, batches(range(40, 60)))
        remove(folder, [f"d{number}" for number in range(41)])
        remove(folder, ["d50"])
        add(folder, batches([3]))
        expect(Index(folder), [3, *range(41, 50), *range(51, 60)], queries)

    def test_documents_without_metadata_pass_what_is_not(self, folder, queries):
        plain = [type(document)(document.id, document.text) for document in make_documents(range(300, 320))]
        add(folder, [(plain, make_codes(range(300, 320)))])
        found = [Index(folder).search(queries[0], 999, filter="not year >= 2005")[0]]
        compact(folder)
        found.append(Index(folder).search(queries[0], 999, filter="not year >= 2005")[0])
        assert found[0] == found[1] and len(found[0]) == 50 + 20

    def test_the_users_own_files_stay(self, tmp_path, folder):
        other = tmp_path / "notes"
        other.mkdir()
        for name in ("2023.csv", "1.txt", "000001.codes"):
            (other / name).write_text("mine")
            (folder / f"my-{name}").write_text("mine")
        with pytest.raises(RepconcError, match="holds no index"):
            compact(other)
        assert len(list(other.iterdir())) == 3
        add(folder, batches([800]))
        assert len(list(folder.glob("my-*"))) == 3

    @pytest.mark.parametrize("M", [1, 3, 258])
    def test_any_number_of_bytes(self, M, tmp_path):
        coding, scoring = codecs(M, 7, 3 * M)
        codes = np.random.default_rng(0).integers(0, 7, (90, M)).astype(np.uint8)
        index = build(tmp_path / "index", [(make_documents(range(90)), codes)], coding=coding, scoring=scoring, lists=4)
        query = np.random.default_rng(1).normal(size=3 * M).astype(np.float32)
        scores = scoring.decode(codes) @ query
        found = index.search(query, 90, probes=4)[0]
        assert np.allclose([hit.score for hit in found], [scores[int(hit.id[1:])] for hit in found], atol=1e-3)
        assert len(found) == 90

    def test_equal_centroids_hide_no_list(self, tmp_path):
        coding, scoring = codecs(2, 4, 4)
        codes = np.random.default_rng(0).integers(0, 4, (200, 2)).astype(np.uint8)
        index = build(tmp_path / "i", [(make_documents(range(200)), codes)], coding=coding, scoring=scoring, lists=29)
        for query in [np.zeros(4), *np.random.default_rng(1).normal(size=(20, 4))]:
            assert len(index.search(query, 200, probes=3)[0]) == 200


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
            (lambda index: add(index.folder, [(make_documents([800]), make_codes([1, 2]))]), "need codes of 4 bytes"),
            (
                lambda index: add(index.folder, [(make_documents([800]), make_codes([1])[:, :3])]),
                "need codes of 4 bytes",
            ),
            (
                lambda index: add(index.folder, [(make_documents([800]), make_codes([1]) + np.uint8(99))]),
                "16 codewords",
            ),
            (lambda index: index.search(np.full(15, 3e38)), "too large to multiply"),
            (lambda index: index.search(np.full(15, 5e37)), "too large to multiply"),
            (lambda index: index.search(np.ones(15), 2.5), "k is 2.5"),
            (lambda index: index.search(np.ones(15), threads=-1), "threads is -1"),
            (lambda index: index.search(np.ones((1, 1, 15))), "one query vector"),
            (lambda index: add(index.folder, [([Document("new", None)], make_codes([1]))]), "'new' needs an id"),
            (lambda index: add(index.folder, [([Document("", "text")], make_codes([1]))]), "'' needs an id"),
            (lambda index: index.search(np.ones(15), filter=" or ".join(["year = 1"] * 2000)), "shorten it"),
            (lambda index: index.search(np.ones(15), filter="lang = '\ud800'"), "half of a character"),
        ],
    )
    def test_one_sentence_and_nothing_changed(self, index, queries, call, sentence):
        before = {path.name: path.read_bytes() for path in index.folder.iterdir()}
        with pytest.raises(RepconcError, match=sentence):
            call(index)
        assert {path.name: path.read_bytes() for path in index.folder.iterdir()} == before

    def test_odd_and_harmless(self, index):
        assert len(index.search(np.ones(15), 2**70)[0]) == 300
        assert index.get("\ud800") is None and "" not in index

    def test_no_index(self, tmp_path):
        with pytest.raises(RepconcError, match="holds no index"):
            Index(tmp_path)
        with pytest.raises(RepconcError, match="holds no index"):
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
