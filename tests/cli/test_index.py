"""The life of an index on the command line, with a model that was really trained."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from repconc.cli.main import app
from repconc.codec import score
from repconc.indexes.ivf import Index
from repconc.models.repconc import RepconcModel
from tests.training.conftest import labelled, tiny_static  # noqa: F401 (fixtures)


def run(*arguments: str, text: str | None = None):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=text)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def as_json(*arguments: str, text: str | None = None):
    return json.loads(run(*arguments, "--json", text=text).stdout)


RECIPE = """
validation_split = "train"
quantizer = {bytes = 4, codewords = 16, turns = 5}
dense = [{epochs = 1, batch = 16}]
stage_one = {epochs = 1, batch = 16}
stage_two = {epochs = 1, batch = 16}
"""
trained: dict[str, Path] = {}


@pytest.fixture
def model(tiny_static, labelled, tmp_path, tmp_path_factory, monkeypatch):  # noqa: F811
    """Trained once for all tests."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipe.toml").write_text(RECIPE)
    if "model" not in trained:
        folder = tmp_path_factory.mktemp("trained") / "model"
        run("train", labelled, "-o", folder, "--recipe", "recipe.toml", "--encoder", tiny_static, "--quiet")
        trained["model"] = folder
    return trained["model"]


def test_an_index_lives(model, labelled, tmp_path):  # noqa: F811
    built = as_json("index", "build", model, labelled, "-o", "index", "--lists", 8)
    assert built["documents"] == 240 and built["lists"] == 8
    exhaustive = as_json("eval", model, labelled)["measures"]
    assert as_json("tune", "index", labelled, "--target", 1)["probes"] <= 8
    assert (tmp_path / "index.tuning.png").read_bytes().startswith(b"\x89PNG")
    tuned = as_json("eval", "index", labelled)["measures"]
    assert tuned.keys() == exhaustive.keys() and 0 < tuned["MRR@10"] <= 1

    (tmp_path / "new.jsonl").write_text(
        json.dumps({"_id": "new", "title": "River", "text": "a river of gold", "metadata": {"year": 2024}}) + "\n"
    )
    assert as_json("index", "add", "index", "new.jsonl") == {"added": 1, "replaced": 0, "removed": 0}
    found = as_json("search", "index", "river of gold", "-k", 3, "--filter", "year = 2024")
    assert [(hit["id"], hit["title"], hit["metadata"]) for hit in found["hits"]] == [("new", "River", {"year": 2024})]
    assert as_json("search", "index", "river of gold", "--first", 1) == as_json("search", "index", "river of gold")
    line = json.dumps({"_id": "new", "text": "a queen of stone\x1b[2J"})
    command = [sys.executable, "-m", "repconc.cli.main", "index", "update", "index", "-", "--json"]
    piped = subprocess.run(command, input=line, text=True, capture_output=True, check=True)  # a real pipe
    assert json.loads(piped.stdout)["replaced"] == 1
    assert as_json("index", "remove", "index", "-", text="d0\nd1\n")["removed"] == 2
    assert as_json("index", "info", "index")["segments"] == 2
    assert as_json("index", "compact", "index")["removed"] == 2
    assert as_json("index", "check", "index")["documents"] == 239
    shown = run("search", "index", "-k", 240, text="a queen of stone\n\nking\n").stdout
    assert "a queen of stone" in shown and "[new]" in shown and "\x1b" not in shown and "[d0]" not in shown
    info = run("index", "info", "index").stdout
    assert "documents:  239" in info and "less than 16 floats" in info
    run("export", "faiss", "index", "-o", "index.faiss")
    assert as_json("import", "faiss", "index.faiss", "-o", "back")["documents"] == 239


def test_from_vectors_it_is_the_same_index(model, labelled):  # noqa: F811
    run("encode", model, labelled, "-o", "vectors", "--quiet")
    run("index", "build", model, labelled, "-o", "one")
    run("index", "build", model, labelled, "-o", "two", "--vectors", "vectors")
    run("index", "build", model, "-o", "three", "--vectors", "vectors")
    one, two, three = (as_json("search", name, "river of gold", "-k", 50) for name in ("one", "two", "three"))
    assert one == two
    assert [hit["id"] for hit in three["hits"]] == [hit["id"] for hit in one["hits"]]


def test_the_beam_of_an_index_codes_what_is_added_later_too(tiny_static, labelled, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipe.toml").write_text(RECIPE)
    (tmp_path / "new.jsonl").write_text('{"_id": "new", "text": "a river of gold"}\n')
    run("train", labelled, "-o", "model", "--recipe", "recipe.toml", "--encoder", tiny_static, "--codes", "additive")
    for beam in (1, 64):
        run("index", "build", "model", labelled, "-o", str(beam), "--beam", beam, "--lists", 26)
        run("index", "add", str(beam), "new.jsonl")
    plain, wide = (Index(name) for name in ("1", "64"))
    assert (plain.coding.beam, wide.coding.beam) == (1, 64)
    assert as_json("index", "info", "64")["codes"].endswith("bytes, additive, beam 64")
    vectors = RepconcModel.load("model").encoder.embed_documents(["a river of gold"])
    for index in (plain, wide):
        scores = [hit.score for hit in index.search(vectors, 241, probes=26)[0] if hit.id == "new"]
        own = index.coding.encode(vectors)
        gain = index.coding.gains[index.coding.classes_of(own)]
        assert scores == pytest.approx(gain * score(index.scoring.tables(vectors)[0], own))


def test_what_is_refused(model, labelled, tiny_static, tmp_path):  # noqa: F811
    from repconc.errors import CheckError, RepconcError

    with pytest.raises(RepconcError, match="without a beam; leave it out"):
        run("index", "build", model, labelled, "-o", "index", "--beam", 8)
    run("index", "build", model, labelled, "-o", "index")
    with pytest.raises(RepconcError, match="first is 99; codes have"):
        run("search", "index", "river", "--first", 99)
    with pytest.raises(RepconcError, match="Question 1 is empty"):
        run("search", "index", "  ")
    with pytest.raises(RepconcError, match="no model of ours"):
        run("search", "index", "river", "--model", tiny_static)
    run("train", labelled, "-o", "other", "--recipe", "recipe.toml", "--encoder", tiny_static, "--seed", 1, "--quiet")
    with pytest.raises(RepconcError, match="is not the one that index was built with"):
        run("search", "index", "river", "--model", "other")
    (tmp_path / "bad.jsonl").write_text('{"_id": "x", "text": "fine"}\n{"_id": "y"}\n')
    with pytest.raises(RepconcError, match=r"bad.jsonl:2: document 'y' has no field 'text'"):
        run("index", "add", "index", "bad.jsonl")
    assert as_json("index", "info", "index")["documents"] == 240
    with pytest.raises(RepconcError, match="Say what you want"):
        run("tune", "index", labelled)
    with pytest.raises(RepconcError, match="lies in the folder of the index itself"):
        run("export", "faiss", "index", "-o", "index/index.json")
    with pytest.raises(RepconcError, match="'fast' is no time"):
        run("tune", "index", labelled, "--latency", "fast")
    codes = next((tmp_path / "index").glob("*.codes"))
    codes.write_bytes(b"\xff" + codes.read_bytes()[1:])
    with pytest.raises(CheckError, match="damaged near byte 0"):
        run("index", "check", "index")
