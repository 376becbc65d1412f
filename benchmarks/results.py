"""Result lines: where they are kept, and what each says about how it was made."""

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "results"
CODE = ("repconc", "native", "benchmarks/*.py", "CMakeLists.txt", "pyproject.toml", "constraints.txt")
PACKAGES = (
    "numpy",
    "torch",
    "sentence-transformers",
    "transformers",
    "faiss-cpu",
    "scann",
    "bm25s",
    "PyStemmer",
    "ir-measures",
    "fastapi",
    "uvicorn",
)


def append(suite: str, line: dict[str, Any], made_with: dict[str, Any], folder: Path | None = None) -> dict[str, Any]:
    """Add a line to a suite's file. `made_with` is the provenance taken when the measurement began.

    A line is one write: several processes may add to the same file.
    """
    whole = {"suite": suite, **line, **made_with}
    path = (folder or FOLDER) / f"{suite}.jsonl"
    path.parent.mkdir(exist_ok=True)
    with path.open("ab", buffering=0) as file:
        file.write((json.dumps(whole, ensure_ascii=False) + "\n").encode())
        os.fsync(file.fileno())
    return whole


def read(suite: str, folder: Path | None = None) -> list[dict[str, Any]]:
    """All lines of a suite."""
    path = (folder or FOLDER) / f"{suite}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def has(suite: str, key: dict[str, Any]) -> bool:
    """Whether a line with these values is there already."""
    return any(key.items() <= line.items() for line in read(suite))


@cache
def provenance() -> dict[str, Any]:
    """Revision (with a + where the code differs from it), versions, machine and day: as they were when first asked for,

    because a process runs the code that it began with, whatever is committed meanwhile.
    """
    return {
        "revision": _git("rev-parse", "--short=12", "HEAD") + ("+" if _git("status", "--porcelain", *CODE) else ""),
        "versions": {"python": platform.python_version()} | {name: _version(name) for name in PACKAGES},
        "machine": {"cpu": _cpu(), "cores": os.cpu_count()},
        "date": datetime.now(UTC).date().isoformat(),
    }


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=FOLDER.parent.parent, capture_output=True, text=True, check=False).stdout.strip()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
