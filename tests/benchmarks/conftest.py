"""A set that can be learned in a second, a recipe for it, and a folder of results of its own."""

from pathlib import Path

import pytest

from benchmarks import results
from tests.training.conftest import labelled, tiny_static

__all__ = ["kept", "labelled", "recipe", "tiny_static"]


@pytest.fixture
def kept(tmp_path, monkeypatch) -> Path:
    """Where lines are kept meanwhile."""
    folder = tmp_path / "results"
    monkeypatch.setattr(results, "FOLDER", folder)
    return folder


@pytest.fixture
def recipe(tiny_static, tmp_path) -> Path:
    path = tmp_path / "tiny.toml"
    phase = "epochs = 2\nbatch = 16\ndepth = 20\nevaluations = 1\n"
    path.write_text(
        f'[encoder]\ndocuments = "{tiny_static}"\n'
        f"[[dense]]\n{phase}[stage_one]\n{phase}[stage_two]\n{phase}[quantizer]\ncodewords = 16\nturns = 2\n"
    )
    return path
