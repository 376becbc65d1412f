"""Vectors on disk: a folder of shards that open by memory map.

    manifest.json            what made them, how many there are, and the checksum of each file
    shard-00000.npy          float32 [n, D]
    shard-00000.ids.json     the n ids, in the same order

The manifest is written last: a folder without one is unfinished. Nothing here needs torch.
"""

import hashlib
import io
import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import numpy as np
from pydantic import PositiveInt

from repconc.config import EncoderSettings, Settings
from repconc.errors import RepconcError
from repconc.files import atomic_write, read_model, sha256_of, write_model
from repconc.records import Document

FORMAT = 1


class ShardEntry(Settings):
    """One shard as the manifest knows it."""

    name: str
    count: int
    vectors_sha256: str
    ids_sha256: str


class Plan(Settings):
    """All that decides the content of a folder of vectors; it is fixed before the first vector is computed."""

    dataset: str
    corpus_sha256: str
    """Of ids and texts, so that vectors of another corpus are not taken for these."""
    count: PositiveInt
    dimension: PositiveInt
    shard_size: PositiveInt
    batch_size: int
    """Batches of another size round differently in the last bit."""
    encoder: EncoderSettings
    fingerprint: str
    """Of the encoder: its weights, tokenizer and settings."""

    @property
    def shard_count(self) -> int:
        return -(-self.count // self.shard_size)

    def length_of(self, number: int) -> int:
        """How many documents a shard holds."""
        return min(self.shard_size, self.count - number * self.shard_size)


def shard_name(number: int) -> str:
    return f"shard-{number:05d}"


class Manifest(Settings):
    """A finished folder."""

    format: int = FORMAT
    plan: Plan
    shards: list[ShardEntry]


class Vectors:
    """A finished folder of vectors, read through memory maps."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        path = self.folder / "manifest.json"
        if not path.exists():
            unfinished = (self.folder / "plan.json").exists()
            raise RepconcError(
                f"{self.folder} holds unfinished vectors: run the same 'repconc encode' again, and it goes on."
                if unfinished
                else f"{self.folder} holds no vectors: it has no manifest.json; 'repconc encode' makes one."
            )
        self.manifest = read_model(path, Manifest)
        self.plan = self.manifest.plan
        expected = [(shard_name(number), self.plan.length_of(number)) for number in range(self.plan.shard_count)]
        if [(shard.name, shard.count) for shard in self.manifest.shards] != expected:
            raise RepconcError(f"{path} does not list the shards that its plan asks for; encode again.")

    def __len__(self) -> int:
        return self.plan.count

    @property
    def dimension(self) -> int:
        return self.plan.dimension

    @property
    def nbytes(self) -> int:
        """Bytes of the vectors themselves, without ids."""
        return len(self) * self.dimension * 4

    def blocks(self) -> Iterator[np.ndarray]:
        """The vectors shard by shard, [n, D] each."""
        for shard in self.manifest.shards:
            path = self.folder / f"{shard.name}.npy"
            try:
                block = np.load(path, mmap_mode="r", allow_pickle=False)
            except (ValueError, EOFError) as error:
                raise RepconcError(f"{path} is not an array; remove it and encode again.") from error
            if block.shape != (shard.count, self.dimension) or block.dtype != np.float32:
                raise RepconcError(f"{path} is not what the manifest says; remove it and encode again.")
            yield block

    def id_blocks(self) -> Iterator[list[str]]:
        """The ids shard by shard."""
        for shard in self.manifest.shards:
            path = self.folder / f"{shard.name}.ids.json"
            try:
                part = json.loads(path.read_bytes())
            except (ValueError, RecursionError):
                part = None
            if not isinstance(part, list) or len(part) != shard.count or not all(isinstance(id, str) for id in part):
                raise RepconcError(f"{path} is not a list of {shard.count} ids; remove it and encode again.")
            yield part

    @cached_property
    def ids(self) -> list[str]:
        ids = [id for block in self.id_blocks() for id in block]
        if len(set(ids)) < len(ids):
            raise RepconcError(f"{self.folder} holds an id twice; remove the folder and encode again.")
        return ids

    def verify(self) -> None:
        """Compare every file with its checksum."""
        for shard in self.manifest.shards:
            if not is_intact(self.folder, shard):
                raise RepconcError(f"{self.folder / shard.name} was altered or cut; remove it and encode again.")


def write_shard(folder: Path, name: str, ids: list[str], vectors: np.ndarray) -> ShardEntry:
    """Write one shard; its entry, written last, says that it is whole."""
    array = io.BytesIO()
    np.save(array, vectors, allow_pickle=False)
    with atomic_write(folder / f"{name}.npy") as file:
        file.write(array.getbuffer())
    with atomic_write(folder / f"{name}.ids.json") as file:
        file.write(json.dumps(ids, ensure_ascii=False).encode())
    entry = ShardEntry(
        name=name,
        count=len(ids),
        vectors_sha256=sha256_of(folder / f"{name}.npy"),
        ids_sha256=sha256_of(folder / f"{name}.ids.json"),
    )
    write_model(folder / f"{name}.json", entry)
    return entry


def is_intact(folder: Path, shard: ShardEntry) -> bool:
    files = ((f"{shard.name}.npy", shard.vectors_sha256), (f"{shard.name}.ids.json", shard.ids_sha256))
    return all((folder / name).exists() and sha256_of(folder / name) == checksum for name, checksum in files)


class CorpusDigest:
    """The fingerprint of a corpus, taken document by document."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, document: Document) -> None:
        self._digest.update(json.dumps([document.id, document.full_text]).encode())

    def hexdigest(self) -> str:
        return self._digest.hexdigest()
