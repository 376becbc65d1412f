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

from repconc.errors import RepconcError, first_line
from repconc.indexes.checked import MEND, CheckedArray, CheckedFile, CheckedWriter, FileEntry, entry_of
from repconc.records import Document

ROWS_AT_A_TIME = 10_000
FIELDS = 500
"""Columns that a table of fields has at most."""


class DocumentWriter:
    """Takes documents one after the other; their numbers are 0, 1, 2, ..."""

    def __init__(self, folder: Path, stem: str) -> None:
        self._folder, self._stem = folder, stem
        self._hashes: list[np.ndarray] = []
        self._fields: dict[str, None] = {}
        self._count = 0
        self._ids = CheckedWriter(self._path("ids")).__enter__()
        self._ends = CheckedWriter(self._path("ends")).__enter__()
        self._end = 0
        self._database = _create(self._path("documents"))
        self._database.execute(
            "CREATE TABLE documents (number INTEGER PRIMARY KEY, title TEXT, text TEXT, metadata TEXT, checksum)"
        )

    def __len__(self) -> int:
        return self._count

    def expect(self, fields: Iterable[str]) -> None:
        """Fields of documents that these will be merged with, so that too many are refused now and not then."""
        self._fields.update(dict.fromkeys(fields))

    def add(self, documents: Sequence[Document]) -> None:
        encoded = [document.id.encode() for document in documents]
        ends = self._end + np.cumsum([len(id) for id in encoded], dtype=np.int64)
        self._end = int(ends[-1]) if len(ends) else self._end
        self._ids.write(np.frombuffer(b"".join(encoded), np.uint8))
        self._ends.write(ends.astype("<i8"))
        self._hashes.append(_hashes(encoded))
        rows = []
        for number, document in enumerate(documents, self._count):
            metadata = _as_json(document)
            self._fields.update(dict.fromkeys(name for name, value in document.metadata.items() if _is_plain(value)))
            checksum = _checksum(document.id, document.title, document.text, metadata)
            rows.append((number, document.title, document.text, metadata, checksum))
        if len(self._fields) > FIELDS:
            raise RepconcError(f"The documents have more than {FIELDS} different metadata fields; give them fewer.")
        self._database.executemany("INSERT INTO documents VALUES (?, ?, ?, ?, ?)", rows)
        self._count += len(documents)

    def finish(self) -> dict[str, FileEntry]:
        """The entries of all files, synced."""
        self._ids.__exit__(None, None, None)
        self._ends.__exit__(None, None, None)
        hashes = np.concatenate([np.empty(0, "<u8"), *self._hashes])
        owners = np.argsort(hashes, kind="stable").astype("<u4")
        self._refuse_twins(hashes, owners)
        entries = {"ids": self._ids.entry, "ends": self._ends.entry}
        for name, array in (("hashes", hashes[owners]), ("owners", owners)):
            with CheckedWriter(self._path(name)) as writer:
                writer.write(array)
            entries[name] = writer.entry
        self._database.commit()
        if self._fields:
            entries["fields"] = self._write_fields()
        self._database.close()
        return entries | {"documents": entry_of(self._path("documents"))}

    def _refuse_twins(self, hashes: np.ndarray, owners: np.ndarray) -> None:
        """No id may come twice. Equal hashes are rare, so that only those ids are read again."""
        same = np.flatnonzero(hashes[owners[1:]] == hashes[owners[:-1]])
        if not len(same):
            return
        ends = np.fromfile(self._path("ends"), "<i8")
        content = np.memmap(self._path("ids"), np.uint8, "r")

        def id_of(number: int) -> str:
            return content[ends[number - 1] if number else 0 : ends[number]].tobytes().decode()

        seen: set[str] = set()
        for number in np.unique(owners[np.concatenate([same, same + 1])]).tolist():
            if id_of(number) in seen:
                raise RepconcError(f"The document id {id_of(number)!r} comes twice; ids must be unique.")
            seen.add(id_of(number))

    def _write_fields(self) -> FileEntry:
        """Plain values of the metadata as columns with an index each: a filter is then a search and not a scan."""
        names = list(self._fields)
        database = _create(self._path("fields"))
        database.execute("CREATE TABLE names (column TEXT, name TEXT)")
        columns = [f"field_{place}" for place in range(len(names))]
        database.executemany("INSERT INTO names VALUES (?, ?)", zip(columns, names, strict=True))
        database.execute(f"CREATE TABLE fields (number INTEGER PRIMARY KEY, {', '.join(columns)})")
        places = ", ".join("?" * (len(names) + 1))
        rows = self._database.execute("SELECT number, metadata FROM documents ORDER BY number")
        while group := rows.fetchmany(ROWS_AT_A_TIME):
            values = ((number, json.loads(metadata)) for number, metadata in group)
            database.executemany(
                f"INSERT INTO fields VALUES ({places})",
                ((number, *(_plain(known.get(name)) for name in names)) for number, known in values),
            )
        for column in columns:
            database.execute(f"CREATE INDEX by_{column} ON fields ({column})")
        database.commit()
        database.close()
        return entry_of(self._path("fields"))

    def _path(self, kind: str) -> Path:
        return self._folder / f"{self._stem}.{kind}"


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
        start = int(self._ends.read(number - 1, number)[0]) if number else 0
        return self._ids.read(start, int(self._ends.read(number, number + 1)[0])).tobytes().decode()

    def ids_of(self, numbers: np.ndarray) -> list[str]:
        """Many at once."""
        numbers = numbers.astype(np.int64)
        stops = self._ends.take(numbers)
        starts = np.where(numbers > 0, self._ends.take(np.maximum(numbers - 1, 0)), 0)
        self._ids.touch(starts, stops)
        content = self._ids.untouched()
        pairs = zip(starts.tolist(), stops.tolist(), strict=True)
        return [content[start:stop].tobytes().decode() for start, stop in pairs]

    def ids(self) -> list[str]:
        ends = self._ends.all().tolist()
        content = self._ids.read(0, len(self._ids)).tobytes()
        return [content[start:end].decode() for start, end in zip([0, *ends], ends, strict=False)]

    def hashes(self) -> tuple[np.ndarray, np.ndarray]:
        """The hashes of all ids in ascending order, and whose they are."""
        return self._hashes.all(), self._owners.all()

    def number_of(self, id: str) -> int | None:
        """The last document of this id, or None."""
        wanted = _hashes([id.encode()])[0]
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

    def get(self, number: int) -> Document:
        id = self.id_of(number)
        rows = self._documents.run("SELECT title, text, metadata, checksum FROM documents WHERE number = ?", [number])
        for title, text, metadata, checksum in rows:
            whole = all(isinstance(part, str) for part in (title, text, metadata))
            if whole and checksum == _checksum(id, title, text, metadata):
                return Document(id, text, title, json.loads(metadata))
        raise RepconcError(f"Document {id!r} in {self._documents.file.path} is damaged: {MEND}")

    @cached_property
    def columns(self) -> dict[str, str]:
        """The column of each metadata field."""
        if self._fields is None:
            return {}
        self._fields.verify()
        return {name: column for column, name in self._fields.run("SELECT column, name FROM names")}

    def matching(self, condition: str, values: Sequence[Any]) -> np.ndarray:
        """The numbers of all documents for which an SQL condition over the fields holds."""
        if self._fields is None:  # no document has a field, so that it holds for all of them or for none
            [(holds,)] = self._documents.run(f"SELECT {condition}", values)
            return np.arange(len(self._ends) if holds else 0)
        self._fields.verify()
        return self._fields.numbers(f"SELECT number FROM fields WHERE {condition}", values)


class Database:
    """An immutable SQLite file. It is opened at once and once: a writer may remove its name later."""

    def __init__(self, file: CheckedFile) -> None:
        self.file = file
        address = f"file:{quote(str(file.path.resolve()))}?mode=ro&immutable=1"
        try:
            self._connection = sqlite3.connect(address, uri=True, check_same_thread=False)
        except sqlite3.OperationalError as error:
            raise FileNotFoundError(ENOENT, str(error), str(file.path)) from error
        self._lock = threading.Lock()

    def run(self, statement: str, values: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            with self._lock:
                return self._connection.execute(statement, list(values)).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise RepconcError(f"{self.file.path} cannot be read ({first_line(error)}): {MEND}") from error

    def numbers(self, statement: str, values: Iterable[Any] = ()) -> np.ndarray:
        """The whole numbers of the only column, without a Python object for each row."""
        try:
            with self._lock:
                return np.fromiter((row[0] for row in self._connection.execute(statement, list(values))), np.int64)
        except sqlite3.Error as error:
            raise RepconcError(f"{self.file.path} cannot be read ({first_line(error)}): {MEND}") from error

    def verify(self) -> None:
        """All blocks, once: for answers in which no row can vouch for itself."""
        self.file.read(0, len(self.file))


def _create(path: Path) -> sqlite3.Connection:
    """A new database that is synced by us at the end, and not by SQLite on the way."""
    path.touch(exist_ok=False)
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = OFF")
    database.execute("PRAGMA synchronous = OFF")
    return database


def _as_json(document: Document) -> str:
    try:
        return json.dumps(dict(document.metadata), ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError) as error:
        raise RepconcError(f"The metadata of document {document.id!r} cannot be kept: {first_line(error)}") from error


def _checksum(*parts: str) -> int:
    return zlib.crc32(json.dumps(parts).encode())


def _hashes(ids: Sequence[bytes]) -> np.ndarray:
    digests = b"".join(hashlib.blake2b(id, digest_size=8).digest() for id in ids)
    return np.frombuffer(digests, "<u8")


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float | bool)


def _plain(value: Any) -> Any:
    """What a column can hold; numbers beyond 64 bits it cannot."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return None
    return value if _is_plain(value) else None
