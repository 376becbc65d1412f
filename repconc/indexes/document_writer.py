"""Writes the files of documents.py: ids and texts in one pass, look-ups and fields at the end."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from repconc.errors import DocumentError, first_line
from repconc.indexes.checked import CheckedWriter, FileEntry, entry_of, write_checked
from repconc.indexes.documents import checksum_of, hashes_of
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
        self._ids = CheckedWriter(self._path("ids"))
        self._ends = CheckedWriter(self._path("ends"))
        self._end = 0
        self._database = _create(self._path("documents"))
        self._database.execute(
            "CREATE TABLE documents (number INTEGER PRIMARY KEY, title TEXT, text TEXT, metadata TEXT, checksum)"
        )

    def __len__(self) -> int:
        return self._count

    def expect(self, fields: Iterable[str]) -> None:
        """Fields of other documents, which get columns too: too many are refused now, not when segments are merged."""
        self._fields.update(dict.fromkeys(fields))

    def add(self, documents: Sequence[Document]) -> None:
        for document in documents:
            if (
                not all(isinstance(part, str) for part in (document.id, document.title, document.text))
                or not document.id
            ):
                raise DocumentError(f"Document {document.id!r} needs an id, a title and a text that are strings.")
        encoded = [document.id.encode() for document in documents]
        ends = self._end + np.cumsum([len(id) for id in encoded], dtype=np.int64)
        self._end = int(ends[-1]) if len(ends) else self._end
        self._ids.write(np.frombuffer(b"".join(encoded), np.uint8))
        self._ends.write(ends.astype("<i8"))
        self._hashes.append(hashes_of(encoded))
        rows = []
        for number, document in enumerate(documents, self._count):
            metadata = metadata_as_json(document)
            self._fields.update(dict.fromkeys(name for name, value in document.metadata.items() if _is_plain(value)))
            checksum = checksum_of(document.id, document.title, document.text, metadata)
            rows.append((number, document.title, document.text, metadata, checksum))
        if len(self._fields) > FIELDS:
            raise DocumentError(f"The documents have more than {FIELDS} different metadata fields; give them fewer.")
        self._database.executemany("INSERT INTO documents VALUES (?, ?, ?, ?, ?)", rows)
        self._count += len(documents)

    def finish(self) -> dict[str, FileEntry]:
        """The entries of all files."""
        self._ids.close()
        self._ends.close()
        hashes = np.concatenate([np.empty(0, "<u8"), *self._hashes])
        owners = np.argsort(hashes, kind="stable").astype("<u4")
        self._refuse_twins(hashes, owners)
        entries = {"ids": self._ids.entry, "ends": self._ends.entry}
        for name, array in (("hashes", hashes[owners]), ("owners", owners)):
            entries[name] = write_checked(self._path(name), array)
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
                raise DocumentError(f"The document id {id_of(number)!r} comes twice; ids must be unique.")
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


def _create(path: Path) -> sqlite3.Connection:
    """A new database that is synced by us at the end, and not by SQLite on the way."""
    path.touch(exist_ok=False)
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = OFF")
    database.execute("PRAGMA synchronous = OFF")
    return database


def metadata_as_json(document: Document) -> str:
    try:
        return json.dumps(dict(document.metadata), ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError) as error:
        raise DocumentError(f"The metadata of document {document.id!r} cannot be kept: {first_line(error)}") from error


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float | bool)


def _plain(value: Any) -> Any:
    """What a column can hold; numbers beyond 64 bits it cannot."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return None
    return value if _is_plain(value) else None
