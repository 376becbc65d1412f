"""The command line as a person uses it: a process, its output, its exit code."""

import io
import json
import os
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from repconc.cli.main import app, main
from repconc.errors import RepconcError

ONE_WORD = ["encode", "train", "compress", "search", "tune", "eval", "compare", "bench", "demo"]
VERBS = [["data", "get"], ["data", "list"], ["data", "check"], *([verb] for verb in ONE_WORD)]


def repconc(*arguments) -> SimpleNamespace:
    """Run a verb as its process would, but in this one, where torch is loaded already."""
    out, err = io.StringIO(), io.StringIO()
    with (
        patch.object(sys, "argv", ["repconc", *map(str, arguments)]),
        patch.dict(os.environ),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as end,
    ):
        main()
    return SimpleNamespace(returncode=end.value.code or 0, stdout=out.getvalue(), stderr=err.getvalue())


def succeed(*arguments) -> str:
    result = repconc(*arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_every_verb_explains_itself_with_an_example():
    from typer.testing import CliRunner

    for verb in VERBS:
        result = CliRunner().invoke(app, [*verb, "--help"])
        assert result.exit_code == 0
        assert f"Example: repconc {' '.join(verb)}" in " ".join(result.output.split())


def test_the_whole_walk_from_corpus_to_comparison(beir, tiny_bert, tmp_path):
    folder = beir()
    assert "40 documents" in succeed("data", "check", folder)
    vectors, dense, keywords = tmp_path / "vectors", tmp_path / "dense.run", tmp_path / "bm25.run"
    assert succeed("encode", tiny_bert, folder, "-o", vectors, "--shard-size", 16).strip() == str(vectors)
    first = json.loads(succeed("eval", vectors, folder, "--run-out", dense, "--json"))
    assert first["queries"] == 6 and 0 < first["measures"]["MRR@10"] <= 1
    again = json.loads(succeed("eval", dense, folder, "--json"))
    assert again["measures"] == first["measures"], "a run file gives the measures of the search that wrote it"
    assert "MRR@10" in succeed("eval", "bm25", folder, "--run-out", keywords, "--measures", "MRR@10,P@1")
    table = succeed("compare", dense, keywords, "-d", folder, "--format", "markdown")
    assert table.startswith("| system | MRR@10")
    report = json.loads(succeed("compare", dense, keywords, "-d", folder, "--json"))
    assert report["reference"] == "dense" and report["systems"]["bm25"]["nDCG@10"]["p_holm"] is not None
    assert r"\toprule" in succeed("compare", dense, keywords, "-d", folder, "--format", "latex")


def test_a_check_that_does_not_hold_exits_with_three_and_lists_everything(beir):
    result = repconc("data", "check", beir(documents=["{", '{"_id": "a"}'], qrels={}))
    assert result.returncode == 3
    assert "corpus.jsonl:1:" in result.stdout and "corpus.jsonl:2:" in result.stdout
    assert result.stderr.strip().endswith("they are listed above.")


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["data", "get", "nothing"], 1, "There is no data set 'nothing'; there are: hotpotqa"),
        (["data", "check", "nowhere"], 1, "neither a folder nor a known data set"),
        (["eval", "nowhere", "SET"], 1, "neither a run file nor an index nor a model nor a folder of vectors"),
        (["eval", "bm25", "SET", "--split", "train"], 1, "no split 'train'; its splits are: dev, test"),
        (["eval", "bm25", "SET", "--measures", "odd@3"], 1, "'odd@3' is not a measure"),
        (["encode", "./no-model", "SET", "-o", "OUT"], 1, "The encoder './no-model' is not there"),
        (["encode", "minilm", "SET", "-o", "OUT", "--shard", "4/4"], 2, "4/4 is not i/n"),
        (["compare", "a.run", "-d", "SET"], 2, "at least two run files"),
        (["eval", "bm25", "SET", "--run-out", "."], 1, "is a folder; give the name of a file"),
        (["encode", "minilm"], 2, "Missing argument"),
        (["frobnicate"], 2, "No such command"),
    ],
)
def test_an_error_is_one_sentence_and_an_exit_code(beir, tmp_path, arguments, code, sentence):
    folder = beir()
    names = {"SET": str(folder), "OUT": str(tmp_path / "out")}
    result = repconc(*(names.get(argument, argument) for argument in arguments))
    assert result.returncode == code
    assert sentence in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "out").exists()


def test_debug_raises_the_error():
    command = ["repconc", "--debug", "data", "check", "nowhere"]
    with patch.dict(os.environ), patch.object(sys, "argv", command), pytest.raises(RepconcError):
        main()


def test_an_error_of_ours_is_one_sentence_too(monkeypatch):
    """What nobody foresaw still gives no traceback, and says how to get one."""
    monkeypatch.setattr("repconc.data.load.load_dataset", lambda _: 1 / 0)
    result = repconc("data", "check", "x")
    assert result.returncode == 1
    sentence = "unexpected ZeroDivisionError: division by zero; 'repconc --debug ...' shows where."
    assert result.stderr == f"repconc: {sentence}\n"


def test_a_folder_that_holds_another_set_is_not_taken_for_the_asked_one(beir):
    folder = beir()
    (folder / "card.json").write_text('{"name": "squad"}')
    result = repconc("data", "get", "hotpotqa", "-o", folder)
    assert result.returncode == 1
    assert "is not empty and is not hotpotqa" in result.stderr
    assert "squad is already there" in repconc("data", "get", "squad", "-o", folder).stderr


def test_vectors_of_another_corpus_are_refused(beir, tiny_bert, tmp_path):
    succeed("encode", tiny_bert, beir(), "-o", tmp_path / "vectors")
    other = beir(documents=[{"_id": f"d{i}", "text": "other"} for i in range(10)], name="other")
    result = repconc("eval", tmp_path / "vectors", other)
    assert result.returncode == 1 and "are of another corpus" in result.stderr


def test_an_encoder_that_changed_since_is_refused(beir, tiny_bert, tmp_path):
    import shutil

    from sentence_transformers import SentenceTransformer

    folder = beir()
    shutil.copytree(tiny_bert, tmp_path / "model")
    succeed("encode", tmp_path / "model", folder, "-o", tmp_path / "vectors")
    model = SentenceTransformer(str(tmp_path / "model"))
    next(model.parameters()).data[0, 0] += 1
    model.save(str(tmp_path / "model"), create_model_card=False)
    result = repconc("eval", tmp_path / "vectors", folder)
    assert result.returncode == 1 and "is not the one that made" in result.stderr


def test_an_interrupt_exits_with_130(tmp_path):
    """Ctrl-C in a process that waits for the rest of a corpus, which comes through a pipe."""
    os.mkfifo(tmp_path / "corpus.jsonl")
    # A shell that starts jobs in the background has them ignore Ctrl-C, and that is inherited.
    listen = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{listen}; from repconc.cli.main import main; main()"
    command = [sys.executable, "-c", code, "data", "check", str(tmp_path)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with (tmp_path / "corpus.jsonl").open("w"):  # opens once the process reads
        os.kill(process.pid, signal.SIGINT)
        _, printed = process.communicate(timeout=60)
    assert process.returncode == 130
    assert printed.strip() == "repconc: interrupted."


def test_list_is_for_people_and_machines():
    assert "hotpotqa" in succeed("data", "list")
    assert {"hotpotqa", "insuranceqa", "squad", "nq"} <= {
        row["name"] for row in json.loads(succeed("data", "list", "--json"))
    }
    assert succeed("--version").strip()
