"""Vectors in the files that people have them in: a matrix that is read a block at a time.

    .npy                    mapped
    .npz                    read through its zip
    .safetensors            mapped
    .parquet                a column of lists of numbers
    a folder                what `repconc encode` made

Nothing is loaded as a whole, and nothing that lies in a file is ever run.
"""

import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from repconc.errors import RepconcError, first_line, import_extra
from repconc.vectors import Vectors

ROWS_AT_A_TIME = 1 << 14
NUMBERS = "iuf"  # kinds of numpy that are numbers
BROKEN = (zipfile.BadZipFile, zlib.error, ValueError, EOFError, tokenize.TokenError, SyntaxError)
"""What numpy's formats raise where a file is cut or damaged."""


@dataclass(frozen=True)
class Matrix:
    """N vectors of D dimensions."""

    source: str
    """What they are called in a sentence."""
    shape: tuple[int, int]
    read: Callable[[int], Iterator[np.ndarray]]
    """All rows in order, at most so many at a time, as they are in the file."""

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def dimension(self) -> int:
        return self.shape[1]

    def blocks(self, size: int = ROWS_AT_A_TIME) -> Iterator[np.ndarray]:
        """[n, D] float32 at a time; a row that holds NaN or an infinite value is named."""
        start = 0
        for part in self.read(size):
            with np.errstate(over="ignore"):
                block = np.ascontiguousarray(part, dtype=np.float32)
            broken = np.flatnonzero(~np.isfinite(block).all(axis=1))
            if broken.size:
                raise RepconcError(
                    f"Row {start + broken[0]} of {self.source} holds NaN, an infinite value, or one that is too "
                    "large for float32; repair it or leave it out."
                )
            yield block
            start += len(block)
        if start != len(self):
            raise RepconcError(f"{self.source} holds {start} rows and says that it has {len(self)}.")

    def rows(self, numbers: np.ndarray) -> np.ndarray:
        """Some rows [n, D] by their ascending numbers, in one pass."""
        parts, start = [np.empty((0, self.dimension), np.float32)], 0
        for block in self.blocks():
            first, last = np.searchsorted(numbers, [start, start + len(block)])
            parts.append(block[numbers[first:last] - start])
            start += len(block)
        return np.concatenate(parts)


def open_matrix(source: Path | str | np.ndarray, name: str | None = None, called: str = "the array") -> Matrix:
    """A file or an array of vectors.

    name: of the array or the column, where a file holds several; called: what an array is called in a sentence.
    """
    if not isinstance(source, Path | str):
        return _of_array(_as_array(source, called), called)
    path = Path(source)
    if path.is_dir():
        _refuse_name(path, name)
        return _of_folder(Vectors(path))
    if not path.exists():
        raise RepconcError(f"{path} is not there: give a file of vectors, or a folder that 'repconc encode' made.")
    reader = {".npy": _of_npy, ".npz": _of_npz, ".safetensors": _of_safetensors, ".parquet": _of_parquet}
    if path.suffix not in reader:
        raise RepconcError(f"{path} is none of {', '.join(reader)}; save the vectors as one of them.")
    return reader[path.suffix](path, name)


def _as_array(source: Any, called: str) -> np.ndarray:
    try:
        return np.asarray(source)
    except (ValueError, TypeError, RuntimeError) as error:  # rows of different lengths, tensors that learn
        raise RepconcError(f"{called} is no matrix of numbers [N, D]: {first_line(error)}") from error


def _of_array(array: np.ndarray, source: str) -> Matrix:
    _check(array.shape, array.dtype, source)

    def read(size: int) -> Iterator[np.ndarray]:
        for start in range(0, len(array), size):
            yield array[start : start + size]

    return Matrix(source, (array.shape[0], array.shape[1]), read)


def _of_folder(vectors: Vectors) -> Matrix:
    vectors.verify()

    def read(size: int) -> Iterator[np.ndarray]:
        for block in vectors.blocks():
            for start in range(0, len(block), size):
                yield block[start : start + size]

    return Matrix(str(vectors.folder), (len(vectors), vectors.dimension), read)


def _of_npy(path: Path, name: str | None) -> Matrix:
    _refuse_name(path, name)
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (*BROKEN, OSError) as error:
        raise RepconcError(f"{path} is no array of numbers: {first_line(error)}") from error
    return _of_array(array, str(path))


def _of_npz(path: Path, name: str | None) -> Matrix:
    """Rows come through the zip one after the other: also a compressed array is never whole in memory."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [entry.removesuffix(".npy") for entry in archive.namelist() if entry.endswith(".npy")]
            chosen = _chosen(path, names, name, "array")
            with archive.open(f"{chosen}.npy") as file:
                shape, by_columns, dtype = _header(file)
    except (*BROKEN, RuntimeError, NotImplementedError) as error:
        raise RepconcError(f"{path} is no archive of arrays: {first_line(error)}") from error
    source = f"{path} ({chosen})"
    _check(shape, dtype, source)
    if by_columns:
        raise RepconcError(f"{source} is stored by columns (Fortran order); save np.ascontiguousarray of it.")

    def read(size: int) -> Iterator[np.ndarray]:
        width = shape[1] * dtype.itemsize
        with zipfile.ZipFile(path) as archive, archive.open(f"{chosen}.npy") as file:
            _header(file)
            try:
                for start in range(0, shape[0], size):
                    content = file.read(min(size, shape[0] - start) * width)
                    yield np.frombuffer(content, dtype).reshape(-1, shape[1])
            except BROKEN as error:
                raise RepconcError(f"{source} is cut or damaged: {first_line(error)}") from error

    return Matrix(source, (shape[0], shape[1]), read)


def _header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return reader(file)


def _of_safetensors(path: Path, name: str | None) -> Matrix:
    library = import_extra("safetensors", extra="train")
    try:
        with library.safe_open(path, framework="np") as file:
            chosen = _chosen(path, list(file.keys()), name, "tensor")
            part = file.get_slice(chosen)
            shape, kind = tuple(part.get_shape()), part.get_dtype()
    except library.SafetensorError as error:
        raise RepconcError(f"{path} is no file of safetensors: {first_line(error)}") from error
    source = f"{path} ({chosen})"
    if kind not in {"F64", "F32", "F16", "I8", "U8", "I16", "I32", "I64"}:
        raise RepconcError(f"{source} holds {kind}; save it as float32 or float16.")
    _check(shape, np.dtype(np.float32), source)

    def read(size: int) -> Iterator[np.ndarray]:
        with library.safe_open(path, framework="np") as file:
            part = file.get_slice(chosen)
            for start in range(0, shape[0], size):
                yield part[start : min(start + size, shape[0])]

    return Matrix(source, (shape[0], shape[1]), read)


def _of_parquet(path: Path, name: str | None) -> Matrix:
    arrow, parquet = import_extra("pyarrow", extra="parquet"), import_extra("pyarrow.parquet", extra="parquet")
    try:
        file = parquet.ParquetFile(path, memory_map=True)
    except (arrow.ArrowException, OSError) as error:
        raise RepconcError(f"{path} is no parquet file: {first_line(error)}") from error
    schema = file.schema_arrow
    lists = (arrow.types.is_list, arrow.types.is_large_list, arrow.types.is_fixed_size_list)
    columns = [field.name for field in schema if any(is_list(field.type) for is_list in lists)]
    chosen = _chosen(path, columns, name, "column of lists")
    source = f"{path} ({chosen})"
    if schema.get_field_index(chosen) < 0:
        raise RepconcError(f"{path} holds several columns called {chosen!r}; rename all but one.")
    inner = schema.field(chosen).type.value_type
    if not (arrow.types.is_floating(inner) or arrow.types.is_integer(inner)):
        raise RepconcError(f"{source} holds lists of {inner}, not of numbers.")

    def read(size: int) -> Iterator[np.ndarray]:
        done = 0
        for batch in parquet_batches(path, [chosen], size):
            column, numbers = batch.column(0), batch.column(0).flatten()
            lengths = column.value_lengths().to_numpy(zero_copy_only=False)
            odd = np.flatnonzero(~(lengths == lengths[0]) | np.isnan(lengths))
            if not len(odd) and numbers.null_count:
                odd = np.flatnonzero(numbers.is_null().to_numpy(zero_copy_only=False)) // int(lengths[0])
            if len(odd):
                raise RepconcError(
                    f"Row {done + odd[0]} of {source} is missing, or not as long as the others, or has a gap; repair "
                    "it or leave it out."
                )
            yield numbers.to_numpy(zero_copy_only=False).reshape(len(column), -1)
            done += len(column)

    rows = file.metadata.num_rows
    first = next(read(1), np.empty((0, 0)))
    _check((rows, first.shape[1]), np.dtype(np.float32), source)
    return Matrix(source, (rows, first.shape[1]), _of_one_width(read, first.shape[1], source))


def parquet_batches(path: Path, columns: list[str], size: int) -> Iterator[Any]:
    """Some columns of a parquet file, at most so many rows at a time."""
    arrow, parquet = import_extra("pyarrow", extra="parquet"), import_extra("pyarrow.parquet", extra="parquet")
    try:
        with parquet.ParquetFile(path, memory_map=True) as file:  # else a whole column of a row group is in memory
            yield from file.iter_batches(size, columns=columns)
    except (arrow.ArrowException, OSError) as error:
        raise RepconcError(f"{path} is cut or damaged: {first_line(error)}; write it again.") from error


def _of_one_width(
    read: Callable[[int], Iterator[np.ndarray]], width: int, source: str
) -> Callable[[int], Iterator[np.ndarray]]:
    def checked(size: int) -> Iterator[np.ndarray]:
        for block in read(size):
            if block.shape[1] != width:
                raise RepconcError(f"{source} holds vectors of {width} and of {block.shape[1]} numbers.")
            yield block

    return checked


def _chosen(path: Path, names: list[str], name: str | None, what: str) -> str:
    if name in names:
        return str(name)
    known = ", ".join(names) or "none"
    if name is not None or len(names) != 1:
        raise RepconcError(f"{path} holds these: {known}; name the {what} with the vectors.")
    return names[0]


def _refuse_name(path: Path, name: str | None) -> None:
    if name is not None:
        raise RepconcError(f"{path} holds one array, which has no name; leave out {name!r}.")


def _check(shape: tuple[int, ...], dtype: "np.dtype[Any]", source: str) -> None:
    if len(shape) != 2 or dtype.kind not in NUMBERS:
        raise RepconcError(f"{source} has the shape {shape} and holds {dtype}; a matrix of numbers [N, D] is needed.")
    if not shape[0] or not shape[1]:
        raise RepconcError(f"{source} is empty: its shape is {shape}.")
