"""`repconc compress` and what is done with its index afterwards, by vectors and, with an encoder, by text."""

import json

import numpy as np
import pytest

from repconc.models.encoder import Encoder
from tests.cli.test_index import as_json, run
from tests.compression.conftest import world  # noqa: F401 (a fixture)
from tests.training.conftest import texts, tiny_static  # noqa: F401 (a fixture)

RECIPE = """
train = "heads"
dense = []
quantizer = {codewords = 16, turns = 5}
stage_one = {epochs = 1, batch = 256, iterations = 20, evaluations = 1, distillation = 1.0}
stage_two = {epochs = 0.5, batch = 64, depth = 20, evaluations = 1, distillation = 1.0}
"""


@pytest.fixture
def files(world, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipe.toml").write_text(RECIPE)
    np.save("vectors.npy", world.documents)
    np.save("queries.npy", world.queries)
    (tmp_path / "labels.tsv").write_text("".join(f"{n}\t{n}\t1\n" for n in range(120)))
    return tmp_path


def test_the_life_of_an_index_over_given_vectors(files, world):  # noqa: F811
    options = ["--bytes", "6", "--recipe", "recipe.toml", "--queries", "queries.npy", "--qrels", "labels.tsv"]
    made = as_json("compress", "vectors.npy", "-o", "index", *options)
    assert (made["mode"], made["bytes"]) == ("labels", 6)
    assert made["sentences"]
    page = (files / "index.report.html").read_text()
    assert "What compression did" in page
    rows = json.loads((files / "index.report.json").read_text())["rows"]
    assert {"uncompressed", "PQ", "OPQ", "ours", "uncompressed, our maps"} <= {row["name"] for row in rows}

    lines = run("search", "index", "--vectors", "queries.npy", "-k", "3", "--json").stdout.splitlines()
    assert len(lines) == 120
    assert json.loads(lines[5])["question"] == "row 5"
    (files / "new.txt").write_text("".join(f"new {n}\n" for n in range(600)))
    assert as_json("index", "add", "index", "--vectors", "vectors.npy", "--ids", "new.txt")["added"] == 600
    assert as_json("index", "info", "index")["documents"] == 1200
    assert "what the documents are called" in _error("index", "update", "index", "--vectors", "vectors.npy")
    np.savez("two.npz", a=world.queries, b=world.queries[:2])
    assert len(run("search", "index", "--vectors", "two.npz", "--name", "b", "--json").stdout.splitlines()) == 2
    assert "by vectors, not by text" in _error("search", "index", "a question")
    assert run("export", "faiss", "index", "-o", "index.faiss").exit_code == 0


def test_with_its_encoder_it_is_searched_by_text(files, tiny_static):  # noqa: F811
    documents, queries = texts()
    rows = [{"_id": f"d{n}", "text": text, "title": ""} for n, text in enumerate(documents)]
    (files / "documents.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    np.save("texts.npy", Encoder(str(tiny_static)).embed_documents(documents))
    options = ["--documents", "documents.jsonl", "--encoder", str(tiny_static), "--recipe", "recipe.toml"]
    as_json("compress", "texts.npy", "-o", "index", "--bytes", "8", "--no-report", *options)
    answers = run("search", "index", queries[0], "-k", "5", "--json").stdout
    assert documents[0] in {hit["text"] for hit in json.loads(answers)["hits"]}
    (files / "more.jsonl").write_text(json.dumps({"_id": "more", "text": "castle river bridge"}) + "\n")
    assert as_json("index", "add", "index", "more.jsonl")["added"] == 1

    np.save("texts.npy", np.random.default_rng(0).normal(size=(len(documents), 16)))
    assert "it is not theirs" in _error("compress", "texts.npy", "-o", "other", *options)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nothing.npy"], "is not there"),
        (["vectors.npy", "--qrels", "labels.tsv"], "no queries"),
        (["vectors.npy", "--bytes", "6", "--ratio", "8"], "only one"),
        (["vectors.npy", "--mode", "queries"], "documents is possible"),
        (["vectors.npy", "--report", "report.pdf"], "neither .html nor .md"),
        (["vectors.npy", "--report", "index/report.md"], "in the folder of the index itself"),
        (["vectors.npy", "--report", "vectors.npy/report.md"], "a file above it"),
        (["recipe.toml"], "is none of"),
    ],
)
def test_what_cannot_be_done_is_one_sentence_and_changes_nothing(files, arguments, sentence):
    before = sorted(files.iterdir())
    assert sentence in _error("compress", *arguments, "-o", "index")
    assert sorted(files.iterdir()) == before


def _error(*arguments: str) -> str:
    from repconc.errors import RepconcError

    with pytest.raises(RepconcError) as error:
        run(*arguments)
    return str(error.value)
