"""The README is true: its code runs, its figures stand in the results, its claims are those of the package."""

import re
from pathlib import Path

import pytest

import repconc
from benchmarks import results
from benchmarks.tables import baselines_table, training_table

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_python_code_runs(beir, tiny_bert, tmp_path, monkeypatch, capsys):
    """On a tiny set and encoder in place of the real ones; everything else is as printed."""
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    code = code.replace('"hotpotqa"', repr(str(beir()))).replace('"static"', repr(str(tiny_bert)))
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 4
    assert "'MRR@10'" in printed[-1]


def test_the_commands_exist():
    from typer.testing import CliRunner

    from repconc.cli.main import app

    verbs = {tuple(re.findall(r"^repconc (data \w+|\w+)", line)) for line in README.splitlines()} - {()}
    assert {verb for (verb,) in verbs} == {"data get", "train", "encode", "eval", "compare"}
    for (verb,) in verbs:
        assert CliRunner().invoke(app, [*verb.split(), "--help"]).exit_code == 0


def test_the_table_is_the_one_of_the_results():
    assert baselines_table().render("markdown") in README


def test_the_table_of_the_demo_is_that_of_the_results():
    """The last run of `python -m benchmarks.demo`, in the form in which the demo prints it."""
    rows = {line["system"]: line for line in results.read("demo")}
    assert len(rows) == 4
    for name, row in rows.items():
        printed = next(text for text in README.splitlines() if text.startswith(name)).removeprefix(name).split()
        expected = [f"{row['bytes_per_document']:,.0f}", f"{row['times_smaller']:.1f}x", f"{row['mrr_at_10']:.3f}"]
        assert printed[:4] == [*expected, f"{row['recall_at_100']:.3f}"]


@pytest.mark.parametrize("recipe", sorted({line["recipe"] for line in results.read("training")}))
def test_the_tables_of_training_are_those_of_the_results(recipe):
    assert training_table(recipe).render("markdown") in README


def test_the_data_sets_are_those_of_the_catalogue():
    from repconc.data.catalogue import CATALOGUE

    assert set(re.findall(r"^\| `(\w+)` \|", README, flags=re.MULTILINE)) == set(CATALOGUE)


def test_the_version_is_the_same_everywhere():
    assert f'version = "{repconc.__version__}"' in (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize("path", [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")], ids=lambda path: path.name)
def test_links_between_pages_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (path.parent / target).exists(), target
