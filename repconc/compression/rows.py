"""Which document is which row of the vectors: ids and texts from beside them, or from the file that holds them."""

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from repconc.compression.matrices import ROWS_AT_A_TIME, parquet_batches
from repconc.data.beir import read_documents
from repconc.errors import RepconcError, first_line, import_extra
from repconc.lines import is_id, read_lines, refuse
from repconc.records import Document
from repconc.vectors import Vectors

HALF = re.compile("[\ud800-\udfff]")
"""Half of a character, which no file can hold."""

Vector = Path | str | np.ndarray
Ids = Callable[[], Iterator[str]]
"""All ids in the order of the vectors; asked for once a pass."""
Documents = Callable[[], Iterator[Document]]


def numbers(count: int) -> Ids:
    return lambda: map(str, range(count))


def listed(ids: Path | str | Sequence[str]) -> Ids:
    """Ids from a file with one a line, or as they were given."""
    if isinstance(ids, Path | str):
        path = Path(ids)
        return lambda: (_printable(line, row, path) for row, (_, line) in enumerate(read_lines(path)))
    held = tuple(ids)  # it is read several times
    return lambda: (_printable(id, row, "the list of ids") for row, id in enumerate(held))


def brought(vectors: Vector) -> Ids | None:
    """The ids that a file of vectors has itself; None where it has none."""
    if not isinstance(vectors, Path | str):
        return None
    path = Path(vectors)
    if path.is_dir():
        every = chain.from_iterable
        return lambda: (_printable(id, row, path) for row, id in enumerate(every(Vectors(path).id_blocks())))
    if path.suffix != ".parquet":
        return None
    column = next((name for name in ("_id", "id") if name in _columns(path)), None)
    if column is None:
        return None
    return lambda: (_printable(row[column], number, path) for number, row in enumerate(_rows(path, [column])))


def records_of(vectors: Vector, ids: Ids) -> Documents:
    """Documents of these ids; columns of a parquet file that are called text and title are taken as such."""
    texts: list[str] = []
    if isinstance(vectors, Path | str) and Path(vectors).suffix == ".parquet":
        texts = [name for name in ("text", "title") if name in _columns(Path(vectors))]
    if not texts:
        return lambda: (Document(id, "") for id in ids())

    def read() -> Iterator[Document]:
        rows = _rows(Path(str(vectors)), texts)
        for id in ids():  # where there are more or fewer ids than rows, whoever reads both says so
            row = next(rows, {})
            yield Document(id, str(row.get("text") or ""), str(row.get("title") or ""))

    return read


def same_order(path: Path, own: Ids | None) -> Documents:
    """Documents of JSON lines; where the vectors have ids too, they must agree."""

    def read() -> Iterator[Document]:
        names = own() if own is not None else None
        for place, document in read_documents(path, refuse):
            name = next(names, None) if names is not None else document.id
            if name != document.id:
                raise RepconcError(f"{place}: the document is {document.id!r} and the vector of that row {name!r}.")
            yield document

    return read


def _columns(path: Path) -> set[str]:
    """Those that hold one value a row."""
    arrow, parquet = import_extra("pyarrow", extra="parquet"), import_extra("pyarrow.parquet", extra="parquet")
    with parquet.ParquetFile(path, memory_map=True) as file:
        return {field.name for field in file.schema_arrow if not arrow.types.is_nested(field.type)}


def _rows(path: Path, columns: list[str]) -> Iterator[dict[str, object]]:
    try:
        for batch in parquet_batches(path, columns, ROWS_AT_A_TIME):
            for row in batch.to_pylist():
                yield {name: value.decode() if isinstance(value, bytes) else value for name, value in row.items()}
    except UnicodeDecodeError as error:
        raise RepconcError(f"{path} holds text that is not UTF-8 ({first_line(error)}); write it again.") from error


def _printable(id: object, row: int, source: object) -> str:
    if id is None or not is_id(str(id)) or HALF.search(str(id)):
        raise RepconcError(f"The id in row {row} of {source} is missing, empty or not printable.")
    return str(id)
