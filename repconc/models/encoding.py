"""Encode a whole corpus to disk: in shards, with flat memory, and resumable after a kill at any point.

A shard is a pure function of its documents and the encoder: batches are formed inside it, and it appears under its name
only when it is whole. So an interrupted run that goes on ends with the same bytes as one that was never interrupted.
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from repconc.data.check import ensure_sound
from repconc.data.dataset import RetrievalDataset
from repconc.errors import RepconcError
from repconc.models.encoder import Encoder
from repconc.packages import Progress
from repconc.records import Document
from repconc.vectors import (
    CorpusDigest,
    Manifest,
    Plan,
    ShardEntry,
    Vectors,
    is_intact,
    read_settings,
    write_settings,
    write_shard,
)


def encode_corpus(
    encoder: Encoder,
    dataset: RetrievalDataset,
    folder: Path | str,
    *,
    part: tuple[int, int] = (0, 1),
    shard_size: int = 8192,
    batch_size: int = 64,
    progress: Progress | None = None,
) -> Vectors | None:
    """Encode the documents, or part i of n of them, into `folder`; shards that are there already are kept.

    Gives the vectors, or None while other parts are missing.
    """
    folder = Path(folder)
    plan = _make_plan(encoder, dataset, shard_size)
    _agree_on_plan(folder, plan)
    with _only_writer(folder, part):
        finished = _finished_shards(folder, plan)
        mine = {number for number in range(_shard_count(plan)) if number % part[1] == part[0]}
        total = sum(_length(plan, number) for number in mine)
        done = sum(_length(plan, number) for number in mine & finished.keys())
        if progress:
            progress(done, total)
        for number, documents in _groups(dataset, plan, mine - finished.keys()):
            vectors = encoder.embed_documents([document.full_text for document in documents], batch_size)
            _refuse_broken(vectors, documents)
            write_shard(folder, _name(number), [document.id for document in documents], vectors)
            done += len(documents)
            if progress:
                progress(done, total)
        return _finish(folder, plan)


def _make_plan(encoder: Encoder, dataset: RetrievalDataset, shard_size: int) -> Plan:
    """One pass over the corpus before the first vector: is it sound, how many documents, which fingerprint."""
    digest = CorpusDigest()
    counts = ensure_sound(dataset, splits=(), observe=digest.add)
    return Plan(
        dataset=dataset.name,
        corpus_sha256=digest.hexdigest(),
        count=counts.documents,
        dimension=encoder.dimension,
        shard_size=shard_size,
        encoder=encoder.settings,
        fingerprint=encoder.fingerprint(),
    )


def _agree_on_plan(folder: Path, plan: Plan) -> None:
    """Take the folder for this plan, or refuse it if it was begun with another."""
    path = folder / "plan.json"
    if path.exists():
        before = read_settings(path, Plan)
        differing = [name for name in Plan.model_fields if getattr(before, name) != getattr(plan, name)]
        if differing:
            raise RepconcError(
                f"{folder} was begun with another {', '.join(differing)}; choose another folder, or remove it first."
            )
    elif folder.exists() and any(folder.iterdir()):
        raise RepconcError(f"{folder} is not empty and holds no vectors; choose another folder.")
    else:
        write_settings(path, plan)


def _finished_shards(folder: Path, plan: Plan) -> dict[int, ShardEntry]:
    """The shards that are whole, by number; one that fails its checksum counts as not there."""
    finished = {}
    for number in range(_shard_count(plan)):
        path = folder / f"{_name(number)}.json"
        if path.exists() and is_intact(folder, entry := read_settings(path, ShardEntry)):
            finished[number] = entry
    return finished


def _groups(dataset: RetrievalDataset, plan: Plan, wanted: set[int]) -> Iterator[tuple[int, list[Document]]]:
    """The documents of the wanted shards, in one pass over the corpus, one shard in memory at a time."""
    if not wanted:
        return
    group: list[Document] = []
    for position, document in enumerate(dataset.documents):
        number = position // plan.shard_size
        if number in wanted:
            group.append(document)
            if len(group) == _length(plan, number):
                yield number, group
                group = []


def _finish(folder: Path, plan: Plan) -> Vectors | None:
    """Write the manifest once all shards are there, whichever part was the last."""
    finished = _finished_shards(folder, plan)
    if len(finished) < _shard_count(plan):
        return None
    write_settings(folder / "manifest.json", Manifest(plan=plan, shards=[finished[n] for n in sorted(finished)]))
    return Vectors(folder)


@contextmanager
def _only_writer(folder: Path, part: tuple[int, int]) -> Iterator[None]:
    """Two processes on the same part would only do the work twice: the second is told so."""
    with (folder / f".part-{part[0]}-of-{part[1]}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise RepconcError(f"Another process is encoding this part into {folder}; wait for it to end.") from error
        yield


def _refuse_broken(vectors: np.ndarray, documents: list[Document]) -> None:
    broken = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if broken.size:
        raise RepconcError(f"The encoder gave a vector that is not finite for document {documents[broken[0]].id!r}.")


def _shard_count(plan: Plan) -> int:
    return -(-plan.count // plan.shard_size)


def _length(plan: Plan, number: int) -> int:
    return min(plan.shard_size, plan.count - number * plan.shard_size)


def _name(number: int) -> str:
    return f"shard-{number:05d}"
