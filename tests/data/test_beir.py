"""BEIR folders: what is right comes back, what is wrong is named by file and line."""

import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repconc import load_dataset
from repconc.data.beir import write_beir
from repconc.data.check import ensure_sound, find_problems
from repconc.data.dataset import Card
from repconc.errors import RepconcError
from repconc.lines import InputError
from repconc.records import Document, Judgement, Query

texts = st.text(st.characters(codec="utf-8"), max_size=20)
ids = st.text(st.characters(codec="utf-8", exclude_categories=["Zs", "Cc", "Zl", "Zp"]), min_size=1, max_size=5)


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(ids, st.tuples(texts, texts), min_size=1, max_size=6), st.dictionaries(ids, texts, min_size=1))
def test_what_is_written_is_read_again_to_the_letter(tmp_path_factory, documents, queries):
    folder = tmp_path_factory.mktemp("set") / "set"
    written = [Document(id, text, title) for id, (text, title) in documents.items()]
    asked = [Query(id, text) for id, text in queries.items()]
    judged = [Judgement(query.id, written[0].id, 2) for query in asked]
    write_beir(folder, written, asked, {"test": judged}, Card(name="set", relevance={"test": 2}))
    dataset = load_dataset(folder)
    assert list(dataset.documents) == written
    assert list(dataset.documents) == written, "a corpus can be iterated again"
    assert dataset.queries("test") == asked
    assert dataset.qrels("test") == {query.id: {written[0].id: 2} for query in asked}
    assert dataset.relevance("test") == 2
    assert ensure_sound(dataset).documents == len(written)


WRONG = {
    "broken JSON": (['{"_id": "a", "text": "x"}', '{"_id": "b", '], r"corpus\.jsonl:2: the line is not JSON"),
    "not an object": (["[1, 2]"], r"corpus\.jsonl:1: the line is JSON but not an object"),
    "deep nesting": (["[" * 100_000], r"corpus\.jsonl:1: the line is not JSON"),
    "no id": (['{"text": "x"}'], r"corpus\.jsonl:1: the field '_id' is missing"),
    "empty id": (['{"_id": "", "text": "x"}'], r"corpus\.jsonl:1: the field '_id' is missing"),
    "control character": (['{"_id": "a\\u0000b", "text": "x"}'], r"corpus\.jsonl:1: the field '_id' is missing, empty"),
    "no text": (['{"_id": "a"}'], r"corpus\.jsonl:1: document 'a' has no field 'text'"),
    "text is a number": (['{"_id": "a", "text": 3}'], r"corpus\.jsonl:1: document 'a' has no field 'text'"),
    "metadata": (['{"_id": "a", "text": "x", "metadata": "y"}'], r"corpus\.jsonl:1: document 'a' has a 'metadata'"),
    "half a surrogate": (['{"_id": "a", "text": "\\ud800"}'], r"corpus\.jsonl:1: .* half of a surrogate pair"),
    "wrong encoding": ([b'{"_id": "a", "text": "caf\xe9"}'], r"corpus\.jsonl:1: byte 26 of the line is not UTF-8"),
    "duplicate id": (
        ['{"_id": "a", "text": "x"}', "", '{"_id": "b", "text": "x"}', '{"_id": "a", "text": "y"}'],
        r"corpus\.jsonl:4: the document id 'a' is there already, at .*corpus\.jsonl:1",
    ),
    "empty corpus": ([], r"corpus\.jsonl: the corpus is empty"),
}


@pytest.mark.parametrize(("lines", "sentence"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_corpus_is_refused_with_file_and_line(beir, lines, sentence):
    dataset = load_dataset(beir(documents=lines, qrels={}))
    with pytest.raises(InputError, match=sentence) as caught:
        ensure_sound(dataset)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("q0\tnowhere\t1", r"test\.tsv:2: the judged document 'nowhere' is not in the corpus"),
        ("nobody\td0\t1", r"test\.tsv:2: the judged query 'nobody' is not among the queries"),
        ("q0\td0", r"test\.tsv:2: a judgement has 3 tab-separated fields"),
        ("q0\td0\tyes", r"test\.tsv:2: the score 'yes' is not a whole number"),
        ("q0\td0\t0.5", r"test\.tsv:2: the score '0.5' is not a whole number"),
        ("q0\td0\tnan", r"test\.tsv:2: the score 'nan' is not a whole number"),
        ("q0\td0\t1_0", r"test\.tsv:2: the score '1_0' is not a whole number"),
        ("q0\td0\t99999999999", r"test\.tsv:2: the score '99999999999' is not a whole number below 1,000"),
        ("q0\td0\tscore", r"test\.tsv:2: the score 'score' is not a whole number"),
        ("q0\td0\t1\nq0\td0\t1", r"test\.tsv:3: query 'q0' judges document 'd0' a second time"),
    ],
)
def test_a_wrong_judgement_is_refused_with_file_and_line(beir, line, sentence):
    with pytest.raises(InputError, match=sentence):
        ensure_sound(load_dataset(beir(qrels={"test": line.split("\n")})))


def test_check_reports_all_problems_at_once(beir):
    folder = beir(
        documents=['{"_id": "a", "text": "x"}', "oops", '{"_id": "a", "text": "y"}', b"\xff"],
        queries=['{"_id": "q"}', '{"_id": "r", "text": "r"}'],
        qrels={"test": ["r\ta\t1", "r\tmissing\t1"], "dev": []},
    )
    counts, problems = find_problems(load_dataset(folder))
    places = [(problem.place.file.rsplit("/", 1)[-1], problem.place.line) for problem in problems]
    assert places == [
        ("corpus.jsonl", 2),
        ("corpus.jsonl", 4),
        ("corpus.jsonl", 3),
        ("queries.jsonl", 1),
        ("dev.tsv", 0),
        ("test.tsv", 3),
    ]
    assert counts.documents == 2 and counts.judgements == {"dev": 0, "test": 2}


def test_gzipped_files_are_read_and_a_cut_one_is_named(beir):
    folder = beir()
    plain = (folder / "corpus.jsonl").read_bytes()
    expected = list(load_dataset(folder).documents)
    (folder / "corpus.jsonl").unlink()
    packed = gzip.compress(plain)
    (folder / "corpus.jsonl.gz").write_bytes(packed)
    assert list(load_dataset(folder).documents) == expected
    (folder / "corpus.jsonl.gz").write_bytes(packed[:-20])
    with pytest.raises(InputError, match=r"corpus\.jsonl\.gz:?\d*: the gzip file is broken or cut here"):
        list(load_dataset(folder).documents)


def test_ids_that_are_numbers_and_a_byte_order_mark_are_taken(beir):
    folder = beir(documents=[b'\xef\xbb\xbf{"_id": 7, "text": "x"}'], qrels={"test": ["q0\t7\t1"]})
    assert [document.id for document in load_dataset(folder).documents] == ["7"]


def test_lines_end_at_line_feeds_only(beir):
    folder = beir(documents=[json.dumps({"_id": "a", "text": "one\u2028two\x0bthree"}, ensure_ascii=False)], qrels={})
    assert next(iter(load_dataset(folder).documents)).text == "one\u2028two\x0bthree"


def test_an_unknown_split_names_those_there_are(beir):
    with pytest.raises(InputError, match=r"no split 'train'; its splits are: dev, test"):
        load_dataset(beir()).qrels("train")


def test_a_split_without_judgements_is_refused(beir):
    with pytest.raises(InputError, match=r"split 'test' has no judgements"):
        load_dataset(beir(qrels={"test": []})).qrels("test")


def test_a_file_that_was_cut_is_found_by_the_counts_of_the_card(beir):
    folder = beir()
    (folder / "card.json").write_text('{"name": "x", "documents": 41, "queries": {"test": 6, "dev": 5}}')
    _, problems = find_problems(load_dataset(folder))
    assert [problem.sentence for problem in problems] == [
        "the card says 41 documents and there are 40.",
        "the card says 5 queries of dev and there are 4.",
    ]


def test_only_tsv_files_are_splits(beir):
    folder = beir()
    (folder / "qrels" / "test.tsv.bak").write_text("old")
    assert load_dataset(folder).splits == ("dev", "test")


def test_a_corpus_without_judgements_is_said_to_have_none(beir):
    _, problems = find_problems(load_dataset(beir(qrels={})))
    assert [problem.sentence for problem in problems] == ["there are no judgements, so nothing can be measured on it."]


def test_a_broken_card_is_refused(beir):
    folder = beir()
    (folder / "card.json").write_text('{"name": "x", "relevance": "two"}')
    with pytest.raises(RepconcError, match=r"card\.json: relevance is not as this program writes it"):
        _ = load_dataset(folder).card


@pytest.mark.parametrize("name", ["", "no-such-thing", "hotpotqa"])
def test_a_name_that_is_nothing_says_what_would_be(name):
    with pytest.raises(InputError, match=r"neither a folder nor a known data set|repconc data get hotpotqa"):
        load_dataset(name or "nowhere:")


def test_a_folder_that_is_no_data_set_says_so(tmp_path):
    with pytest.raises(InputError, match="is not a data set"):
        load_dataset(tmp_path)
