"""Build, add, update, remove, compact: each writes new files and commits them with one manifest, or changes nothing.

One writer at a time holds the lock of the folder. Readers keep the files that they have mapped, whatever happens to
their names.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from repconc.codec import Codec
from repconc.codec_files import to_bytes
from repconc.errors import RepconcError, ReplacedError
from repconc.indexes.checked import write_checked
from repconc.indexes.folder import writing
from repconc.indexes.ivf import Index
from repconc.indexes.lists import default_lists, nearest, train_centroids
from repconc.indexes.manifest import MANIFEST, IndexManifest, Reference, Segment, commit, read_manifest
from repconc.indexes.segment import SegmentReader, SegmentWriter, write_removed
from repconc.packages import Progress
from repconc.records import Document

Batches: TypeAlias = Iterable[tuple[Sequence[Document], np.ndarray]]
"""Documents with their codes [n, M], a group at a time."""

DOCUMENTS_AT_A_TIME = 4096

Show: TypeAlias = Callable[[str], Progress]
"""A progress bar for a piece of work, by its name."""


def quietly(work: str) -> Progress:
    return lambda done, total: None


class Changes(NamedTuple):
    """What an operation did."""

    added: int = 0
    replaced: int = 0
    removed: int = 0


def build(
    folder: Path,
    batches: Batches,
    *,
    coding: Codec,
    scoring: Codec,
    model: Reference | None = None,
    lists: int | None = None,
    seed: int = 0,
    show: Show = quietly,
) -> Index:
    """A new index. Documents and codes stream by; what is held is one group, and a few bytes a document."""
    with writing(folder, new=True):
        if (folder / MANIFEST).exists():
            raise RepconcError(f"{folder} holds an index already; remove it first, or choose another name.")
        if not (np.isfinite(coding.codebooks).all() and np.isfinite(scoring.codebooks).all()):
            raise RepconcError("The codebooks hold NaN or infinite values.")
        writer = SegmentWriter(folder, 1, scoring.codebooks.shape[:2])
        for documents, codes in batches:
            writer.add(documents, codes)
        if not len(writer):
            raise RepconcError("There are no documents to build an index of.")
        codes = writer.codes()
        count = lists or default_lists(len(codes))
        if count > len(codes):
            raise RepconcError(f"{len(codes)} documents cannot fill {count} lists; ask for fewer lists.")
        centroids = train_centroids(codes, scoring, count, seed, show("clustering"))
        owners, _ = nearest(codes, scoring, centroids, show("filling lists"))
        manifest = IndexManifest(
            next_number=2,
            model=model,
            dimension=scoring.dimension,
            bytes=scoring.blocks,
            codewords=scoring.codebooks.shape[1],
            lists=count,
            probes=min(count, max(64, count // 16)),  # `tune` knows better
            files={
                "codec": write_checked(folder / "000001.codec", np.frombuffer(to_bytes(coding, scoring), np.uint8)),
                "centroids": write_checked(folder / "000001.centroids", centroids.astype("<f2")),
            },
            segments=(writer.finish(owners, count),),
        )
        commit(folder, manifest)
    return Index(folder)


def add(
    folder: Path, batches: Batches, *, replace: bool = False, without: Collection[str] = (), like: Index | None = None
) -> Changes:
    """Add documents in a segment of their own. replace: those whose id is there already are replaced, else refused.

    without: ids of other documents, which are removed in the same commit where they are there. like: a state of the
    index that is open already, of which only what is new has to be opened; codes for it must not get into another one.
    """
    with writing(folder):
        index = Index(folder, like)
        manifest = index.manifest
        if like is not None and manifest.files != like.manifest.files:
            raise ReplacedError(f"Another index took the place of {folder}; open it again.")
        writer = SegmentWriter(folder, manifest.next_number, (manifest.bytes, manifest.codewords))
        writer.expect(index.fields)
        old: list[set[int]] = [set() for _ in index.segments]
        for documents, codes in batches:
            for place, segment in enumerate(index.segments):
                old[place] |= _numbers_of(segment, [document.id for document in documents])
            writer.add(documents, codes)
        replaced = sum(map(len, old))
        if replaced and not replace:
            first = next(
                segment.documents.id_of(min(numbers))
                for segment, numbers in zip(index.segments, old, strict=True)
                if numbers
            )
            raise RepconcError(f"The document {first!r} is in the index already; update replaces it.")
        for numbers, segment in zip(old, index.segments, strict=True):
            numbers |= _numbers_of(segment, without)
        segments, gone = _without(folder, index, old, manifest.next_number + 1)
        if not len(writer) and not gone:
            return Changes()
        if len(writer):
            owners, _ = nearest(writer.codes(), index.scoring, index.centroids)
            segments.append(writer.finish(owners, manifest.lists))
        _commit(folder, manifest, segments)
        return Changes(added=len(writer) - replaced, replaced=replaced, removed=gone - replaced)


def remove(folder: Path, ids: Sequence[str]) -> Changes:
    """Remove documents; an id that is not there is refused, and nothing is removed."""
    with writing(folder):
        index = Index(folder)
        old = [_numbers_of(segment, ids) for segment in index.segments]
        known = {
            segment.documents.id_of(number)
            for segment, numbers in zip(index.segments, old, strict=True)
            for number in numbers
        }
        if unknown := set(ids) - known:
            raise RepconcError(f"There is no document {sorted(unknown)[0]!r} in the index; nothing was removed.")
        segments, removed = _without(folder, index, old, index.manifest.next_number)
        if removed:
            _commit(folder, index.manifest, segments)
        return Changes(removed=removed)


def compact(folder: Path, progress: Progress = lambda done, total: None) -> Changes:
    """All documents in one segment, without those that were removed. Results stay as they are."""
    with writing(folder):
        index = Index(folder)
        if len(index.segments) <= 1 and not any(segment.removed for segment in index.manifest.segments):
            return Changes()
        return _merge(folder, index, index.segments, progress)


def merge_small(folder: Path, at_most: int, like: Index | None = None) -> Changes:
    """Merge the smallest segments where there are more than `at_most`: many small additions leave many. like: as above.

    A segment joins when those before it are together at least half as large, so that a document is rewritten as often
    as sizes can double, and not with every addition.
    """
    with writing(folder):
        index = Index(folder, like)
        ordered = sorted(index.segments, key=_living)
        count = len(ordered) - at_most + 1
        if count < 2:
            return Changes()
        while count < len(ordered) and _living(ordered[count]) <= 2 * sum(map(_living, ordered[:count])):
            count += 1
        return _merge(folder, index, ordered[:count])


def _merge(
    folder: Path, index: Index, merged: Sequence[SegmentReader], progress: Progress = lambda done, total: None
) -> Changes:
    """Some segments become one, without what was removed of them."""
    manifest = index.manifest
    writer, owners = SegmentWriter(folder, manifest.next_number, (manifest.bytes, manifest.codewords)), []
    writer.expect(index.fields)  # also those of removed documents only: a filter may go on naming them
    total = sum(map(_living, merged))
    for segment in merged:
        for documents, codes, lists in documents_of(segment):
            writer.add(documents, codes)
            owners.append(lists)
            progress(len(writer), total)
    segments = [segment.segment for segment in index.segments if segment not in merged]
    if len(writer):
        segments.append(writer.finish(np.concatenate(owners), manifest.lists))
    _commit(folder, manifest, segments)
    return Changes(removed=sum(segment.segment.removed for segment in merged))


def _living(segment: SegmentReader) -> int:
    return segment.segment.count - segment.segment.removed


def set_probes(folder: Path, probes: int) -> None:
    """Keep how many lists a search reads."""
    with writing(folder):
        manifest = read_manifest(folder)
        if not 1 <= probes <= manifest.lists:
            raise RepconcError(f"probes is {probes} and the index has {manifest.lists} lists.")
        commit(folder, manifest.model_copy(update={"probes": probes, "version": manifest.version + 1}))


def _commit(folder: Path, manifest: IndexManifest, segments: Sequence[Segment]) -> None:
    changes = {
        "segments": tuple(segments),
        "version": manifest.version + 1,
        # An operation uses one number for a new segment and one for the removal bits of each old one.
        "next_number": manifest.next_number + 1 + len(manifest.segments),
    }
    commit(folder, manifest.model_copy(update=changes))


def _without(folder: Path, index: Index, old: list[set[int]], first: int) -> tuple[list[Segment], int]:
    """The segments with some more documents removed; new removal bits get numbers from `first` on."""
    segments, total = [], 0
    for place, (segment, numbers) in enumerate(zip(index.segments, old, strict=True)):
        described = segment.segment
        if numbers:
            bits = segment.removed() | np.isin(segment.numbers.all(), list(numbers))
            entry = write_removed(folder, first + place, bits)
            described = described.model_copy(
                update={"removed": int(bits.sum()), "files": described.files | {"removed": entry}}
            )
            total += len(numbers)
        segments.append(described)
    return [segment for segment in segments if segment.removed < segment.count], total


def _numbers_of(segment: SegmentReader, ids: Iterable[str]) -> set[int]:
    """Of the documents with these ids that are still there."""
    found = (segment.documents.number_of(id) for id in ids)
    return {number for number in found if number is not None and not segment.is_removed(number)}


def documents_of(segment: SegmentReader) -> Iterator[tuple[list[Document], np.ndarray, np.ndarray]]:
    """The documents of a segment that are still there, with codes and lists, in the order in which they came."""
    positions = np.argsort(segment.numbers.all(), kind="stable")  # number -> position
    positions = positions[~segment.removed()[positions]]
    for start in range(0, len(positions), DOCUMENTS_AT_A_TIME):
        part = positions[start : start + DOCUMENTS_AT_A_TIME]
        documents = [segment.documents.get(number) for number in segment.numbers.take(part).tolist()]
        yield documents, segment.codes_at(part), np.searchsorted(segment.offsets, part, side="right") - 1
