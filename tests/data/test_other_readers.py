"""ir_datasets and Hugging Face datasets, through the real packages on local data."""

import ir_datasets
import pytest
from ir_datasets.datasets.base import Dataset
from ir_datasets.formats import TrecQrels, TsvDocs, TsvQueries

from repconc import load_dataset
from repconc.data.check import ensure_sound
from repconc.lines import InputError
from repconc.records import Document, Query


class LocalFile:
    """A file as ir_datasets' formats want it."""

    def __init__(self, path):
        self._path = path

    def path(self, force=True):
        return self._path

    def stream(self):
        return open(self._path, "rb")  # noqa: PTH123 (the reader closes it)


@pytest.fixture
def registered(tmp_path):
    (tmp_path / "docs.tsv").write_text("d1\tfirst\nd2\tsecond\n")
    (tmp_path / "queries.tsv").write_text("q1\twhat\n")
    (tmp_path / "qrels").write_text("q1 0 d2 1\n")
    docs = TsvDocs(LocalFile(tmp_path / "docs.tsv"), namespace="local", count_hint=None)
    names = ["local-set", "local-set/test"]
    ir_datasets.registry.register(names[0], Dataset(docs))
    queries = TsvQueries(LocalFile(tmp_path / "queries.tsv"), namespace="local")
    ir_datasets.registry.register(names[1], Dataset(docs, queries, TrecQrels(LocalFile(tmp_path / "qrels"), {})))
    yield names
    for name in names:
        del ir_datasets.registry._registered[name]


def test_ir_datasets_gives_the_same_kind_of_data_set(registered):
    dataset = load_dataset("irds:local-set")
    assert dataset.splits == ("test",)
    assert list(dataset.documents) == [Document("d1", "first"), Document("d2", "second")]
    assert dataset.queries("test") == [Query("q1", "what")]
    assert dataset.qrels("test") == {"q1": {"d2": 1}}
    assert load_dataset("irds:local-set/test").qrels("test") == {"q1": {"d2": 1}}
    assert ensure_sound(dataset).documents == 2


def test_trec_passages_of_ir_datasets_are_relevant_from_grade_two():
    dataset = load_dataset("irds:msmarco-passage/trec-dl-2019")
    assert dataset.relevance("trec-dl-2019") == 2
    assert load_dataset("irds:msmarco-document/trec-dl-2019").relevance("trec-dl-2019") == 1


def test_an_unknown_name_of_ir_datasets_is_refused():
    with pytest.raises(InputError, match="knows no data set 'nothing-like-it'"):
        load_dataset("irds:nothing-like-it")


@pytest.fixture
def hub_folder(tmp_path):
    """A data set repository in MTEB's layout, as it would be downloaded."""
    folder = tmp_path / f"repository-of-{tmp_path.name}"  # the datasets package caches by the folder's name
    folder.mkdir()
    (folder / "README.md").write_text(
        "---\nconfigs:\n"
        "- config_name: corpus\n  data_files:\n  - split: corpus\n    path: corpus.jsonl\n"
        "- config_name: queries\n  data_files:\n  - split: queries\n    path: queries.jsonl\n"
        "- config_name: default\n  data_files:\n  - split: test\n    path: test.jsonl\n"
        "---\n"
    )
    (folder / "corpus.jsonl").write_text('{"_id": "d1", "title": "T", "text": "first"}\n')
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "what"}\n')
    (folder / "test.jsonl").write_text('{"query-id": "q1", "corpus-id": "d1", "score": 1}\n')
    return folder


def test_hugging_face_gives_the_same_kind_of_data_set(hub_folder):
    dataset = load_dataset(f"hf:{hub_folder}")
    assert list(dataset.documents) == [Document("d1", "first", "T")]
    assert dataset.splits == ("test",)
    assert dataset.queries("test") == [Query("q1", "what")]
    assert dataset.qrels("test") == {"q1": {"d1": 1}}


def test_the_judgements_may_lie_in_a_second_repository(hub_folder):
    """BEIR's layout on the hub: NAME and NAME-qrels."""
    second = hub_folder.with_name(f"{hub_folder.name}-qrels")
    second.mkdir()
    (hub_folder / "test.jsonl").rename(second / "validation.jsonl")
    readme = (hub_folder / "README.md").read_text()
    (hub_folder / "README.md").write_text(readme[: readme.index("- config_name: default")] + "---\n")
    dataset = load_dataset(f"hf:{hub_folder}")
    assert dataset.splits == ("dev",)
    assert dataset.qrels("dev") == {"q1": {"d1": 1}}


@pytest.mark.parametrize(
    "row", ['{"query-id": "q1", "corpus-id": "d1", "score": 0.5}', '{"query-id": "q1", "score": 1}']
)
def test_a_wrong_judgement_of_a_hugging_face_set_is_named(hub_folder, row):
    (hub_folder / "test.jsonl").write_text(row + "\n")
    with pytest.raises(InputError, match=r"hf:.*/test:1: the row has no"):
        load_dataset(f"hf:{hub_folder}").qrels("test")


def test_a_hugging_face_set_that_is_none_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be opened"):
        load_dataset(f"hf:{tmp_path / 'nowhere'}")
