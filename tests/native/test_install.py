"""Without a compiler the package installs all the same, searches by numpy, and says so once."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = """
import numpy as np, warnings
from repconc.indexes.scan import scan
lists = np.zeros((1, 1), np.int64)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for _ in range(2):
        [(places, scores)] = scan(np.arange(4, dtype=np.uint8), np.ones((1, 1, 256), np.float32), lists, lists + 4, 2)
print(len(places), len(said), "does without its native scan" in str(said[0].message))
"""


@pytest.mark.slow
def test_where_no_compiler_is_there(tmp_path):
    """Python alone on the PATH; the build fetches what it builds with, and finds nothing to compile with."""
    binaries = tmp_path / "bin"
    binaries.mkdir()
    (binaries / "python").symlink_to(sys.executable)
    environment = {name: value for name, value in os.environ.items() if name not in ("CC", "CXX", "PYTHONPATH")}
    environment |= {"PATH": str(binaries)}
    target = tmp_path / "installed"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(ROOT)]
    subprocess.run(command, env=environment, check=True)
    assert not list(target.glob("repconc/_kernel*"))
    # -S and a path of our own: an editable installation would bring its kernel along
    paths = [str(target), *(path for path in sys.path if path.endswith("site-packages"))]
    done = subprocess.run(
        [sys.executable, "-S", "-c", CODE],
        env=environment | {"PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert done.stdout.split() == ["4", "1", "True"], done.stderr
