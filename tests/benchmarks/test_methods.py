"""The comparison on a tiny set: what a run keeps, what the next one does, and what a quick one leaves behind."""

import json
import sys

import pytest

from benchmarks import methods, results
from benchmarks.compared import Comparison
from benchmarks.plan import SIZES
from benchmarks.setting import Setting, folder_for
from repconc.baselines.registry import methods as registered
from repconc.files import cache_directory, locked
from tests.cli.test_cli import repconc

SOME = "BM25,uncompressed,OPQ,BPR,DPQ,JPQ,PQ,RepCONC,RepCONC without stage 2"


def compare(monkeypatch, *arguments) -> None:
    monkeypatch.setattr(sys, "argv", ["methods", *map(str, arguments)])
    methods.main()


def test_lines_are_kept_once_and_a_method_that_fails_is_named(labelled, recipe, kept, monkeypatch, capsys):
    chosen = ("--recipes", recipe, "--sets", labelled, "--sizes", 2, "--seeds", 0, "--methods", SOME)
    with pytest.raises(SystemExit) as end:  # PQ has 256 codewords, and there are 240 documents
        compare(monkeypatch, *chosen)
    assert end.value.code == 3
    said = capsys.readouterr().err
    assert "hours on one core for 9 lines that are missing, in 1 cells" in said
    assert "FAILED PQ" in said
    lines = results.read("methods")
    assert {line["method"] for line in lines} == set(SOME.split(",")) - {"PQ"}
    assert {(line["dataset"], line["recipe"]) for line in lines} == {("labelled", "tiny")}
    assert str(labelled) not in json.dumps(lines), "where a set lies is nobody's business"
    for line in lines:
        assert len(line["ranks"]) == len(line["recalls"]) == 10
        assert sum(1 / int(rank, 16) for rank in line["ranks"] if rank != "0") / 10 == pytest.approx(
            line["measures"]["MRR@10"], abs=1e-4
        )
    folders = {path.name for path in folder_for(str(labelled), str(recipe), 0).iterdir()}
    assert folders == {"dense", "opq-2", "constraint-2"}, "what nobody reads again does not fill the disk"
    monkeypatch.setattr(methods, "Setting", None)  # nothing is left to measure, so none is needed
    compare(monkeypatch, *chosen[:-1], "OPQ,DPQ")
    assert results.read("methods") == lines


def test_all_start_from_the_same_model_codes_and_negatives_with_the_same_epochs(labelled, recipe, kept, monkeypatch):
    names = "DPQ,JPQ,MoPQ,Distill-VQ,RepCONC,BPR"
    monkeypatch.setattr(Comparison, "forget", lambda self: None)
    compare(monkeypatch, "--recipes", recipe, "--sets", labelled, "--sizes", 2, "--seeds", 0, "--methods", names)
    folder = folder_for(str(labelled), str(recipe), 0)
    for file in ("warmup.safetensors", "stage-1-negatives-0.safetensors"):
        made = {path.read_bytes() for path in folder.glob(f"*-2/{file}") if path.parent.name != "bpr-2"}
        assert len(made) == 1, file
    assert not (folder / "bpr-2" / "warmup.safetensors").exists(), "signs need no OPQ"
    base = Setting(str(labelled), str(recipe), 0).recipe
    whole = base.stage_one.epochs + base.stage_two.epochs
    for name in ("DPQ", "MoPQ", "Distill-VQ", "BPR"):
        assert registered()[name].recipe(base).stage_one.epochs == whole
    assert registered()["JPQ"].recipe(base).stage_two.epochs == whole
    assert not hasattr(registered()["RepCONC"], "recipe")


def test_codes_of_another_structure_need_no_opq(labelled, recipe, kept, monkeypatch):
    names = "RepCONC with additive codes"
    compare(monkeypatch, "--recipes", recipe, "--sets", labelled, "--sizes", 2, "--seeds", 0, "--methods", names)
    assert [line["method"] for line in results.read("methods")] == [names]
    assert {path.name for path in folder_for(str(labelled), str(recipe), 0).iterdir()} == {"dense"}


def test_a_cell_that_another_process_is_at_is_left_for_later(labelled, recipe, kept, monkeypatch):
    """The lock is of the setting: here nobody holds it, and the run takes it."""
    order = []
    cells = methods.plan([str(recipe)], [str(labelled)], [2], [0, 1])
    monkeypatch.setattr(methods, "_measure", lambda cell, wanted: order.append(cell.seed) or [])
    real = locked

    def held_once(path, wait=True):
        if not wait and path.name.endswith("-0"):
            raise BlockingIOError
        return real(path, wait)

    monkeypatch.setattr(methods, "locked", held_once)
    assert methods._measure_all(cells) == []
    assert order == [1, 0]


def test_a_quick_run_prints_its_table_and_keeps_nothing(labelled, recipe, kept):
    before = set((cache_directory() / "training").rglob("*"))
    result = repconc("bench", "methods", "--quick", "--sets", labelled, "--recipes", recipe, "--json")
    assert result.returncode == 0, result.stderr
    figures = [json.loads(line) for line in result.stdout.splitlines()]
    assert any(figure["figure"].startswith("RepCONC: labelled, tiny") for figure in figures)
    assert all(figure["met"] is None for figure in figures)
    assert not kept.exists()
    assert not [path for path in cache_directory().iterdir() if path.name.startswith("tmp")]
    assert not {path for path in (cache_directory() / "training").rglob("*") if path.is_dir()} - before


def test_the_whole_suite_says_its_hours_and_keeps_lines_of_methods_only(labelled, recipe, kept, monkeypatch):
    monkeypatch.setitem(SIZES, str(recipe), (1,))
    result = repconc("bench", "methods", "--sets", labelled, "--recipes", recipe)
    assert result.returncode == 3, "PQ needs more documents than there are, and that is said"
    assert f"hours on one core for {3 * len(registered())} lines that are missing, in 3 cells" in result.stderr
    assert "hours; failed: " in result.stderr
    assert "cells that failed" in result.stdout and "supervised: RepCONC" in result.stdout
    lines = results.read("methods")
    assert len(lines) > 45 and all(line["method"] in registered() for line in lines)
    assert {line["seed"] for line in lines} == {0, 1, 2}


def test_a_plan_can_be_looked_at(kept, monkeypatch, capsys):
    compare(monkeypatch, "--plan", "--recipes", "static")
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2 * (3 + 3 + 2) + 2
    assert "hotpotqa, static, 16 bytes, seed 0" in said[0]
    assert said[-1] == "0 lines are there already; they took 0.0 hours."
    assert not kept.exists()
    with pytest.raises(SystemExit):
        compare(monkeypatch, "--methods", "OPQ,OPC")
    assert "there is no method 'OPC'" in capsys.readouterr().err


def test_sets_are_for_the_comparison_only():
    result = repconc("bench", "assign", "--sets", "hotpotqa")
    assert result.returncode == 1
    assert "--sets goes with the suite methods" in result.stderr
