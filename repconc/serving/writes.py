"""A batch of writes -> one commit. What was acknowledged is on the disk.

Writes that arrive together are brought into their final state, document by document, and written with one manifest; the
answers say what each of them would have done alone.
"""

import errno
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from repconc.errors import RepconcError, ReplacedError, first_line
from repconc.indexes.ivf import Index
from repconc.indexes.queries import read_queries
from repconc.indexes.writing import Changes
from repconc.records import Document
from repconc.serving.refusals import Refusal, invalid
from repconc.serving.scribe import Scribe
from repconc.serving.snapshot import Snapshot

log = logging.getLogger("repconc.serving")


class Upsert(NamedTuple):
    """Documents to add or to replace, and their vectors [n, D] where they are given."""

    documents: Sequence[Document]
    vectors: np.ndarray | None

    @property
    def weight(self) -> int:
        return len(self.documents)


class Removal(NamedTuple):
    """A document to remove."""

    id: str

    @property
    def weight(self) -> int:
        return 1


Change = Upsert | Removal
EncodeDocuments = Callable[[Snapshot, Sequence[str]], np.ndarray]


@dataclass
class Plan:
    """Where a batch of writes leads to."""

    outcomes: list[Changes] = field(default_factory=list)
    documents: dict[str, tuple[Document, np.ndarray | None]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)


def plan_of(index: Index, changes: Sequence[Change]) -> Plan:
    """The final state of each document, and what each write does when they are done one after the other."""
    plan = Plan()

    def is_there(id: str) -> bool:
        return id in plan.documents or (id not in plan.gone and id in index)

    for change in changes:
        if isinstance(change, Removal):
            plan.outcomes.append(Changes(removed=int(is_there(change.id))))
            plan.documents.pop(change.id, None)
            plan.gone.add(change.id)
            continue
        replaced = sum(is_there(document.id) for document in change.documents)
        plan.outcomes.append(Changes(added=len(change.documents) - replaced, replaced=replaced))
        for place, document in enumerate(change.documents):
            plan.gone.discard(document.id)
            plan.documents[document.id] = document, None if change.vectors is None else change.vectors[place]
    return plan


def commit(
    snapshot: Snapshot, served: Path, changes: Sequence[Change], encode: EncodeDocuments, scribe: Scribe
) -> tuple[list[Changes], int]:
    """Write them all, or none; gives what each did, and the version of the index that holds it.

    served: the path that the index is known by, which may be a link.
    """
    index, plan = snapshot.index, plan_of(snapshot.index, changes)
    coded = list(_coded(snapshot, list(plan.documents.values()), encode))
    try:
        version = scribe.write(index, served, coded, plan.gone)
    except ReplacedError as error:
        raise _replaced() from error
    if served.resolve() != index.folder:  # written into what nobody asks any more
        raise _replaced()
    return plan.outcomes, version


def _coded(
    snapshot: Snapshot, documents: list[tuple[Document, np.ndarray | None]], encode: EncodeDocuments
) -> Iterator[tuple[list[Document], np.ndarray]]:
    """Documents with their codes [n, M]; those without a vector are encoded."""
    given = [(document, vector) for document, vector in documents if vector is not None]
    if given:
        yield [document for document, _ in given], snapshot.index.coding.encode(np.stack([v for _, v in given]))
    texts = [document for document, vector in documents if vector is None]
    if texts:
        vectors = encode(snapshot, [document.full_text for document in texts])
        yield texts, snapshot.index.coding.encode(vectors)


def _replaced() -> Refusal:
    return Refusal(409, "index_replaced", "Another index took the place of this one meanwhile; send it again.")


def write_failed(index: str, error: Exception) -> Refusal:
    """A fault of the server's: whoever runs it reads why in the log, and who wrote may try again."""
    log.error("writing to index %r failed: %r", index, first_line(error))
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return Refusal(507, "storage_full", "The server has no room left to write; try again when it has.")
    return Refusal(503, "write_failed", "The server could not write this; its log says why. Try again later.")


def read_upsert(snapshot: Snapshot, documents: Sequence[Document], vectors: Sequence[list[float] | None]) -> Upsert:
    """What is wrong with a write is said before it waits for others."""
    given = [vector for vector in vectors if vector is not None]
    if given and len(given) < len(documents):
        raise invalid("Some documents have a vector and some have none; send them in two requests.", "invalid_vector")
    if not given:
        if snapshot.encoder is None:
            raise invalid("This index was built from vectors: its documents need a vector each.", "needs_vectors")
        return Upsert(documents, None)
    if len({len(vector) for vector in given}) > 1:
        raise invalid("The vectors have different lengths.", "invalid_vector")
    try:
        matrix = read_queries(np.array(given, np.float32), snapshot.index.manifest.dimension)
    except RepconcError as error:
        raise invalid(str(error).replace("queries", "vectors"), "invalid_vector") from error
    mapping = snapshot.index.coding.map
    if mapping is not None and mapping.unit and not matrix.any(axis=1).all():
        raise invalid("A vector is all zeros and has no direction; leave that document out.", "invalid_vector")
    return Upsert(documents, matrix)
