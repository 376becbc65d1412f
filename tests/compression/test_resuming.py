"""A run that was stopped or killed goes on to the same index, and only with what it was begun with."""

import itertools
import os

import numpy as np
import pytest

from repconc.compression.compress import run
from repconc.compression.given import open_given
from repconc.errors import RepconcError
from repconc.indexes.ivf import Index
from tests.compression.conftest import opened


class KilledError(Exception):
    """In the place of a kill."""


@pytest.mark.parametrize(("mode", "after"), [("queries", 3), ("labels", 9), ("queries", 14)])
def test_a_run_that_was_stopped_goes_on_to_the_same_index(world, recipe, mode, after, tmp_path):
    whole = run(opened(world, mode), tmp_path / "whole", bytes=6, recipe=recipe)
    count = itertools.count()

    def stop(line):
        if next(count) == after:
            raise KilledError

    with pytest.raises(KilledError):
        run(opened(world, mode), tmp_path / "index", bytes=6, recipe=recipe, observe=stop)
    assert not (tmp_path / "index").exists()
    if mode == "labels":
        others = world._replace(qrels={str(n): {str(n + 1): 1} for n in range(120)})
        with pytest.raises(RepconcError, match="begun with another labels_sha256: remove it, or choose"):
            run(opened(others, mode), tmp_path / "index", bytes=6, recipe=recipe)
    again = run(opened(world, mode), tmp_path / "index", bytes=6, recipe=recipe)
    np.testing.assert_array_equal(again.learned.scoring.codebooks, whole.learned.scoring.codebooks)
    np.testing.assert_array_equal(again.learned.scoring.map.linear, whole.learned.scoring.map.linear)
    with pytest.raises(RepconcError, match="holds an index already"):
        run(opened(world, mode), tmp_path / "index", bytes=6, recipe=recipe)


def test_a_run_goes_on_only_with_the_same_options(world, recipe, tmp_path):
    def stop(result):
        raise KilledError

    same = {"bytes": 6, "recipe": recipe}
    with pytest.raises(KilledError):  # when the index is there and the report is not
        run(opened(world, "queries"), tmp_path / "index", report=stop, **same)
    for changed in ({"bytes": 4}, {"lists": 3}, {"hidden": 2}, {"cosine": True}, {"seed": 1}, {"keep": 0.5}):
        options = same | changed | ({"bytes": None} if "keep" in changed else {})
        with pytest.raises(RepconcError, match="begun with another"):
            run(opened(world, "queries"), tmp_path / "index", **options)
    assert run(opened(world, "queries"), tmp_path / "index", **same).learned.coding.blocks == 6


def test_an_index_that_another_process_finished_meanwhile_is_not_taken_for_ours(world, recipe, tmp_path):
    def finish(sentence):  # said after reading, before the lock is taken
        run(opened(world, "queries"), tmp_path / "index", bytes=4, recipe=recipe)

    with pytest.raises(RepconcError, match="holds an index already"):
        run(opened(world, "queries"), tmp_path / "index", bytes=6, recipe=recipe, say=finish)
    assert Index(tmp_path / "index").manifest.bytes == 4
    assert not (tmp_path / "index.training").exists()


def test_a_folder_of_somebody_else_is_not_worked_in(world, recipe, tmp_path):
    (tmp_path / "index.training").mkdir()
    (tmp_path / "index.training" / "thesis.txt").write_text("years of work")
    with pytest.raises(RepconcError, match=r"such as thesis\.txt"):
        run(opened(world, "queries"), tmp_path / "index", bytes=6, recipe=recipe)
    assert [path.name for path in tmp_path.rglob("*")] == ["index.training", "thesis.txt"]


def test_what_a_run_needed_goes_at_once(world, recipe, monkeypatch, tmp_path):
    """Killed in the middle of it, half of it would be taken for somebody else's."""

    def stop(folder, **_):
        raise KilledError

    with monkeypatch.context() as patched, pytest.raises(KilledError):
        patched.setattr("repconc.files.shutil.rmtree", stop)
        run(opened(world, "queries"), tmp_path / "index", bytes=6, recipe=recipe)
    assert len(Index(tmp_path / "index")) == 600
    assert not (tmp_path / "index.training").exists()


def test_a_link_to_nowhere_is_no_place_for_an_index(world, recipe, tmp_path):
    (tmp_path / "index").symlink_to(tmp_path / "nowhere")
    with pytest.raises(RepconcError, match="no folder"):
        run(opened(world, "queries"), tmp_path / "index", bytes=6, recipe=recipe)
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_vectors_that_change_while_a_run_works_are_noticed(world, recipe, tmp_path):
    documents = world.documents.copy()

    def change(line):
        documents[5] = 1

    with pytest.raises(RepconcError, match="changed since"):
        run(open_given(documents), tmp_path / "index", bytes=6, recipe=recipe, observe=change)
    assert not (tmp_path / "index").exists()


@pytest.mark.parametrize("during", ["coding", "report"])
def test_a_process_that_died_late_goes_on(world, recipe, during, tmp_path):
    """Really killed: while documents are coded, or when the index is there and the report is not."""
    child = os.fork()
    if child == 0:

        def die(*_):
            os._exit(9)

        hooks = {"show": lambda work: die if work == during else lambda done, total: None} if during == "coding" else {}
        run(opened(world, "queries"), tmp_path / "index", bytes=6, recipe=recipe, report=die, **hooks)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert (tmp_path / "index").exists()
    reports = []
    run(opened(world, "queries"), tmp_path / "index", bytes=6, recipe=recipe, report=reports.append)
    assert len(Index(tmp_path / "index")) == 600
    assert len(reports) == 1
    assert not (tmp_path / "index.training").exists()
