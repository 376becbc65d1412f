"""Build, add, update, remove, compact: each writes new files and commits them with one manifest, or changes nothing.

One writer at a time holds the lock of the folder. Readers keep the files that they have mapped, whatever happens to
their names.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np

from repconc.codec import Codec
from repconc.codec_files import to_bytes
from repconc.errors import RepconcError, ReplacedError
from repconc.indexes.checked import write_checked
from repconc.indexes.folder import writing
from repconc.indexes.ivf import Index
from repconc.indexes.lists import cells_of, default_lists, train_centroids
from repconc.indexes.manifest import MANIFEST, IndexManifest, Reference, Segment, commit, read_manifest
from repconc.indexes.merging import Remains, absorbed_by, copy, gone_of, smallest, untouched
from repconc.indexes.segment import SegmentReader, SegmentWriter, write_removed
from repconc.packages import Progress
from repconc.records import Document

Batches: TypeAlias = Iterable[tuple[Sequence[Document], np.ndarray]]
"""Documents with their codes [n, M], a group at a time."""

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
        owners = cells_of(codes, coding, scoring, centroids, show("filling lists"))
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
            segments=(writer.finish(owners, count, len(coding.gains)),),
        )
        commit(folder, manifest)
    return Index(folder)


def add(
    folder: Path,
    batches: Batches,
    *,
    replace: bool = False,
    without: Collection[str] = (),
    at_most: int | None = None,
    like: Index | None = None,
    tidy: bool = True,
) -> Changes:
    """Add documents in a segment of their own. replace: those whose id is there already are replaced, else refused.

    without: ids of other documents, which are removed in the same commit where they are there. at_most: where there
    would be more segments, small ones go into the new one, as if they were merged afterwards. like: a state of the
    index that is open already, of which only what is new has to be opened; codes for it must not get into another one.
    tidy: remove the files that are not needed any more; else `remove_past` does, or the next writer.
    """
    with writing(folder) as cleaning:
        index = Index(folder, like)
        manifest = index.manifest
        if like is not None and manifest.files != like.manifest.files:
            raise ReplacedError(f"Another index took the place of {folder}; open it again.")
        writer, old = _writer(folder, index), untouched(index)
        for documents, codes in batches:
            for segment, gone in old:
                gone.update(_numbers_of(segment, [document.id for document in documents]))
            writer.add(documents, codes)
        new, replaced = len(writer), gone_of(old)
        if replaced and not replace:
            first = next(segment.documents.id_of(min(gone)) for segment, gone in old if gone)
            raise RepconcError(f"The document {first!r} is in the index already; update replaces it.")
        for segment, gone in old:
            gone.update(_numbers_of(segment, without))
        if not new and not gone_of(old):
            return Changes()
        absorbed = absorbed_by(new, old, at_most) if new and at_most else []
        segments = _without(folder, [one for one in old if one not in absorbed], manifest.next_number + 1)
        if new:
            owners = cells_of(writer.codes(), index.coding, index.scoring, index.centroids)
            owners = np.concatenate([owners, *copy(absorbed, writer)])
            segments.append(writer.finish(owners, manifest.lists, len(index.coding.gains)))
        _commit(folder, manifest, segments)
        if not tidy:
            cleaning.pop_all()
        return Changes(added=new - replaced, replaced=replaced, removed=gone_of(old) - replaced)


def remove(folder: Path, ids: Sequence[str]) -> Changes:
    """Remove documents; an id that is not there is refused, and nothing is removed."""
    with writing(folder):
        index = Index(folder)
        old = [Remains(segment, _numbers_of(segment, ids)) for segment in index.segments]
        known = {segment.documents.id_of(number) for segment, gone in old for number in gone}
        if unknown := set(ids) - known:
            raise RepconcError(f"There is no document {sorted(unknown)[0]!r} in the index; nothing was removed.")
        if gone_of(old):
            _commit(folder, index.manifest, _without(folder, old, index.manifest.next_number))
        return Changes(removed=gone_of(old))


def compact(folder: Path, progress: Progress = lambda done, total: None) -> Changes:
    """All documents in one segment, without those that were removed. Results stay as they are."""
    with writing(folder):
        index = Index(folder)
        if len(index.segments) <= 1 and not any(segment.removed for segment in index.manifest.segments):
            return Changes()
        return _merge(folder, index, untouched(index), progress)


def merge_small(folder: Path, at_most: int, like: Index | None = None) -> Changes:
    """Merge the smallest segments where there are more than `at_most`: many additions leave many. like: as above."""
    with writing(folder):
        index = Index(folder, like)
        merged = smallest(untouched(index), at_most)
        return _merge(folder, index, merged) if merged else Changes()


def _merge(
    folder: Path, index: Index, merged: Sequence[Remains], progress: Progress = lambda done, total: None
) -> Changes:
    """Some segments become one, without what was removed of them."""
    writer = _writer(folder, index)
    owners = copy(merged, writer, progress)
    readers = [one.segment for one in merged]
    segments = [segment.segment for segment in index.segments if segment not in readers]
    if len(writer):
        cells = np.concatenate(owners)
        segments.append(writer.finish(cells, index.manifest.lists, len(index.coding.gains)))
    _commit(folder, index.manifest, segments)
    return Changes(removed=sum(segment.segment.removed for segment in readers))


def _writer(folder: Path, index: Index) -> SegmentWriter:
    """Of the next segment."""
    manifest = index.manifest
    writer = SegmentWriter(folder, manifest.next_number, (manifest.bytes, manifest.codewords))
    writer.expect(index.fields)  # also those of removed documents only: a filter may go on naming them
    return writer


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


def _without(folder: Path, old: Sequence[Remains], first: int) -> list[Segment]:
    """The segments without what is gone; new removal bits get numbers from `first` on."""
    segments = []
    for place, (segment, gone) in enumerate(old):
        described = segment.segment
        if gone:
            bits = segment.removed() | np.isin(segment.numbers.all(), list(gone))
            entry = write_removed(folder, first + place, bits)
            described = described.model_copy(
                update={"removed": int(bits.sum()), "files": described.files | {"removed": entry}}
            )
        segments.append(described)
    return [segment for segment in segments if segment.removed < segment.count]


def _numbers_of(segment: SegmentReader, ids: Iterable[str]) -> set[int]:
    """Of the documents with these ids that are still there."""
    found = (segment.documents.number_of(id) for id in ids)
    return {number for number in found if number is not None and not segment.is_removed(number)}
