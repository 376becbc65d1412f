"""A batch of questions -> answers, in a worker thread: encoded together, scanned together, timed step by step."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from repconc.errors import RepconcError
from repconc.indexes.filters import Filter
from repconc.indexes.queries import read_queries
from repconc.indexes.stopwatch import Stopwatch
from repconc.records import Hits
from repconc.serving.batching import Ticket
from repconc.serving.exact import rank_exactly
from repconc.serving.refusals import Refusal, invalid
from repconc.serving.snapshot import Snapshot


class Wanted(NamedTuple):
    """What is asked beside the queries; questions that want the same are scanned together."""

    k: int
    probes: int | None
    filter: str | None
    text: bool
    exact: bool


class Asked(NamedTuple):
    """The question of one request: texts or vectors [B, D]."""

    texts: Sequence[str] | None
    vectors: np.ndarray | None
    wanted: Wanted

    @property
    def weight(self) -> int:
        return len(self.texts if self.texts is not None else self.vectors if self.vectors is not None else ())


class Answer(NamedTuple):
    """Hits for each query of a request, and where the time went, in seconds."""

    hits: list[Hits]
    steps: dict[str, float]
    version: int


Encode = Callable[[Snapshot, Sequence[str]], np.ndarray]
Tickets = Sequence[Ticket[Asked, Answer]]


def answer_batch(snapshot: Snapshot, tickets: Tickets, encode: Encode, threads: int | None) -> list[Answer | Exception]:
    """An answer or an error for each ticket; what is wrong with one question does not touch the others."""
    watch = Stopwatch()
    texts = [text for ticket in tickets for text in ticket.item.texts or ()]
    encoded = encode(snapshot, texts) if texts and snapshot.encoder is not None else None
    watch.lap("encode")
    seconds = watch.seconds if texts else {}
    answers: dict[Ticket[Asked, Answer], Answer | Exception] = {}
    groups: dict[Wanted, list[tuple[Ticket[Asked, Answer], np.ndarray]]] = {}
    for ticket in tickets:
        try:
            vectors, encoded = _vectors_of(snapshot, ticket.item, encoded)
            groups.setdefault(ticket.item.wanted, []).append((ticket, vectors))
        except Refusal as error:
            answers[ticket] = error
    for wanted, group in groups.items():
        answers |= _answer_group(snapshot, wanted, group, seconds, threads)
    return [answers[ticket] for ticket in tickets]


def _vectors_of(snapshot: Snapshot, asked: Asked, encoded: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
    """The vectors of a question, and what is left of those that were encoded."""
    if asked.texts is None:
        try:
            return read_queries(np.asarray(asked.vectors), snapshot.index.manifest.dimension), encoded
        except RepconcError as error:
            raise invalid(str(error), "invalid_vector") from error
    if encoded is None:
        raise invalid("This index was built from vectors: ask it by vector, not by text.", "needs_vectors")
    return encoded[: len(asked.texts)], encoded[len(asked.texts) :]


def _answer_group(
    snapshot: Snapshot,
    wanted: Wanted,
    group: list[tuple[Ticket[Asked, Answer], np.ndarray]],
    before: dict[str, float],
    threads: int | None,
) -> dict[Ticket[Asked, Answer], Answer | Exception]:
    """Questions that want the same, in one search."""
    watch = Stopwatch()
    try:
        hits = _search(snapshot, wanted, np.concatenate([vectors for _, vectors in group]), watch, threads)
    except Exception as error:  # each of its requests has to hear of it
        return {ticket: error for ticket, _ in group}
    answers: dict[Ticket[Asked, Answer], Answer | Exception] = {}
    for ticket, vectors in group:
        steps = {"queue": ticket.waited, **before, **watch.seconds}
        answers[ticket] = Answer(hits[: len(vectors)], steps, snapshot.index.manifest.version)
        hits = hits[len(vectors) :]
    return answers


def _search(
    snapshot: Snapshot, wanted: Wanted, vectors: np.ndarray, watch: Stopwatch, threads: int | None
) -> list[Hits]:
    index = snapshot.index
    tree: Filter | None = None
    if wanted.filter is not None:
        try:
            tree = index.read_filter(wanted.filter)
        except RepconcError as error:
            raise invalid(str(error), "invalid_filter") from error
    if not wanted.exact:
        return index.search(
            vectors,
            wanted.k,
            threads,
            probes=wanted.probes,
            filter=wanted.filter,
            documents=wanted.text,
            stopwatch=watch,
        )
    if snapshot.exact is None:
        raise invalid("The server has no uncompressed vectors of this index to rank by.", "no_vectors")
    return rank_exactly(index, snapshot.exact, vectors, wanted.k, tree, wanted.text, watch)
