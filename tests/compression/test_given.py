"""What is given is looked through before anything is trained: bad input is named, a sample is kept."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from repconc.compression import given as module
from repconc.compression.given import look_through, open_given, paired
from repconc.errors import RepconcError


def look(*arguments, cosine=None, wanted=(), **options):
    return look_through(open_given(*arguments, **options), set(wanted), cosine, 0, lambda done, total: None)


def test_the_sample_holds_all_that_is_wanted_and_random_ones(world, monkeypatch):
    monkeypatch.setattr(module, "SAMPLE", 50)
    sample = look(world.documents, wanted=["599", "3", "300"])
    assert {"599", "3", "300"} <= set(sample.ids)
    assert 50 <= len(sample.ids) <= 53
    np.testing.assert_array_equal(sample.vectors, world.documents[np.array(sample.ids, int)])


def test_vectors_of_length_one_are_compared_by_cosine_without_being_asked(world):
    scaled = world.documents / np.linalg.norm(world.documents, axis=1, keepdims=True)
    assert look(scaled).unit
    assert not look(world.documents).unit
    forced = look(world.documents, cosine=True)
    assert forced.unit
    np.testing.assert_allclose(np.linalg.norm(forced.vectors, axis=1), 1, rtol=1e-5)


def test_a_run_knows_its_vectors_and_ids_again(world):
    changed = world.documents.copy()
    changed[-1, -1] += 1
    names = [f"d{number}" for number in range(600)]
    digests = [look(world.documents), look(changed), look(world.documents, ids=names), look(world.documents)]
    assert len({sample.digest for sample in digests}) == 3


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"ids": ["a"] * 600}, "'a' is there twice"),
        ({"ids": ["a", "b"]}, "2 documents for 600 vectors"),
        ({"ids": [str(n) for n in range(601)]}, "more than 600 documents"),
        ({"ids": ["a\x00"] * 600}, "not printable"),
        ({"ids": ["a\ud800"] * 600}, "not printable"),
        ({"qrels": {"0": {"0": 1}}}, "but no queries"),
        ({"query_ids": ["a"]}, "but no queries"),
        ({"queries": np.ones((3, 5), "f4")}, "12 dimensions and the queries 5"),
        ({"queries": np.ones((3, 12), "f4"), "query_ids": ["a", "a", "b"]}, "2 different ids for 3"),
        ({"queries": np.ones((3, 12), "f4"), "qrels": {"0": {"0": 0}}}, "mark no document"),
        ({"wanted": ["nobody"]}, "'nobody', which has no vector"),
    ],
)
def test_bad_input_is_named(world, change, sentence):
    with pytest.raises(RepconcError, match=sentence):
        look(world.documents, **change)


def test_a_vector_of_zeros_has_no_direction(world):
    changed = world.documents.copy()
    changed[17] = 0
    with pytest.raises(RepconcError, match=r"Row 17 .* all zeros"):
        look(changed, cosine=True)
    assert not look(changed).unit, "by inner product it is as good as any"
    scaled = changed / np.maximum(np.linalg.norm(changed, axis=1, keepdims=True), 1e-9)
    with pytest.raises(RepconcError, match=r"Row 17 .* all zeros"):
        look(scaled)  # all others have length 1


def test_documents_and_vectors_must_name_the_same_rows(world, tmp_path):
    rows = [{"_id": f"d{n}", "text": ""} for n in range(600)]
    (tmp_path / "documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in reversed(rows)))
    table = pa.table({"id": [row["_id"] for row in rows], "v": world.documents.tolist()})
    pq.write_table(table, tmp_path / "v.parquet")
    with pytest.raises(RepconcError, match="'d599' and the vector of that row 'd0'"):
        look(tmp_path / "v.parquet", documents=tmp_path / "documents.jsonl")


def test_ids_of_queries_come_from_their_file_and_numbers_may_be_numbers(world, tmp_path):
    pq.write_table(pa.table({"id": [7, 5], "v": world.queries[:2].tolist()}), tmp_path / "q.parquet")
    given = open_given(world.documents, queries=tmp_path / "q.parquet", qrels={7: {0: 1}})
    assert given.query_ids == ["7", "5"]
    assert given.qrels == {"7": {"0": 1}}
    pq.write_table(pa.table({"id": ["a", None], "v": world.queries[:2].tolist()}), tmp_path / "q.parquet")
    with pytest.raises(RepconcError, match=r"row 1 of .* is missing"):
        open_given(world.documents, queries=tmp_path / "q.parquet")


def test_texts_and_ids_come_from_json_lines_or_from_columns(world, tmp_path):
    rows = [{"_id": f"d{n}", "text": f"text {n}", "title": "t", "metadata": {"n": n}} for n in range(600)]
    (tmp_path / "documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    groups = list(paired(open_given(world.documents, documents=tmp_path / "documents.jsonl")))
    assert groups[0][0][3].metadata == {"n": 3}
    table = pa.table({"id": [row["_id"] for row in rows], "text": ["x"] * 600, "v": world.documents.tolist()})
    pq.write_table(table, tmp_path / "v.parquet")
    documents, block = next(paired(open_given(tmp_path / "v.parquet")))
    assert (documents[5].id, documents[5].text, block.shape) == ("d5", "x", (600, 12))


@pytest.mark.parametrize("content", ["q1\td2\t1\n", "query-id\tcorpus-id\tscore\nq1\td2\t1\n", "q1 0 d2 1\n"])
def test_labels_of_either_form_are_read(tmp_path, content, world):
    (tmp_path / "labels").write_text(content)
    queries = world.queries[:1]
    assert open_given(world.documents, queries=queries, query_ids=["q1"], qrels=tmp_path / "labels").qrels == {
        "q1": {"d2": 1}
    }


@pytest.mark.parametrize(("scale", "cosine"), [(1e30, False), (1e30, True), (1e10, False), (1e-10, False)])
def test_vectors_that_are_too_long_or_too_short_are_named(world, scale, cosine):
    """Before anything is trained: squares do not fit into float32, or centroids not into half precision."""
    row = np.linalg.norm(world.documents, axis=1).argmax() if scale < 1e20 else 0
    with pytest.raises(RepconcError, match=rf"Row {row} of .* is the longest"):
        look(world.documents * np.float32(scale), cosine=cosine)
    assert look(world.documents * np.float32(min(scale, 1e10)), cosine=True).unit


def test_ids_may_come_one_by_one(world):
    given = open_given(world.documents, ids=(f"d{number}" for number in range(600)))
    assert [len(list(given.documents())) for _ in range(2)] == [600, 600]


def parquet(folder, world, **columns):
    pq.write_table(pa.table({"v": world.documents.tolist(), **columns}), folder / "v.parquet")
    return folder / "v.parquet"


@pytest.mark.parametrize(("count", "sentence"), [(599, "599 documents for 600"), (601, "more than 600 documents")])
def test_ids_beside_a_file_with_texts_are_counted(world, tmp_path, count, sentence):
    with pytest.raises(RepconcError, match=sentence):
        look(parquet(tmp_path, world, text=["words"] * 600), ids=[str(number) for number in range(count)])


def test_columns_of_bytes_are_text_and_columns_of_lists_are_not(world, tmp_path):
    path = parquet(tmp_path, world, id=[b"d%d" % n for n in range(600)], text=world.documents.tolist())
    document = next(open_given(path, name="v").documents())
    assert (document.id, document.text) == ("d0", "")
    path = parquet(tmp_path, world, id=[b"\xff%d" % n for n in range(600)])
    with pytest.raises(RepconcError, match="not UTF-8"):
        look(path)


def test_metadata_that_cannot_be_kept_is_named_in_the_first_pass(world, tmp_path):
    line = '{"_id": "%d", "text": "", "metadata": {"price": %s}}\n'
    (tmp_path / "d.jsonl").write_text("".join(line % (n, "NaN" if n == 7 else "1") for n in range(600)))
    with pytest.raises(RepconcError, match="document '7' cannot be kept"):
        look(world.documents, documents=tmp_path / "d.jsonl")
