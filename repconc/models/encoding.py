"""Encode a whole corpus to disk: in shards, with flat memory, and resumable after a kill at any point.

A shard is a pure function of its documents, the encoder and the batch size: batches are formed inside it, and it
appears under its name only when it is whole. So an interrupted run that goes on, on the same kind of machine, ends with
the same bytes as one that was never interrupted.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from repconc.data.check import ensure_sound
from repconc.data.dataset import RetrievalDataset
from repconc.errors import RepconcError
from repconc.files import locked, read_model, remove_partials, write_model
from repconc.models.encoder import Encoder
from repconc.packages import Progress
from repconc.records import Document
from repconc.vectors import CorpusDigest, Manifest, Plan, ShardEntry, Vectors, is_intact, shard_name, write_shard


class CorpusChangedError(RepconcError):
    """The documents are not those that were checked before the first vector."""


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
    plan = _make_plan(encoder, dataset, shard_size, batch_size, progress)
    _agree_on_plan(folder, plan)
    with _only_writer(folder, part):
        finished = _finished_shards(folder, plan)
        mine = {number for number in range(plan.shard_count) if number % part[1] == part[0]}
        total = sum(plan.length_of(number) for number in mine)
        done = sum(plan.length_of(number) for number in mine & finished)

        def advance(count: int) -> None:
            nonlocal done
            done += count
            if progress:
                progress(done, total)

        advance(0)
        written = []
        try:
            for number, documents in _groups(dataset, plan, mine - finished):
                vectors = _embed(encoder, [document.full_text for document in documents], batch_size, advance)
                _refuse_broken(vectors, documents)
                written.append(write_shard(folder, shard_name(number), [d.id for d in documents], vectors))
        except CorpusChangedError:
            for entry in written:
                (folder / f"{entry.name}.json").unlink()
            raise
    return _finish(folder, plan, alone=part[1] == 1)


def _embed(encoder: Encoder, texts: list[str], batch_size: int, advance: Callable[[int], None]) -> np.ndarray:
    """[n, D]: longest first, so that a batch holds texts of like length; progress moves every few batches."""
    order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
    vectors = np.empty((len(texts), encoder.dimension), np.float32)
    for start in range(0, len(texts), 8 * batch_size):
        places = order[start : start + 8 * batch_size]
        vectors[places] = encoder.embed_documents([texts[place] for place in places], batch_size)
        advance(len(places))
    return vectors


def _make_plan(
    encoder: Encoder, dataset: RetrievalDataset, shard_size: int, batch_size: int, progress: Progress | None
) -> Plan:
    """One pass over the corpus before the first vector: is it sound, how many documents, which fingerprint."""
    digest = CorpusDigest()
    counts = ensure_sound(dataset, splits=(), observe=digest.add, progress=progress)
    return Plan(
        dataset=dataset.name,
        corpus_sha256=digest.hexdigest(),
        count=counts.documents,
        dimension=encoder.dimension,
        shard_size=shard_size,
        batch_size=batch_size,
        encoder=encoder.settings,
        fingerprint=encoder.fingerprint(),
    )


def _agree_on_plan(folder: Path, plan: Plan) -> None:
    """Take the folder for this plan, or refuse it if it was begun with another. Parts may start at the same time."""
    path = folder / "plan.json"
    names = {file.name for file in folder.iterdir() if file.name[0] != "."} if folder.is_dir() else set()
    if names and path.name not in names:
        raise RepconcError(f"{folder} is not empty and holds no vectors; choose another folder.")
    with locked(path):
        if not path.exists():
            write_model(path, plan)
    before = read_model(path, Plan)
    # Names and paths may change; what they stand for is in the fingerprints.
    differing = [name for name in Plan.model_fields if getattr(before, name) != getattr(plan, name)]
    differing = [name for name in differing if name not in {"dataset", "encoder"}]
    if differing:
        raise RepconcError(
            f"{folder} was begun with another {', '.join(differing)}; choose another folder, or remove it."
        )


def _finished_shards(folder: Path, plan: Plan) -> set[int]:
    """The shards that are whole; one that fails its checksum counts as not there."""
    return {number for number in range(plan.shard_count) if _entry(folder, plan, number)}


def _entry(folder: Path, plan: Plan, number: int) -> ShardEntry | None:
    """What a shard's own file says of it; None where it, or the shard, is missing, broken or not of this plan."""
    path = folder / f"{shard_name(number)}.json"
    try:
        entry = read_model(path, ShardEntry) if path.exists() else None
    except RepconcError:
        return None
    fits = entry and (entry.name, entry.count) == (shard_name(number), plan.length_of(number))
    return entry if entry and fits and is_intact(folder, entry) else None


def _groups(dataset: RetrievalDataset, plan: Plan, wanted: set[int]) -> Iterator[tuple[int, list[Document]]]:
    """The documents of the wanted shards, in one pass over the corpus, one shard in memory at a time."""
    if not wanted:
        return
    group: list[Document] = []
    digest = CorpusDigest()
    for position, document in enumerate(dataset.documents):
        digest.add(document)
        number = position // plan.shard_size
        if number in wanted:
            group.append(document)
            if len(group) == plan.length_of(number):
                yield number, group
                group = []
    if digest.hexdigest() != plan.corpus_sha256:
        raise CorpusChangedError(f"The corpus {dataset.name} changed while it was being encoded; encode it again.")


def _finish(folder: Path, plan: Plan, alone: bool) -> Vectors | None:
    """Write the manifest once all shards are there, whichever part was the last."""
    with locked(folder / "plan.json"):
        shards = [entry for number in range(plan.shard_count) if (entry := _entry(folder, plan, number))]
        if len(shards) < plan.shard_count:
            return None
        write_model(folder / "manifest.json", Manifest(plan=read_model(folder / "plan.json", Plan), shards=shards))
        if alone:  # another part may be at work on a shard that was damaged
            remove_partials(folder)
    return Vectors(folder)


@contextmanager
def _only_writer(folder: Path, part: tuple[int, int]) -> Iterator[None]:
    """Two processes on the same part would only do the work twice: the second is told so."""
    try:
        with locked(folder / f"part-{part[0]}-of-{part[1]}", wait=False):
            yield
    except BlockingIOError as error:
        raise RepconcError(f"Another process is encoding this part into {folder}; wait for it to end.") from error


def _refuse_broken(vectors: np.ndarray, documents: list[Document]) -> None:
    broken = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if broken.size:
        raise RepconcError(f"The encoder gave a vector that is not finite for document {documents[broken[0]].id!r}.")
