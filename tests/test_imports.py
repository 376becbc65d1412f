"""The house's doors open one way, and the front door is light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "repconc"

CODECS = {"lengths", "codec", "additive", "codec_files"}
BASE = {"errors", "records", "files", "lines", "config", "packages", "vectors"}
MAY_IMPORT = {
    "errors": set(),
    "records": set(),
    "config": set(),
    "files": {"errors"},
    "lines": {"errors"},
    "packages": {"errors", "files"},
    "vectors": {"config", "errors", "files", "records"},
    "kernel": {"errors"},
    "maps": {"errors"},
    "lengths": {"errors"},
    "codec": {"errors", "kernel", "lengths", "maps", "records"},
    "additive": {"codec", "errors", "kernel"},
    "codec_files": {"additive", "codec", "errors", "lengths", "maps"},
    "losses": set(),
    "quantization": CODECS | {"errors", "maps"},
    "data": BASE,
    "evaluation": BASE,
    "indexes": BASE | CODECS | {"kernel", "maps"},
    "models": BASE | CODECS | {"data", "maps"},
    "training": BASE | CODECS | {"kernel", "quantization", "models", "losses", "indexes", "data", "evaluation"},
    "search": BASE | {"indexes", "models"},
    "indexing": BASE | {"additive", "codec", "data", "indexes", "models", "search"},
    "baselines": BASE | {"codec", "maps", "models", "quantization", "losses", "indexes", "training"},
    "compression": BASE
    | CODECS
    | {"maps", "models", "quantization", "data", "indexes", "evaluation", "training", "baselines"},
    "serving": BASE | {"codec", "indexes", "models", "search"},
}


def part_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def imports_of(path: Path) -> set[str]:
    """The parts of our package that a file imports, at its head or inside a function."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "repconc":
            names = [node.module] if "." in node.module else [f"repconc.{alias.name}" for alias in node.names]
            found |= {part_of(name) for name in names}
        elif isinstance(node, ast.Import):
            found |= {part_of(alias.name) for alias in node.names if alias.name.split(".")[0] == "repconc"}
    return found


FILES = sorted(path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.name != "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path):
    part = path.relative_to(PACKAGE).with_suffix("").parts[0]
    found = imports_of(path) - {part}
    assert "cli" not in found, "nobody imports the command line"
    if part != "cli":
        assert found <= MAY_IMPORT[part]


def test_searching_vectors_loads_no_torch():
    code = (
        "import sys, numpy, repconc.vectors, repconc.evaluation.compare\nfrom repconc.indexes.flat import FlatIndex\n"
        "FlatIndex(['a'], [numpy.ones((1, 2), 'float32')]).search(numpy.ones(2)); print('torch' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


def test_the_front_door_is_light():
    heavy = ["torch", "transformers", "sentence_transformers", "faiss", "fastapi", "ray", "scipy", "matplotlib"]
    code = f"import repconc, sys; dir(repconc); print([m for m in {heavy} if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_the_command_line_starts_without_heavy_libraries():
    code = "import sys, repconc.cli.main; print([m for m in ('torch', 'faiss', 'scipy') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_every_public_name_loads():
    import repconc

    for name in repconc.__all__:
        assert getattr(repconc, name).__name__ == name
    assert set(repconc.__all__) == set(repconc._HOMES)


def test_an_unknown_name_is_an_attribute_error():
    import repconc

    with pytest.raises(AttributeError, match="nothing"):
        _ = repconc.nothing


def test_a_missing_extra_is_named():
    code = (
        "import sys; sys.modules['sentence_transformers'] = None\n"
        "from repconc.errors import import_extra, RepconcError\n"
        "try: import_extra('sentence_transformers', 'train')\n"
        "except RepconcError as error: print(error)"
    )
    printed = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert "pip install 'repconc[train]'" in printed
