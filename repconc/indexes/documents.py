"""The documents of a segment: ids, titles, texts and metadata, in immutable files.

    ids, ends          the ids one after the other, and where each ends
    hashes, owners     64-bit hashes of the ids in ascending order, and the number of the document that each belongs to
    documents          SQLite: title, text and metadata by number; each row carries a checksum
    fields             SQLite: one column a metadata field, for filters; not there without metadata

A document's number is its place in the order in which documents came. Ids are not looked up in SQLite, whose trees
cannot tell a flipped byte from an id that is not there.
"""

import hashlib
import json
import sqlite3
import threading
import zlib
from collections.abc import Iterable, Sequence
from errno import ENOENT
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from repconc.errors import DamagedError, RepconcError, first_line
from repconc.indexes.bounds import Bounds, StoppedError
from repconc.indexes.checked import MEND, CheckedArray, CheckedFile, FileEntry
from repconc.kernel import kernel
from repconc.records import Document

LOCK_SECONDS = 0.1
STEPS_BETWEEN_LOOKS = 20_000
"""Of SQLite's machine, between two looks at whether anybody still waits: a millisecond or less."""


class DocumentReader:
    """The documents of a segment by number."""

    def __init__(self, folder: Path, entries: dict[str, FileEntry], count: int) -> None:
        self._ids = CheckedFile(folder, entries["ids"])
        self._ends = CheckedArray(folder, entries["ends"], "<i8")
        self._hashes = CheckedArray(folder, entries["hashes"], "<u8")
        self._owners = CheckedArray(folder, entries["owners"], "<u4")
        self._documents = Database(CheckedFile(folder, entries["documents"]))
        self._fields = Database(CheckedFile(folder, entries["fields"])) if "fields" in entries else None
        if not len(self._ends) == len(self._hashes) == len(self._owners) == count:
            raise RepconcError(f"{self._ids.path} and its companions do not hold {count} documents: {MEND}")

    def files(self) -> list[CheckedFile]:
        files = [self._ids, self._ends.file, self._hashes.file, self._owners.file, self._documents.file]
        return files + ([self._fields.file] if self._fields else [])

    def id_of(self, number: int) -> str:
        return self.ids_of(np.array([number]))[0]

    def ids_of(self, numbers: np.ndarray) -> list[str]:
        """Many at once."""
        numbers = numbers.astype(np.int64)
        stops = self._ends.take(numbers)
        starts = np.where(numbers > 0, self._ends.take(np.maximum(numbers - 1, 0)), 0)
        self._ids.touch(starts, stops)
        content = self._ids.untouched()
        if (native := kernel()) is not None:
            found: list[str] = native.strings(content, starts, stops)
            return found
        pairs = zip(starts.tolist(), stops.tolist(), strict=True)
        return [content[start:stop].tobytes().decode() for start, stop in pairs]

    def hashes(self) -> tuple[np.ndarray, np.ndarray]:
        """The hashes of all ids in ascending order, and whose they are."""
        return self._hashes.all(), self._owners.all()

    def number_of(self, id: str) -> int | None:
        """The document of this id, or None."""
        try:
            wanted = hashes_of([id.encode()])[0]
        except UnicodeEncodeError:
            return None  # no id has such characters
        low, high = 0, len(self._hashes)
        while low < high:  # not numpy's search, which would touch blocks unverified
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self._hashes.read(middle, middle + 1)[0] < wanted else (low, middle)
        while low < len(self._hashes) and self._hashes.read(low, low + 1)[0] == wanted:
            number = int(self._owners.read(low, low + 1)[0])
            if self.id_of(number) == id:
                return number
            low += 1
        return None

    def rows(self) -> int:
        """How many texts there are."""
        return int(self._documents.run("SELECT count(*) FROM documents")[0][0])

    def get(self, number: int, bounds: Bounds | None = None) -> Document:
        id = self.id_of(number)
        rows = self._documents.run("SELECT title, text, metadata, checksum FROM documents WHERE number = ?", [number])
        for title, text, metadata, checksum in rows:
            whole = all(isinstance(part, str) for part in (title, text, metadata))
            if whole and checksum == checksum_of(id, title, text, metadata):
                if bounds is not None:
                    bounds.go_on()
                    bounds.take(len(title) + len(text) + len(metadata))
                return Document(id, text, title, json.loads(metadata))
        raise DamagedError(f"Document {id!r} in {self._documents.file.path} is damaged: {MEND}")

    @cached_property
    def columns(self) -> dict[str, str]:
        """The column of each metadata field."""
        if self._fields is None:
            return {}
        self._fields.verify()
        return {name: column for column, name in self._fields.run("SELECT column, name FROM names")}

    def matching(self, condition: str, values: Sequence[Any], bounds: Bounds | None = None) -> np.ndarray:
        """The numbers of all documents for which an SQL condition over the fields holds."""
        if self._fields is None:  # no document has a field, so that it holds for all of them or for none
            [(holds,)] = self._documents.run(f"SELECT {condition}", values)
            return np.arange(len(self._ends) if holds else 0)
        self._fields.verify()
        return self._fields.numbers(f"SELECT number FROM fields WHERE {condition}", values, bounds or Bounds())


class Database:
    """An immutable SQLite file. It is opened at once and once: a writer may remove its name later."""

    def __init__(self, file: CheckedFile) -> None:
        self.file = file
        address = f"file:{quote(str(file.path.resolve()))}?mode=ro&immutable=1"
        try:
            if file.is_in_memory:
                self._connection = sqlite3.connect(":memory:", check_same_thread=False)
                self._connection.deserialize(file.untouched().tobytes())
            else:
                self._connection = sqlite3.connect(address, uri=True, check_same_thread=False)
        except sqlite3.OperationalError as error:
            if not file.path.exists():  # a writer removed it
                raise FileNotFoundError(ENOENT, str(error), str(file.path)) from error
            raise RepconcError(f"{file.path} cannot be opened ({first_line(error)}).") from error
        self._lock = threading.Lock()

    def run(self, statement: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            with self._lock:
                return self._connection.execute(statement, list(values)).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise RepconcError(f"{self.file.path} cannot be read ({first_line(error)}): {MEND}") from error

    def numbers(self, statement: str, values: Iterable[Any], bounds: Bounds) -> np.ndarray:
        """The whole numbers of the only column, without a Python object for each row."""
        while not self._lock.acquire(timeout=LOCK_SECONDS):  # another search reads
            bounds.go_on()
        try:
            self._connection.set_progress_handler(bounds.stop, STEPS_BETWEEN_LOOKS)
            return np.fromiter((row[0] for row in self._connection.execute(statement, list(values))), np.int64)
        except sqlite3.Error as error:
            if bounds.stop():
                raise StoppedError from error
            raise RepconcError(f"{self.file.path} cannot be read ({first_line(error)}): {MEND}") from error
        finally:
            self._connection.set_progress_handler(None, 0)
            self._lock.release()

    def verify(self) -> None:
        """All blocks, once: for answers in which no row can vouch for itself."""
        self.file.read(0, len(self.file))


def checksum_of(*parts: str) -> int:
    return zlib.crc32(json.dumps(parts).encode())


def hashes_of(ids: Sequence[bytes]) -> np.ndarray:
    digests = b"".join(hashlib.blake2b(id, digest_size=8).digest() for id in ids)
    return np.frombuffer(digests, "<u8")
