"""What a user has, opened and checked: vectors of documents, and perhaps their texts, queries, and labels.

One pass over all documents says whether they can be used, before anything is trained or written. What is learned from
is a sample of them that fits into memory: those that are judged, and random ones.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from repconc.compression.matrices import Matrix, open_matrix
from repconc.data.beir import read_documents, read_qrels
from repconc.errors import RepconcError, import_extra
from repconc.lines import is_id, read_lines, refuse
from repconc.maps import unit
from repconc.packages import Progress
from repconc.records import Document, Qrels
from repconc.vectors import Vectors

SAMPLE = 131_072
"""Documents that are learned from and measured with; all where there are fewer."""
QUERIES = 100_000
NEARLY_ONE = 1e-3

Documents = Callable[[], Iterator[Document]]
"""All documents in the order of their vectors; asked for once a pass."""


@dataclass(frozen=True)
class Given:
    """What there is, opened."""

    matrix: Matrix
    documents: Documents
    queries: Matrix | None = None
    query_ids: Sequence[str] = ()
    qrels: Qrels | None = None


@dataclass(frozen=True)
class Sample:
    """What was seen in a pass over the documents."""

    ids: list[str]  # of the sample
    vectors: np.ndarray  # [n, D], of length 1 where they are compared by cosine
    unit: bool
    digest: str
    """Of all vectors and ids: a run goes on only with the same."""


def open_given(
    vectors: Path | str | np.ndarray,
    *,
    name: str | None = None,
    ids: Path | str | Sequence[str] | None = None,
    documents: Path | str | None = None,
    queries: Path | str | np.ndarray | None = None,
    query_ids: Path | str | Sequence[str] | None = None,
    qrels: Path | str | Mapping[str, Mapping[str, int]] | None = None,
) -> Given:
    """Open it all; shapes and counts must fit together. Without ids, rows are called 0, 1, 2, ..."""
    matrix = open_matrix(vectors, name)
    if ids is not None and documents is not None:
        raise RepconcError("Give ids or documents, not both: documents bring their ids.")
    if qrels is not None and queries is None:
        raise RepconcError("There are labels but no queries that they speak of; give the query vectors too.")
    if query_ids is not None and queries is None:
        raise RepconcError("There are ids of queries but no query vectors.")
    asked = None if queries is None else open_matrix(queries)
    if asked is not None and asked.dimension != matrix.dimension:
        raise RepconcError(
            f"The documents have {matrix.dimension} dimensions and the queries {asked.dimension}: "
            "both must come from the same encoder."
        )
    names: list[str] = []
    if asked is not None:
        names = _listed(query_ids) if query_ids is not None else list(map(str, range(len(asked))))
        if len(names) != len(asked) or len(set(names)) != len(names):
            raise RepconcError(f"There are {len(set(names))} different ids for {len(asked)} query vectors.")
    judged = None if qrels is None else _judgements(qrels)
    return Given(matrix, _records(matrix, vectors, ids, documents), asked, names, judged)


def look_through(given: Given, cosine: bool | None, seed: int, progress: Progress) -> Sample:
    """The one pass: every row is a vector, every id is another; what is sampled is kept.

    cosine: compare directions; None: where all vectors have length 1 already, which is then kept.
    """
    wanted = {id for grades in (given.qrels or {}).values() for id in grades}
    count = len(given.matrix)
    chosen = np.zeros(count, bool)
    chosen[np.random.default_rng(seed).permutation(count)[:SAMPLE]] = True
    ids, parts, hashes = [], [], np.empty(count, np.uint64)
    digest, start, of_length_one = hashlib.sha256(), 0, True
    for group, block in paired(given):
        lengths = np.linalg.norm(block, axis=1)
        if cosine is not False and not lengths.all():
            of_length_one = False
            if cosine:
                row = start + int(np.flatnonzero(lengths == 0)[0])
                raise RepconcError(
                    f"Row {row} of {given.matrix.source} is all zeros and has no direction: leave it out, or compare "
                    "by inner product."
                )
        of_length_one &= bool((abs(lengths - 1) < NEARLY_ONE).all())
        hashes[start : start + len(block)] = [_hash(document.id) for document in group]
        keep = chosen[start : start + len(block)] | np.array([document.id in wanted for document in group])
        ids += [document.id for document, kept in zip(group, keep.tolist(), strict=True) if kept]
        parts.append(block[keep])
        digest.update(block.data)
        digest.update("\n".join(document.id for document in group).encode())
        start += len(block)
        progress(start, count)
    _refuse_twice(given, hashes)
    if missing := wanted - set(ids):
        raise RepconcError(f"The labels speak of the document {sorted(missing)[0]!r}, which has no vector.")
    scaled = of_length_one if cosine is None else cosine
    sample = np.concatenate(parts)
    return Sample(ids, unit(sample) if scaled else sample, scaled, digest.hexdigest())


def paired(given: Given) -> Iterator[tuple[list[Document], np.ndarray]]:
    """Documents with their vectors [n, D], a block at a time."""
    reader, seen = given.documents(), 0
    for block in given.matrix.blocks():
        group = list(islice(reader, len(block)))
        if len(group) < len(block):
            raise RepconcError(f"There are {seen + len(group)} documents for {len(given.matrix)} vectors.")
        seen += len(block)
        yield group, block
    if next(reader, None) is not None:
        raise RepconcError(f"There are more than {seen} documents for {len(given.matrix)} vectors.")


def _records(matrix: Matrix, vectors: object, ids: object, documents: Path | str | None) -> Documents:
    if documents is not None:
        path = Path(documents)
        return lambda: (document for _, document in read_documents(path, refuse))
    if ids is not None:
        names = _listed(ids)
        return lambda: (Document(id, "") for id in names)
    if isinstance(vectors, Path | str) and Path(vectors).is_dir():
        return lambda: (Document(id, "") for block in Vectors(vectors).id_blocks() for id in block)
    if isinstance(vectors, Path | str) and Path(vectors).suffix == ".parquet":
        return _parquet_records(Path(vectors), len(matrix))
    return lambda: (Document(str(number), "") for number in range(len(matrix)))


def _parquet_records(path: Path, count: int) -> Documents:
    """Columns that are called id (or _id), text and title are taken as such."""
    parquet = import_extra("pyarrow.parquet", extra="parquet")
    columns = set(parquet.ParquetFile(path).schema_arrow.names)
    own = next((name for name in ("_id", "id") if name in columns), None)
    texts = [name for name in ("text", "title") if name in columns]

    def read() -> Iterator[Document]:
        number = 0
        if own is None and not texts:
            yield from (Document(str(number), "") for number in range(count))
            return
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(columns=[*([own] if own else []), *texts]):
                for row in batch.to_pylist():
                    id = str(number if own is None else row[own])
                    if not is_id(id):
                        raise RepconcError(f"Row {number} of {path} has no id of printable characters.")
                    yield Document(id, str(row.get("text") or ""), str(row.get("title") or ""))
                    number += 1

    return read


def _listed(ids: object) -> list[str]:
    """Ids from a file with one a line, or as they were given."""
    if isinstance(ids, Path | str):
        names = [line for _, line in read_lines(Path(ids))]
    else:
        names = [str(id) for id in ids]  # type: ignore[attr-defined]
    if bad := [number for number, id in enumerate(names) if not is_id(id)]:
        raise RepconcError(f"The id in row {bad[0]} is empty or not printable.")
    return names


def _judgements(qrels: Path | str | Mapping[str, Mapping[str, int]]) -> Qrels:
    judged = read_qrels(Path(qrels)) if isinstance(qrels, Path | str) else {q: dict(row) for q, row in qrels.items()}
    if not any(grade > 0 for row in judged.values() for grade in row.values()):
        raise RepconcError("The labels mark no document as relevant.")
    return judged


def _hash(id: str) -> int:
    return int.from_bytes(hashlib.blake2b(id.encode(), digest_size=8).digest())


def _refuse_twice(given: Given, hashes: np.ndarray) -> None:
    """Eight bytes an id are held, not the ids; where two agree, the ids themselves are compared."""
    values, counts = np.unique(hashes, return_counts=True)
    suspects = set(values[counts > 1].tolist())
    if not suspects:
        return
    seen = set()
    for document in given.documents():
        if _hash(document.id) in suspects:
            if document.id in seen:
                raise RepconcError(f"The id {document.id!r} is there twice; each document needs its own.")
            seen.add(document.id)
