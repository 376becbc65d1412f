"""`index check`: every checksum and every count, also those that no search has touched."""

from pathlib import Path

import numpy as np

from repconc.errors import RepconcError
from repconc.indexes.checked import MEND
from repconc.indexes.ivf import Index
from repconc.indexes.segment import SegmentReader
from repconc.packages import Progress


def check_index(folder: Path, progress: Progress = lambda done, total: None) -> dict[str, int]:
    """Raise where something does not hold; gives what was counted."""
    index = Index(folder)
    files = index.files()
    for number, file in enumerate(files, start=1):
        file.verify()
        progress(number, len(files))
    for segment in index.segments:
        _check_counts(segment, index.manifest.codewords)
    hashes = np.concatenate([np.empty(0, np.uint64), *map(_living_hashes, index.segments)])
    if len(np.unique(hashes)) != len(index):
        raise RepconcError(f"The index does not hold {len(index)} documents of different ids: {MEND}")
    return {"files": len(files), "bytes": sum(map(len, files)), "documents": len(index)}


def _check_counts(segment: SegmentReader, codewords: int) -> None:
    described, offsets = segment.segment, segment.offsets
    name = segment.codes.path
    if offsets[0] != 0 or offsets[-1] != described.count or (np.diff(offsets) < 0).any():
        raise RepconcError(f"The lists of {name} do not hold {described.count} documents: {MEND}")
    if not np.array_equal(np.sort(segment.numbers.all()), np.arange(described.count)):
        raise RepconcError(f"A document of {name} stands in no list, or in two: {MEND}")
    if (removed := segment.removed().sum()) != described.removed:
        raise RepconcError(f"{removed} documents of {name} are removed, not {described.removed}: {MEND}")
    if segment.codes.read(0, len(segment.codes)).max() >= codewords:
        raise RepconcError(f"{name} holds a code beyond {codewords} codewords: {MEND}")
    if segment.documents.rows() != described.count:
        raise RepconcError(f"{name} has {described.count} codes and {segment.documents.rows()} texts: {MEND}")


def _living_hashes(segment: SegmentReader) -> np.ndarray:
    """The hashes of the ids of all documents that are not removed."""
    living = np.zeros(segment.segment.count, bool)  # by number
    living[segment.numbers.all()[~segment.removed()]] = True
    hashes, owners = segment.documents.hashes()
    return np.asarray(hashes[living[owners]])
