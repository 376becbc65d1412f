"""MS MARCO folders in the form of their downloads."""

import gzip

import pytest

from repconc import load_dataset
from repconc.data.check import ensure_sound, find_problems
from repconc.lines import InputError
from repconc.records import Document, Query


@pytest.fixture
def passages(tmp_path):
    (tmp_path / "collection.tsv").write_text("0\tfirst passage\n1\tsecond passage\n")
    (tmp_path / "queries.train.tsv").write_text("10\twhat is first\n11\tnot judged\n")
    (tmp_path / "qrels.train.tsv").write_text("10\t0\t0\t1\n")
    (tmp_path / "queries.dev.small.tsv").write_text("20\twhat is second\n")
    (tmp_path / "qrels.dev.small.tsv").write_text("20 0 1 1\n")
    with gzip.open(tmp_path / "msmarco-test2019-queries.tsv.gz", "wt") as file:
        file.write("30\twhat is graded\n")
    (tmp_path / "2019qrels-pass.txt").write_text("30 Q0 0 1\n30 Q0 1 3\n")
    (tmp_path / "queries.eval.tsv").write_text("40\tno judgements\n")
    return tmp_path


def test_passages(passages):
    dataset = load_dataset(passages)
    assert list(dataset.documents) == [Document("0", "first passage"), Document("1", "second passage")]
    assert dataset.splits == ("dev.small", "dl2019", "train")
    assert dataset.queries("train") == [Query("10", "what is first")]
    assert dataset.qrels("dev.small") == {"20": {"1": 1}}
    assert dataset.qrels("dl2019") == {"30": {"0": 1, "1": 3}}
    assert ensure_sound(dataset).documents == 2


def test_trec_passages_are_relevant_from_grade_two(passages):
    dataset = load_dataset(passages)
    assert (dataset.relevance("dl2019"), dataset.relevance("dev.small")) == (2, 1)


def test_documents_with_url_title_and_body(tmp_path):
    with gzip.open(tmp_path / "msmarco-docs.tsv.gz", "wt") as file:
        file.write("D1\thttp://example.org/\tA title\tThe body\nD2\thttp://example.org/2\t\tAnother body\n")
    with gzip.open(tmp_path / "msmarco-doctrain-queries.tsv.gz", "wt") as file:
        file.write("1\ta question\n")
    with gzip.open(tmp_path / "msmarco-doctrain-qrels.tsv.gz", "wt") as file:
        file.write("1 0 D2 1\n")
    (tmp_path / "msmarco-test2019-queries.tsv").write_text("2\tanother\n")
    (tmp_path / "2019qrels-docs.txt").write_text("2 Q0 D1 1\n")
    dataset = load_dataset(tmp_path)
    first, second = dataset.documents
    assert first == Document("D1", "The body", "A title", {"url": "http://example.org/"})
    assert (first.full_text, second.full_text) == ("A title The body", "Another body")
    assert dataset.qrels("train") == {"1": {"D2": 1}}
    assert dataset.relevance("dl2019") == 1


@pytest.mark.parametrize(
    ("file", "content", "sentence"),
    [
        ("collection.tsv", "0\tone\ttwo\n", r"collection\.tsv:1: the line has 3 tab-separated fields instead of 2"),
        ("collection.tsv", "\tone\n", r"collection\.tsv:1: the id, the first field of the line, is empty"),
        ("collection.tsv", "0\tone\n0\ttwo\n", r"collection\.tsv:2: the document id '0' is there already"),
        ("qrels.train.tsv", "10 0 0\n", r"qrels\.train\.tsv:1: a TREC judgement has 4 fields"),
        ("qrels.train.tsv", "10 0 0 one\n", r"qrels\.train\.tsv:1: the grade 'one' is not a whole number"),
        ("qrels.train.tsv", "10 0 9 1\n", r"qrels\.train\.tsv:1: the judged document '9' is not in the corpus"),
        ("queries.train.tsv", "11\tother\n", r"qrels\.train\.tsv:1: the judged query '10' is not among the queries"),
    ],
)
def test_what_is_wrong_is_named_by_file_and_line(passages, file, content, sentence):
    (passages / file).write_text(content)
    with pytest.raises(InputError, match=sentence):
        ensure_sound(load_dataset(passages), ["train"])


def test_judgements_without_their_queries_are_found(passages):
    (passages / "qrels.dev.tsv").write_text("20 0 nowhere 1\n")
    _, problems = find_problems(load_dataset(passages))
    sentences = [problem.sentence for problem in problems]
    assert "the file with the queries of split 'dev' is missing." in sentences
    assert "the judged document 'nowhere' is not in the corpus." in sentences
