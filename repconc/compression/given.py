"""What a user has, opened and checked: vectors of documents, and perhaps their texts, queries, and labels.

One pass over all documents says whether they can be used, before anything is trained or written. What is learned from
is a sample of them that fits into memory: those that are marked as relevant, and random ones.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from repconc.compression.matrices import Matrix, open_matrix
from repconc.compression.rows import Documents, Vector, brought, listed, numbers, records_of, same_order
from repconc.data.beir import read_qrels
from repconc.errors import RepconcError
from repconc.indexes.document_writer import metadata_as_json
from repconc.maps import unit
from repconc.packages import Progress
from repconc.records import Document, Qrels

SAMPLE = 131_072
"""Documents that are learned from and measured with; all where there are fewer."""
NEARLY_ONE = 1e-3
SHORTEST, LONGEST = 1e-3, 30_000
"""What the longest vector may have as its length: centroids are kept in half precision."""


@dataclass(frozen=True)
class Given:
    """What there is, opened."""

    matrix: Matrix
    documents: Documents
    named: bool
    """Whether the documents have ids of their own, and are not called 0, 1, 2, ..."""
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
    vectors: Vector,
    *,
    name: str | None = None,
    ids: Path | str | Sequence[str] | None = None,
    documents: Path | str | None = None,
    queries: Vector | None = None,
    query_name: str | None = None,
    query_ids: Path | str | Sequence[str] | None = None,
    qrels: Path | str | Mapping[str, Mapping[str, int]] | None = None,
) -> Given:
    """Open it all; shapes and counts must fit together. Without ids, rows are called 0, 1, 2, ..."""
    matrix = open_matrix(vectors, name, "the array of documents")
    if ids is not None and documents is not None:
        raise RepconcError("Give ids or documents, not both: documents bring their ids.")
    if queries is None and (qrels is not None or query_ids is not None):
        raise RepconcError("There are labels or ids of queries but no queries; give the query vectors too.")
    own = listed(ids) if ids is not None else brought(vectors)
    named = own is not None or documents is not None
    if documents is None:
        records = records_of(vectors, own or numbers(len(matrix)))
    else:
        records = same_order(Path(documents), own)
    if queries is None:
        return Given(matrix, records, named)
    asked = open_matrix(queries, query_name, "the array of queries")
    if asked.dimension != matrix.dimension:
        raise RepconcError(
            f"The documents have {matrix.dimension} dimensions and the queries {asked.dimension}: "
            "both must come from the same encoder."
        )
    given_ids = listed(query_ids) if query_ids is not None else brought(queries)
    names = list((given_ids or numbers(len(asked)))())
    if len(names) != len(asked) or len(set(names)) != len(names):
        raise RepconcError(
            f"There are {len(set(names))} different ids for {len(asked)} query vectors; each row needs its own."
        )
    return Given(matrix, records, named, asked, names, None if qrels is None else _judgements(qrels))


def look_through(given: Given, wanted: set[str], cosine: bool | None, seed: int, progress: Progress) -> Sample:
    """The one pass: every row is a vector, every id is another; what is sampled is kept, and all that is `wanted`.

    cosine: compare directions; None: where all vectors have length 1 already, which is then kept.
    """
    count = len(given.matrix)
    chosen = np.zeros(count, bool)
    chosen[np.random.default_rng(seed).permutation(count)[:SAMPLE]] = True
    kept = np.empty((min(count, SAMPLE + len(wanted)), given.matrix.dimension), np.float32)
    ids: list[str] = []
    hashes = np.empty(count, np.int64)
    digest, start, of_length_one, zero, longest = Digest(), 0, True, None, (0.0, 0)
    for group, block in paired(given):
        lengths = lengths_of(block)
        longest = max(longest, (float(lengths.max()), start + int(lengths.argmax())), key=lambda pair: pair[0])
        if zero is None and not lengths.all():
            zero = start + int(np.flatnonzero(lengths == 0)[0])
        of_length_one &= bool((abs(lengths[lengths > 0] - 1) < NEARLY_ONE).all())
        hashes[start : start + len(block)] = [hash(document.id) for document in group]
        keep = chosen[start : start + len(block)] | np.array([document.id in wanted for document in group])
        own = [document.id for document, taken in zip(group, keep.tolist(), strict=True) if taken]
        if len(ids) + len(own) <= len(kept):  # else an id is there twice, which is said below
            kept[len(ids) : len(ids) + len(own)] = block[keep]
        ids += own
        for document in group:
            if document.metadata:
                metadata_as_json(document)  # said now, not when all is trained
        digest.add(group, block)
        start += len(block)
        progress(start, count)
    _refuse_twice(given, hashes)
    if missing := wanted - set(ids):
        raise RepconcError(f"The labels speak of the document {sorted(missing)[0]!r}, which has no vector.")
    scaled = of_length_one if cosine is None else cosine
    if scaled and zero is not None:
        raise RepconcError(
            f"Row {zero} of {given.matrix.source} is all zeros and has no direction: leave it out, or compare by inner "
            "product (--metric ip)."
        )
    refuse_length(*longest, given.matrix.source, scaled)
    sample = kept[: len(ids)]
    return Sample(ids, unit(sample) if scaled else sample, scaled, digest.hexdigest())


def lengths_of(vectors: np.ndarray) -> np.ndarray:
    """[N]; infinite where float32 cannot hold the square."""
    with np.errstate(over="ignore"):
        return np.asarray(np.linalg.norm(vectors, axis=1))


def refuse_length(length: float, row: int, source: str, scaled: bool) -> None:
    """length: of the longest vector, which stands in this row; scaled: all will be brought to length 1."""
    if np.isinf(length) or not (scaled or SHORTEST <= length <= LONGEST):
        raise RepconcError(
            f"Row {row} of {source} is the longest vector, with a length of {length:.3g}: scale all of them so that it "
            f"has a length of {SHORTEST} to {LONGEST:,}."
        )


class Digest:
    """Of all vectors and documents, a group at a time."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, group: list[Document], block: np.ndarray) -> None:
        self._hash.update(block.data)
        self._hash.update(repr(group).encode())

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


def paired(given: Given) -> Iterator[tuple[list[Document], np.ndarray]]:
    """Documents with their vectors [n, D], a block at a time."""
    reader, seen = given.documents(), 0
    for block in given.matrix.blocks():
        group = list(islice(reader, len(block)))
        if len(group) < len(block):
            raise RepconcError(
                f"There are {seen + len(group)} documents for {len(given.matrix)} vectors; each row needs its own."
            )
        seen += len(block)
        yield group, block
    if next(reader, None) is not None:
        raise RepconcError(f"There are more than {seen} documents for {seen} vectors; each needs its own row.")


def _judgements(qrels: Path | str | Mapping[str, Mapping[str, int]]) -> Qrels:
    if isinstance(qrels, Path | str):
        judged = read_qrels(Path(qrels))
    else:
        judged = {str(query): {str(id): int(grade) for id, grade in row.items()} for query, row in qrels.items()}
    if not any(grade > 0 for row in judged.values() for grade in row.values()):
        raise RepconcError("The labels mark no document as relevant.")
    return judged


def _refuse_twice(given: Given, hashes: np.ndarray) -> None:
    """Eight bytes an id are held, not the ids; where two agree, the ids themselves are compared."""
    values, counts = np.unique(hashes, return_counts=True)
    suspects = set(values[counts > 1].tolist())
    if not suspects:
        return
    seen = set()
    for document in given.documents():
        if hash(document.id) in suspects:
            if document.id in seen:
                raise RepconcError(f"The id {document.id!r} is there twice; each document needs its own.")
            seen.add(document.id)
