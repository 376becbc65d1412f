"""Which segments become one, and how what is left of them is written once more.

Small additions leave small segments, and every search reads all of them. A segment joins smaller ones when they are
together at least half as large, so that in merges a document is rewritten as often as sizes can double. What an
addition takes along is rewritten with it, up to a bound.
"""

from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from repconc.indexes.ivf import Index
from repconc.indexes.segment import SegmentReader, SegmentWriter
from repconc.packages import Progress
from repconc.records import Document

DOCUMENTS_AT_A_TIME = 4096
ABSORBED = 512
"""Documents of other segments that an addition takes along at most: somebody waits for it."""


class Remains(NamedTuple):
    """A segment, and the numbers of the documents that an operation takes from it."""

    segment: SegmentReader
    gone: set[int]

    @property
    def living(self) -> int:
        return self.segment.segment.count - self.segment.segment.removed - len(self.gone)


def untouched(index: Index) -> list[Remains]:
    return [Remains(segment, set()) for segment in index.segments]


def gone_of(old: Sequence[Remains]) -> int:
    return sum(len(one.gone) for one in old)


def smallest(old: Sequence[Remains], at_most: int) -> list[Remains]:
    """The segments to merge, so that there are `at_most`; none where there are no more than that."""
    ordered = sorted(old, key=attrgetter("living"))
    count = _joining([one.living for one in ordered], at_most)
    return ordered[:count] if count > 1 else []


def absorbed_by(new: int, old: Sequence[Remains], at_most: int) -> list[Remains]:
    """The segments that go into one of `new` documents, as if it were merged with them afterwards; large ones stay."""
    ordered = sorted(old, key=attrgetter("living"))
    count = _joining([new, *(one.living for one in ordered)], at_most) - 1
    totals = accumulate(one.living for one in ordered[:count])
    return [one for one, total in zip(ordered, totals, strict=False) if total <= ABSORBED]


def _joining(sizes: Sequence[int], at_most: int) -> int:
    """How many segments, from the first on, become one, so that there are `at_most`; 1 where nothing has to be done."""
    count = max(1, len(sizes) - at_most + 1)
    while 1 < count < len(sizes) and sizes[count] <= 2 * sum(sizes[:count]):
        count += 1
    return count


def copy(
    old: Sequence[Remains], writer: SegmentWriter, progress: Progress = lambda done, total: None
) -> list[np.ndarray]:
    """Write what is left of some segments once more; gives the cells of these documents."""
    owners, total = [], sum(one.living for one in old)
    for segment, gone in old:
        for documents, codes, cells in documents_of(segment, gone):
            writer.add(documents, codes)
            owners.append(cells)
            progress(len(writer), total)
    return owners


def documents_of(
    segment: SegmentReader, gone: Collection[int] = ()
) -> Iterator[tuple[list[Document], np.ndarray, np.ndarray]]:
    """The documents of a segment that are still there, with codes and cells, in the order in which they came.

    gone: numbers of others that are left out.
    """
    positions = np.argsort(segment.numbers.all(), kind="stable")  # number -> position
    living = ~segment.removed()[positions]
    living[list(gone)] = False
    positions = positions[living]
    for start in range(0, len(positions), DOCUMENTS_AT_A_TIME):
        part = positions[start : start + DOCUMENTS_AT_A_TIME]
        documents = [segment.documents.get(number) for number in segment.numbers.take(part).tolist()]
        yield documents, segment.codes_at(part), np.searchsorted(segment.offsets, part, side="right") - 1
