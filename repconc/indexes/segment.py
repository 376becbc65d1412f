"""A segment: documents that were written together, their codes in the order of their lists.

Within a list they lie by classes of decoded length (lengths.py); without those there is one class. One class of one
list is a cell: cell = list * C + class.

codes      [n, M] uint8, list after list, in blocks (blocks.py)
offsets    [L * C + 1]: where each cell begins
numbers    [n]: which document stands at a position
removed    one bit a position, where documents were removed since
"""

from collections.abc import Iterable, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path

import numpy as np

from repconc.errors import RepconcError
from repconc.indexes.blocks import codes_at, to_blocks
from repconc.indexes.bounds import Bounds
from repconc.indexes.checked import MEND, CheckedArray, CheckedFile, CheckedWriter, FileEntry, write_checked
from repconc.indexes.document_writer import DocumentWriter
from repconc.indexes.documents import DocumentReader
from repconc.indexes.filters import Filter, condition_of
from repconc.indexes.manifest import Segment
from repconc.indexes.scan import Found, depth_for, scan
from repconc.records import Document

FILTERS_IN_MEMORY = 16


class SegmentWriter:
    """Documents and codes come in any order; at the end codes are put into the order of their lists."""

    def __init__(self, folder: Path, number: int, sizes: Sequence[int]) -> None:
        """sizes: M and K."""
        self._folder, self._stem = folder, f"{number:06d}"
        self._blocks, self._codewords = sizes
        self._spool_path = folder / f"{self._stem}.spool"  # codes as they come; no manifest ever names it
        self._spool = self._spool_path.open("xb")
        self._documents = DocumentWriter(folder, self._stem)

    def __len__(self) -> int:
        return len(self._documents)

    def expect(self, fields: Iterable[str]) -> None:
        """Metadata fields of the documents that are there already."""
        self._documents.expect(fields)

    def add(self, documents: Sequence[Document], codes: np.ndarray) -> None:
        """codes: [n, M] uint8"""
        if codes.dtype != np.uint8 or codes.shape != (len(documents), self._blocks):
            raise RepconcError(
                f"{len(documents)} documents need codes of {self._blocks} bytes each, not {codes.shape}."
            )
        if codes.size and codes.max() >= self._codewords:
            raise RepconcError(f"A code holds {codes.max()} and there are {self._codewords} codewords.")
        self._documents.add(documents)
        self._spool.write(np.ascontiguousarray(codes).tobytes())

    def codes(self) -> np.ndarray:
        """[n, M] as they came until now, mapped."""
        self._spool.flush()
        return np.memmap(self._spool_path, np.uint8, "r").reshape(-1, self._blocks)

    def finish(self, owners: np.ndarray, lists: int, classes: int) -> Segment:
        """owners: [n], the cell of each document, in the order in which they came."""
        codes = self.codes()
        self._spool.close()
        order = np.argsort(owners, kind="stable").astype("<u4")  # by cell, then as they came
        offsets = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=lists * classes))])
        entries = self._documents.finish()
        path = self._folder / self._stem
        entries["numbers"] = write_checked(path.with_suffix(".numbers"), order)
        entries["offsets"] = write_checked(path.with_suffix(".offsets"), offsets.astype("<i8"))
        ends = np.unique(offsets[classes::classes])  # of lists that hold something: few, where few are added
        ends = ends[ends > 0].tolist()
        with CheckedWriter(path.with_suffix(".codes")) as writer:
            for start, stop in zip([0, *ends[:-1]], ends, strict=True):
                writer.write(to_blocks(codes[order[start:stop]]))
        entries["codes"] = writer.entry
        self._spool_path.unlink()
        return Segment(count=len(order), files=entries)


class SegmentReader:
    """A segment as searches see it."""

    def __init__(self, folder: Path, segment: Segment, blocks: int, lists: int, gains: np.ndarray) -> None:
        """gains: [C]"""
        files = segment.files
        self.segment, self._gains = segment, gains
        self.codes, self._blocks = CheckedFile(folder, files["codes"]), blocks
        self._offsets = CheckedArray(folder, files["offsets"], "<i8")
        self.offsets = self._offsets.all()
        self.numbers = CheckedArray(folder, files["numbers"], "<u4")
        self.documents = DocumentReader(folder, files, segment.count)
        self._removed = CheckedFile(folder, files["removed"]) if "removed" in files else None
        sizes = len(self.codes), len(self.numbers), len(self.offsets)
        if sizes != (segment.count * blocks, segment.count, lists * len(gains) + 1):
            raise RepconcError(f"{self.codes.path} does not hold {segment.count} documents: {MEND}")
        self._bitmaps: dict[Filter | None, np.ndarray] = {}

    def holds(self, segment: Segment) -> bool:
        """Whether these are the documents of a segment, whichever of them are removed."""
        return _lasting(segment) == _lasting(self.segment)

    def with_removals(self, folder: Path, segment: Segment) -> "SegmentReader":
        """The same documents with the removals of another state; the files that both have are not opened again."""
        if segment == self.segment:
            return self
        other = copy(self)
        other.segment, other._bitmaps = segment, {}
        other._removed = CheckedFile(folder, segment.files["removed"]) if "removed" in segment.files else None
        other.__dict__.pop("_removed_numbers", None)
        return other

    def files(self) -> list[CheckedFile]:
        files = [self.codes, self._offsets.file, self.numbers.file, *self.documents.files()]
        return files + ([self._removed] if self._removed else [])

    def search(
        self,
        tables: np.ndarray,
        lists: np.ndarray,
        k: int,
        tree: Filter | None,
        threads: int,
        bounds: Bounds,
        first: int | None = None,
    ) -> Found:
        """The best documents of some lists that are not removed and pass a filter. tables: [B, M, K]; lists: [B, P]

        first: bytes that are scanned, default all; what they choose is scored with all.
        """
        C = len(self._gains)
        cells = lists if C == 1 else (C * lists[..., None] + np.arange(C)).reshape(len(lists), -1)  # [B, P * C]
        starts, stops = self.offsets[cells], self.offsets[cells + 1]
        self.codes.touch(starts * self._blocks, stops * self._blocks)
        allowed = None if tree is None and self._removed is None else self._allowed(tree, bounds)
        return scan(
            self.codes.untouched(), tables, starts, stops, k, allowed, threads, self._gains, first, depth_for(k)
        )

    def codes_at(self, positions: np.ndarray) -> np.ndarray:
        """[n, M]"""
        self.codes.read(0, len(self.codes))
        return codes_at(self.codes.untouched(), self.offsets[:: len(self._gains)], positions, self._blocks)

    def removed(self) -> np.ndarray:
        """[n] bool by position."""
        if self._removed is None:
            return np.zeros(self.segment.count, bool)
        bits = self._removed.read(0, len(self._removed))
        return np.unpackbits(bits, count=self.segment.count, bitorder="little").astype(bool)

    def is_removed(self, number: int) -> bool:
        return number in self._removed_numbers

    @cached_property
    def _removed_numbers(self) -> frozenset[int]:
        if not self.segment.removed:
            return frozenset()
        return frozenset(self.numbers.all()[self.removed()].tolist())

    def passing(self, tree: Filter | None, bounds: Bounds) -> np.ndarray:
        """[n] bool by number: not removed, and passes the filter."""
        bits = np.unpackbits(self._allowed(tree, bounds), count=self.segment.count, bitorder="little")
        passing = np.empty(self.segment.count, bool)
        passing[self.numbers.all()] = bits
        return passing

    def _allowed(self, tree: Filter | None, bounds: Bounds) -> np.ndarray:
        """A bitmap by position; those of the latest filters are kept."""
        bitmap = self._bitmaps.pop(tree, None)
        if bitmap is None:
            bitmap = self._matching(tree, bounds)
        self._bitmaps[tree] = bitmap
        for oldest in list(self._bitmaps)[:-FILTERS_IN_MEMORY]:  # several threads may be here
            self._bitmaps.pop(oldest, None)
        return bitmap

    def _matching(self, tree: Filter | None, bounds: Bounds) -> np.ndarray:
        allowed = ~self.removed()
        if tree is not None:
            passing = np.zeros(self.segment.count, bool)
            condition, values = condition_of(tree, self.documents.columns)
            passing[self.documents.matching(condition, values, bounds)] = True
            allowed &= passing[self.numbers.all()]
        return np.packbits(allowed, bitorder="little")


def _lasting(segment: Segment) -> tuple[int, dict[str, FileEntry]]:
    """What stays as it is when documents are removed."""
    return segment.count, {kind: entry for kind, entry in segment.files.items() if kind != "removed"}


def write_removed(folder: Path, number: int, removed: np.ndarray) -> FileEntry:
    """One bit a position, in a file of its own."""
    return write_checked(folder / f"{number:06d}.removed", np.packbits(removed, bitorder="little"))
