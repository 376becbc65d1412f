"""Sets that come with packages: the converters on rows in their packages' own form, and the whole sets (slow)."""

import json
import shutil

import pytest

from repconc import load_dataset
from repconc.data import catalogue
from repconc.data.catalogue import CATALOGUE
from repconc.data.check import find_problems
from repconc.records import Document, Query


def test_hotpotqa_keeps_each_paragraph_once_and_both_supporting_ones():
    context = [["Ed Wood", ["Ed was", " a director."]], ["Other", ["Text."]]]
    rows = [
        {"_id": "a", "question": " Who? ", "context": context, "supporting_facts": [["Ed Wood", 0], ["Other", 0]]},
        {"_id": "b", "question": "What?", "context": context[:1], "supporting_facts": [["Ed Wood", 0], ["Ed Wood", 1]]},
    ]
    documents, questions = catalogue._hotpotqa(rows)
    assert list(documents) == [
        Document("Ed_Wood", "Ed was a director.", "Ed Wood"),
        Document("Other", "Text.", "Other"),
    ]
    assert questions[0].query == Query("a", "Who?")
    assert [question.relevant for question in questions] == [("Ed_Wood", "Other"), ("Ed_Wood",)]


def test_insuranceqa_squeezes_blanks_and_keeps_its_splits():
    answers = {"1": {"en": " Two  words.", "zh": ""}}
    row = {"en": "Is  it  so?", "answers": ["1", "1"], "negatives": []}
    documents, questions = catalogue._insuranceqa(answers, {"0": row}, {"0": row}, {"0": row})
    assert list(documents) == [Document("1", "Two words.")]
    assert [(q.query.id, q.split, q.relevant) for q in questions] == [
        ("train-0", "train", ("1",)),
        ("dev-0", "dev", ("1",)),
        ("test-0", "test", ("1",)),
    ]
    assert questions[0].query.text == "Is it so?"


def test_squad_leaves_out_what_has_no_answer():
    qas = [
        {"id": "a", "question": "Q?", "is_impossible": False},
        {"id": "b", "question": "No?", "is_impossible": True},
    ]
    content = {"data": [{"title": "The_Title", "paragraphs": [{"context": " Text ", "qas": qas}]}]}
    documents, questions = catalogue._squad(content)
    assert list(documents) == [Document("The_Title/0", "Text", "The Title")]
    assert [(question.query.id, question.relevant) for question in questions] == [("a", ("The_Title/0",))]


def test_nq_and_vitaminc_merge_equal_texts():
    examples = [{"input": "\nQuestion: who?\nContext: Him."}, {"input": "\nQuestion: who?\nContext: Her."}]
    documents, questions = catalogue._nq({"examples": [*examples, examples[0]]})
    assert [document.text for document in documents] == ["Him.", "Her."]
    assert [(q.query.text, q.relevant) for q in questions] == [("who?", ("nq-d0", "nq-d1"))]
    examples = [
        {"input": "Page: Text\nClaim: It is.", "target_scores": {"True": 1, "False": 0, "Neither": 0}},
        {"input": "Page: Other: text\nClaim: It is.", "target_scores": {"True": 0, "False": 1, "Neither": 0}},
    ]
    documents, questions = catalogue._vitaminc({"examples": examples})
    assert [(document.title, document.text) for document in documents] == [("Page", "Text"), ("Page", "Other: text")]
    assert [(question.query.text, question.relevant) for question in questions] == [("It is.", ("vitaminc-d0",))]


def test_the_split_is_fixed_whatever_the_order():
    questions = [catalogue.Question(Query(f"q{number}", "?"), ("d",)) for number in range(2000)]
    split = catalogue._split(questions)
    assert {name: len(rows) for name, rows in split.items()} == {"train": 500, "dev": 500, "test": 1000}
    assert catalogue._split(questions[::-1]) == split
    assert [row.query.id for row in split["dev"][:3]] == ["q0", "q10", "q1001"]


EXPECTED = {
    "hotpotqa": (66_581, {"train": 5905, "dev": 500, "test": 1000}),
    "insuranceqa": (27_413, {"train": 12_889, "dev": 2000, "test": 2000}),
    "squad": (1204, {"train": 4428, "dev": 500, "test": 1000}),
    "nq": (17_528, {"train": 16_026, "dev": 500, "test": 1000}),
    "vitaminc": (26_259, {"train": 24_154, "dev": 500, "test": 1000}),
}


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", EXPECTED)
def test_the_whole_set_is_fetched_verified_and_sound(name, tmp_path):
    """Over the network, from the real packages."""
    folder = catalogue.get(name, tmp_path / name)
    dataset = load_dataset(folder)
    counts, problems = find_problems(dataset)
    assert problems == []
    assert (counts.documents, counts.queries) == EXPECTED[name]
    assert dataset.card.sha256 == CATALOGUE[name].archive.sha256
    assert json.loads((folder / "card.json").read_text())["licence"]
    shutil.rmtree(folder)
