"""The README is true: its code runs, its figures stand in the results, its claims are those of the package."""

import re
from pathlib import Path

import pytest

import repconc
from benchmarks.tables import MARKED, PAGES, filled

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

    verbs = {tuple(re.findall(r"^repconc (data \w+|index \w+|\w+)", line)) for line in README.splitlines()} - {()}
    assert {verb for (verb,) in verbs} == {
        "data get",
        "train",
        "compress",
        "index build",
        "search",
        "serve",
        "tune",
        "encode",
        "eval",
        "compare",
    }
    for (verb,) in verbs:
        assert CliRunner().invoke(app, [*verb.split(), "--help"]).exit_code == 0


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_tables_are_those_of_the_results(path):
    """`python -m benchmarks.tables` fills them in."""
    page = path.read_text(encoding="utf-8")
    assert MARKED.search(page)
    assert filled(page) == page


def test_the_data_sets_are_those_of_the_catalogue():
    from repconc.data.catalogue import CATALOGUE

    assert set(re.findall(r"^\| `(\w+)` \|", README, flags=re.MULTILINE)) == set(CATALOGUE)


def test_the_version_is_the_same_everywhere():
    assert f'version = "{repconc.__version__}"' in (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize("path", [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")], ids=lambda path: path.name)
def test_links_between_pages_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (path.parent / target).exists(), target
