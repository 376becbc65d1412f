"""Immutable files whose blocks are verified when they are first touched, and all at once on demand.

A file of the index is written once, with a checksum (CRC-32) of each block of 256 KB. It is read through a memory map:
a block that nobody touches costs nothing, and a flipped byte is found before its block is used.
"""

import zlib
from pathlib import Path
from types import TracebackType

import numpy as np

from repconc.config import Settings
from repconc.errors import DamagedError, RepconcError

BLOCK = 1 << 18
SMALL = 1 << 20
"""Bytes of a file that is read and not mapped: a map holds a file descriptor, and an index may have many segments."""


class FileEntry(Settings):
    """A file as the manifest knows it."""

    name: str
    bytes: int
    checksums: str
    """Eight hexadecimal digits a block."""


def entry_of(path: Path) -> FileEntry:
    """Describe a file that another library wrote."""
    with path.open("rb") as file:
        sums = [zlib.crc32(block) for block in iter(lambda: file.read(BLOCK), b"")]
    return FileEntry(name=path.name, bytes=path.stat().st_size, checksums=_join(sums))


def write_checked(path: Path, *pieces: np.ndarray) -> FileEntry:
    """A new file; a commit syncs it."""
    with CheckedWriter(path) as writer:
        for piece in pieces:
            writer.write(piece)
    return writer.entry


class CheckedWriter:
    """Writes a new file piece by piece; its entry is there once it is closed."""

    entry: FileEntry

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sums: list[int] = []
        self._crc, self._filled, self._bytes = 0, 0, 0
        self._file = path.open("xb")

    def __enter__(self) -> "CheckedWriter":
        return self

    def write(self, array: np.ndarray) -> None:
        content = memoryview(np.ascontiguousarray(array).data).cast("B") if array.size else memoryview(b"")
        self._file.write(content)
        self._bytes += len(content)
        while len(content):
            part = content[: BLOCK - self._filled]
            self._crc = zlib.crc32(part, self._crc)
            self._filled += len(part)
            if self._filled == BLOCK:
                self._sums.append(self._crc)
                self._crc, self._filled = 0, 0
            content = content[len(part) :]

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            self.close()
        else:
            self._file.close()

    def close(self) -> None:
        self._file.close()
        sums = [*self._sums, self._crc] if self._filled else self._sums
        self.entry = FileEntry(name=self._path.name, bytes=self._bytes, checksums=_join(sums))


class CheckedFile:
    """The bytes of a file, mapped."""

    def __init__(self, folder: Path, entry: FileEntry) -> None:
        self.path, self._entry = folder / entry.name, entry
        if self.path.stat().st_size != entry.bytes:
            raise RepconcError(f"{self.path} has {self.path.stat().st_size} bytes instead of {entry.bytes}: {MEND}")
        self._sums = np.frombuffer(bytes.fromhex(entry.checksums), ">u4")
        if len(self._sums) != -(-entry.bytes // BLOCK):
            raise RepconcError(f"The manifest has {len(self._sums)} checksums for {self.path}: {MEND}")
        if entry.bytes <= SMALL:
            self._bytes = np.fromfile(self.path, np.uint8)
        else:  # as a plain array: slices of numpy's own class of maps are slow
            self._bytes = np.asarray(np.memmap(self.path, np.uint8, "r"))
        self._seen = np.zeros(len(self._sums), bool)
        self._all_seen = not len(self._sums)

    def __len__(self) -> int:
        return self._entry.bytes

    @property
    def is_in_memory(self) -> bool:
        """Whether it was read as a whole, and its name is not needed any more."""
        return self._entry.bytes <= SMALL

    def read(self, start: int, stop: int) -> np.ndarray:
        """Some bytes, verified; a view of the map."""
        if not self._all_seen:
            self.touch(np.array([start]), np.array([stop]))
        return self._bytes[start:stop]

    def touch(self, starts: np.ndarray, stops: np.ndarray) -> None:
        """Verify the blocks of some ranges of bytes, where that was not done yet."""
        if self._all_seen:
            return
        filled = stops > starts
        firsts, lasts = starts[filled] // BLOCK, (stops[filled] - 1) // BLOCK
        if (self._seen[firsts] & self._seen[lasts] & (lasts - firsts < 2)).all():
            return  # as almost always: short ranges that were seen before
        edges = np.zeros(len(self._seen) + 1, np.int64)
        np.add.at(edges, firsts, 1)
        np.add.at(edges, lasts + 1, -1)
        for block in np.flatnonzero((np.cumsum(edges[:-1]) > 0) & ~self._seen).tolist():
            if zlib.crc32(self._bytes[block * BLOCK : (block + 1) * BLOCK].data) != self._sums[block]:
                raise DamagedError(f"{self.path} is damaged near byte {block * BLOCK}: {MEND}")
            self._seen[block] = True
        self._all_seen = bool(self._seen.all())

    def untouched(self) -> np.ndarray:
        """All bytes as they lie there; for ranges that were touched."""
        return self._bytes

    def verify(self) -> None:
        """Verify all blocks again, also those that were touched."""
        self._seen[:] = False
        self._all_seen = not len(self._sums)
        self.read(0, len(self))


class CheckedArray:
    """Rows of a checked file."""

    def __init__(self, folder: Path, entry: FileEntry, dtype: str, width: int = 1) -> None:
        self.file = CheckedFile(folder, entry)
        self._row = np.dtype(dtype).itemsize * width
        if entry.bytes % self._row:
            raise RepconcError(f"{self.file.path} does not hold rows of {self._row} bytes: {MEND}")
        rows = self.file.untouched().view(dtype)
        self._rows = rows.reshape(-1, width) if width > 1 else rows

    def __len__(self) -> int:
        return len(self._rows)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Rows start .. stop - 1, verified; a view."""
        self.file.read(start * self._row, stop * self._row)
        return np.asarray(self._rows[start:stop])

    def take(self, places: np.ndarray) -> np.ndarray:
        """Some rows, verified; a copy."""
        self.touch(places, places + 1)
        return np.asarray(self._rows[places])

    def all(self) -> np.ndarray:
        return self.read(0, len(self))

    def touch(self, starts: np.ndarray, stops: np.ndarray) -> None:
        """Verify ranges of rows."""
        self.file.touch(starts * self._row, stops * self._row)


MEND = "the index is damaged; build it again, or take it from a copy."


def _join(sums: list[int]) -> str:
    return np.array(sums, ">u4").tobytes().hex()
