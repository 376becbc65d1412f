"""The tests of the native scan with a kernel that was built with sanitizers: `make test-native`.

    python -m tests.sanitized build/sanitized/repconc

The sanitizers must be loaded before Python itself, hence a process of its own for each instruction set.
"""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

PATHS = ("portable", "avx2", "avx512vbmi", "neon")
TESTS = (
    "plain_result or same_bits or highest or nearest_centroid or many_ or beyond_floats or refused or threads "
    "or half_a_unit or no_number"
)


def main(folder: Path) -> None:
    [kernel] = folder.glob("_kernel*.so")
    libraries = [
        subprocess.run(["c++", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
        for name in ("libasan.so", "libubsan.so", "libstdc++.so")
    ]
    for path in PATHS:
        settings = {"LD_PRELOAD": " ".join(libraries), "ASAN_OPTIONS": "detect_leaks=0", "REPCONC_KERNEL": path}
        command = [sys.executable, "-m", "tests.sanitized", "--with", str(kernel)]
        done = subprocess.run(command, env=os.environ | settings, check=False)
        if done.returncode == 77:
            print(f"{path}: not on this machine")
        elif done.returncode:
            raise SystemExit(f"{path}: the tests failed.")
        else:
            print(f"{path}: passed")


def test_with(kernel: str) -> int:
    """Run the tests in this process, with that file in the place of the installed kernel."""
    spec = importlib.util.spec_from_file_location("repconc._kernel", kernel)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        module.path()
    except RuntimeError:
        return 77
    sys.modules["repconc._kernel"] = module
    import pytest

    tests = Path(__file__).parent
    scans = ("indexes/test_scan.py", "indexes/test_first.py", "indexes/test_lists.py", "indexes/test_malformed.py")
    names = (*scans, "quantization/test_additive.py", "test_additive_tables.py")
    files = [str(tests / name) for name in names]
    return int(pytest.main(["-q", "-p", "no:cacheprovider", "-k", TESTS, *files]))


if __name__ == "__main__":
    if sys.argv[1] == "--with":
        raise SystemExit(test_with(sys.argv[2]))
    main(Path(sys.argv[1]))
