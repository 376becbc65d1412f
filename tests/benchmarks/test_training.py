"""The ablation on a tiny set: its rows, where they are trained, and what the next run does."""

import sys

import pytest

from benchmarks import results, training
from benchmarks.setting import folder_for

UNCOMPRESSED = ["dense, untrained", "dense"]
STAGES = ["+ clustering", "+ constraint", "+ dynamic negatives"]


def ablate(monkeypatch, *arguments) -> None:
    monkeypatch.setattr(sys, "argv", ["training", "--sizes", "2", "--seeds", "0", *map(str, arguments)])
    training.main()


def taught(recipe):
    """The same recipe, with a teacher in both stages."""
    for stage in ("stage_one", "stage_two"):
        recipe.write_text(recipe.read_text().replace(f"[{stage}]\n", f"[{stage}]\ndistillation = 0.5\n"))
    return recipe


@pytest.mark.parametrize(
    ("codes", "has_teacher", "rows", "folders"),
    [
        ("product", False, ["OPQ", *STAGES], ["opq-2", "clustering-2", "constraint-2"]),
        ("product", True, ["OPQ", *STAGES], ["opq-2", "clustering-2", "constraint-2"]),
        ("additive", False, ["residual", *STAGES], [f"additive-{n}-2" for n in ("opq", "clustering", "constraint")]),
        (
            "additive",
            True,
            ["residual", *STAGES, "+ distillation"],
            [f"additive-{n}-2" for n in ("opq", "clustering", "constraint", "distillation")],
        ),
    ],
)
def test_rows_and_folders(codes, has_teacher, rows, folders, labelled, recipe, kept, monkeypatch):
    chosen = ("--recipe", taught(recipe) if has_teacher else recipe, "--sets", labelled, "--codes", codes)
    ablate(monkeypatch, *chosen)
    lines = results.read(training.SUITES[codes])
    assert [line["row"] for line in lines] == UNCOMPRESSED + rows
    assert [line["bytes"] for line in lines] == [None, None] + [2] * len(rows)
    assert {path.name for path in folder_for(str(labelled), str(recipe), 0).iterdir()} == {"dense", *folders}
    for line in lines[3:]:
        assert 0 <= line[f"p against {rows[0]}"] <= 1
    monkeypatch.setattr(training, "train_dense", None)  # nothing is left to measure, so nothing is trained
    ablate(monkeypatch, *chosen)
    assert results.read(training.SUITES[codes]) == lines


def test_a_warm_up_is_shared_by_all_rows(labelled, recipe, kept, monkeypatch):
    ablate(monkeypatch, "--recipe", taught(recipe), "--sets", labelled, "--codes", "additive")
    folder = folder_for(str(labelled), str(recipe), 0)
    assert len({path.read_bytes() for path in folder.glob("*-2/warmup.safetensors")}) == 1


def test_stage_two_without_what_it_goes_on_from_is_refused(labelled, recipe, kept, monkeypatch):
    with pytest.raises(SystemExit, match="skip both or none"):
        ablate(monkeypatch, "--recipe", recipe, "--sets", labelled, "--skip", "+ constraint")
