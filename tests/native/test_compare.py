"""Instruction sets against the portable one in a program of their own; NEON on an emulated ARM machine.

On a machine without ARM this needs Debian's packages g++-aarch64-linux-gnu and qemu-user.
"""

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ARM = platform.machine() in ("aarch64", "arm64")
FLAGS = ["-std=c++20", "-O3", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror", "-static", f"-I{ROOT / 'native'}"]
SOURCES = [
    ROOT / "native" / f"{name}.cpp"
    for name in ("instructions", "portable", "neon", "rounding", "scan", "lists", "assign")
]


@pytest.mark.slow
def test_neon_gives_what_portable_code_gives(tmp_path):
    compiler = shutil.which("c++" if ARM else "aarch64-linux-gnu-g++")
    emulator = None if ARM else shutil.which("qemu-aarch64")
    if compiler is None or not (ARM or emulator):
        pytest.skip("no compiler for ARM, or no qemu-user")
    program, source = tmp_path / "compare", Path(__file__).with_name("compare.cpp")
    subprocess.run([compiler, *FLAGS, *map(str, SOURCES), str(source), "-o", str(program)], check=True)
    done = subprocess.run([*filter(None, [emulator]), str(program)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "neon: the same")
