"""Two processes give the losses and the gradients of one process on the joined batch, for every parameter."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from repconc import RepconcModel, load_dataset, make_recipe, train
from repconc.training.recipe import read_recipe
from tests.training import two_ranks

ROOT = Path(__file__).parent.parent.parent


def torchrun(*arguments: str, until: Path | None = None) -> None:
    """Run to the end, or kill all processes as soon as a file is there."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    where = ["--nproc-per-node", "2", "--master-addr", "127.0.0.1", "--master-port", str(port)]
    command = [sys.executable, "-m", "torch.distributed.run", *where, *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "GLOO_SOCKET_IFNAME": "lo"}
    if until is None:
        subprocess.run(command, check=True, cwd=ROOT, env=environment, capture_output=True, timeout=200)
        return
    with subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not until.exists():
            time.sleep(0.005)
        assert process.poll() is None, "it ended too early"
        ranks = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for number in [process.pid, *map(int, ranks)]:
            os.kill(number, signal.SIGKILL)


@pytest.fixture(scope="module")
def gradients(tiny_static, tiny_bert, tmp_path_factory):
    """A folder with the gradients of both encoders, of one process and of two."""
    folder = tmp_path_factory.mktemp("gradients")
    arguments = [str(folder), str(tiny_static), str(tiny_bert)]
    two_ranks.main(*arguments)
    torchrun("-m", "tests.training.two_ranks", *arguments)
    return folder


@pytest.mark.parametrize("encoder", [0, 1], ids=["static", "bert"])
def test_two_ranks_make_the_step_of_one(encoder, gradients):
    files = (gradients / f"{encoder}-{name}.safetensors" for name in ("1-0", "2-0", "2-1"))
    alone, first, second = map(load_file, files)
    assert alone.keys() == first.keys() == second.keys()
    stages = {"stage 2, lambda False", "stage 2, lambda True", "stage 2, taught"}
    phases = {"dense", "constrained", "nearest", "additive", "taught", *stages}
    assert {name.split("/")[0] for name in alone} == phases
    for name, expected in alone.items():
        assert torch.equal(first[name], second[name]), name
        # The gradient of some parameters is zero but for rounding (biases of attention keys): compare with the largest.
        largest = max(
            float(other.abs().max()) for key, other in alone.items() if key.split("/")[0] == name.split("/")[0]
        )
        assert largest > 0
        assert torch.allclose(first[name], expected, rtol=1e-3, atol=1e-6 * largest), name


@pytest.fixture
def recipe(tiny_static, tmp_path) -> Path:
    path = tmp_path / "recipe.toml"
    path.write_text(
        f"""
        validation_split = "train"
        encoder = {{documents = "{tiny_static}"}}
        quantizer = {{bytes = 4, codewords = 16, turns = 5}}
        dense = [{{epochs = 2, batch = 16, depth = 20, encoder_rate = 0.05}}]
        stage_one = {{epochs = 3, batch = 16, depth = 20, encoder_rate = 0.05}}
        stage_two = {{epochs = 2, batch = 16, depth = 20, codebook_rate = 0.01}}
        """
    )
    return path


def train_on_two(labelled: Path, output: Path, recipe: Path, until: Path | None = None) -> None:
    command = ["-m", "repconc.cli.main", "train", str(labelled), "-o", str(output), "--recipe", str(recipe)]
    torchrun(*command, until=until)


@pytest.mark.slow
def test_the_command_trains_on_two_ranks(recipe, labelled, tmp_path):
    train_on_two(labelled, tmp_path / "two", recipe)
    one = train(load_dataset(labelled), tmp_path / "one", make_recipe(read_recipe(recipe)))
    two = RepconcModel.load(tmp_path / "two")
    # Sums in another order round differently, and now and then a document at a border gets another codeword.
    assert np.linalg.norm(one.scoring.codebooks - two.scoring.codebooks) < 0.05 * np.linalg.norm(one.scoring.codebooks)
    for phase in ("dense 1, static", "stage 1"):
        assert two.manifest.figures[phase]["MRR@10"] == pytest.approx(one.manifest.figures[phase]["MRR@10"], abs=0.05)


@pytest.mark.slow
def test_two_ranks_that_are_killed_end_with_the_same_model(recipe, labelled, tmp_path):
    train_on_two(labelled, tmp_path / "unbroken", recipe)
    for name in ("dense-1", "stage-1", "codes"):
        train_on_two(labelled, tmp_path / "killed", recipe, tmp_path / "killed.training" / f"{name}.safetensors")
    train_on_two(labelled, tmp_path / "killed", recipe)
    one, other = (RepconcModel.load(tmp_path / name) for name in ("unbroken", "killed"))
    assert np.array_equal(one.scoring.codebooks, other.scoring.codebooks)
    assert one.manifest.fingerprint == other.manifest.fingerprint
