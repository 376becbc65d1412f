"""The manifest of an index: what belongs to it. Renaming a new one into place is the one commit point.

An operation writes new files, syncs them, the folder and the manifest, then renames that. What no manifest names does
not exist; the next writer removes it.
"""

import hashlib
from functools import lru_cache
from pathlib import Path

from pydantic import NonNegativeInt, PositiveInt

from repconc.config import Settings
from repconc.errors import RepconcError
from repconc.files import as_json, atomic_path, parse_model
from repconc.indexes.checked import MEND, FileEntry

FORMAT = 1
MANIFEST = "index.json"


class Segment(Settings):
    """Documents that were written together, in the order of their lists."""

    count: PositiveInt
    removed: NonNegativeInt = 0
    files: dict[str, FileEntry]
    """By what they hold: codes, offsets, numbers, ids, ends, hashes, owners, documents, fields, removed."""


class Reference(Settings):
    """The model that codes documents and encodes queries."""

    name: str
    """A folder, or a name on the hub."""
    fingerprint: str


class IndexManifest(Settings):
    """An index at one moment."""

    format: int = FORMAT
    version: PositiveInt = 1
    """Grows with every commit."""
    next_number: PositiveInt
    """Of the next files, so that no name is ever used twice."""
    model: Reference | None
    """None for an index over vectors of the user's own."""
    dimension: PositiveInt
    bytes: PositiveInt
    codewords: PositiveInt
    lists: PositiveInt
    probes: PositiveInt
    """How many lists a search reads, unless it says otherwise; `repconc tune` chooses it."""
    files: dict[str, FileEntry]
    """Shared by all segments: codec, centroids."""
    segments: tuple[Segment, ...]
    checksum: str = ""

    @property
    def documents(self) -> int:
        return sum(segment.count - segment.removed for segment in self.segments)

    def names(self) -> set[str]:
        """All files that belong to the index."""
        parts = [self.files, *(segment.files for segment in self.segments)]
        return {entry.name for part in parts for entry in part.values()}

    def signed(self) -> "IndexManifest":
        return self.model_copy(update={"checksum": self._sum()})

    def _sum(self) -> str:
        return hashlib.sha256(self.model_copy(update={"checksum": ""}).model_dump_json().encode()).hexdigest()


def require_index(folder: Path) -> None:
    if not (folder / MANIFEST).exists():
        raise RepconcError(f"{folder} holds no index: it has no {MANIFEST}; 'repconc index build' makes one.")


def read_manifest(folder: Path) -> IndexManifest:
    require_index(folder)
    path = folder / MANIFEST
    return _read(path.read_bytes(), path)


@lru_cache(maxsize=4)
def _read(content: bytes, path: Path) -> IndexManifest:
    """Remembered: a writer reads the same manifest several times, before its own commit and after it."""
    manifest = parse_model(content, path, IndexManifest)
    if content != as_json(manifest.signed()):
        raise RepconcError(f"{path} was altered: {MEND}")
    return manifest


def commit(folder: Path, manifest: IndexManifest) -> None:
    """Sync what is new, the names of it, and the manifest under another name; then the manifest becomes true."""
    known = read_manifest(folder).names() if (folder / MANIFEST).exists() else set()
    new = [folder / name for name in manifest.names() - known]
    with atomic_path(folder / MANIFEST, after=[*new, folder]) as partial:
        partial.write_bytes(as_json(manifest.signed()))
