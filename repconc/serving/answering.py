"""A batch of questions -> answers, in a worker thread: encoded together, scanned together, timed step by step."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from repconc.errors import RepconcError
from repconc.indexes.bounds import Bounds, StoppedError, TooLargeError
from repconc.indexes.queries import read_queries
from repconc.indexes.stopwatch import Stopwatch
from repconc.records import Hits
from repconc.serving.batching import Ticket
from repconc.serving.refusals import Refusal, answer_too_large, invalid
from repconc.serving.snapshot import Snapshot


class Wanted(NamedTuple):
    """What is asked beside the queries; questions that want the same are scanned together."""

    k: int
    probes: int | None
    filter: str | None
    text: bool
    exact: bool
    first: int | None = None


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


Stop = Callable[[], bool]
"""Whether nobody waits any more."""
Encode = Callable[[Snapshot, Sequence[str], Stop], np.ndarray]
Asking = Ticket[Asked, Answer]
Answers = dict[Asking, Answer | Exception]


class Means(NamedTuple):
    """With what a batch is answered."""

    encode: Encode
    threads: int | None
    largest: int
    """Characters of the documents of one answer."""


class Batch:
    """Questions that are answered together, from one snapshot."""

    def __init__(self, snapshot: Snapshot, means: Means) -> None:
        self._snapshot, self._means = snapshot, means
        self._encoding: dict[str, float] = {}
        self.steps: dict[str, float] = {}
        """Seconds of each step, of all groups together."""

    def answer(self, tickets: Sequence[Asking]) -> list[Answer | Exception]:
        """An answer or an error for each ticket; what is wrong with one question does not touch the others."""
        encoded = self._encoded(tickets)
        answers: Answers = {}
        groups: dict[Wanted, list[tuple[Asking, np.ndarray]]] = {}
        for ticket in tickets:
            try:
                vectors, encoded = self._vectors_of(ticket.item, encoded)
                groups.setdefault(ticket.item.wanted, []).append((ticket, vectors))
            except Refusal as error:
                answers[ticket] = error
        for wanted, group in groups.items():
            answers |= self._answer_group(wanted, group)
        return [answers[ticket] for ticket in tickets]

    def _encoded(self, tickets: Sequence[Asking]) -> np.ndarray | None:
        texts = [text for ticket in tickets for text in ticket.item.texts or ()]
        if not texts or self._snapshot.encoder is None:
            return None
        watch = Stopwatch()
        encoded = self._means.encode(self._snapshot, texts, _over(tickets))
        watch.lap("encode")
        self._encoding = watch.seconds
        self.steps |= watch.seconds
        return encoded

    def _vectors_of(self, asked: Asked, encoded: np.ndarray | None) -> tuple[np.ndarray, np.ndarray | None]:
        """The vectors of a question, and what is left of those that were encoded."""
        if asked.texts is None:
            try:
                return read_queries(np.asarray(asked.vectors), self._snapshot.index.manifest.dimension), encoded
            except RepconcError as error:
                raise invalid(str(error), "invalid_vector") from error
        if encoded is None:
            raise invalid("This index was built from vectors: ask it by vector, not by text.", "needs_vectors")
        return encoded[: len(asked.texts)], encoded[len(asked.texts) :]

    def _answer_group(self, wanted: Wanted, group: list[tuple[Asking, np.ndarray]]) -> Answers:
        """Questions that want the same, in one search; those that nobody waits for any more are left out."""
        answers: Answers = {ticket: StoppedError() for ticket, _ in group if ticket.is_over}
        group = [(ticket, vectors) for ticket, vectors in group if ticket not in answers]
        if not group:
            return answers
        watch, bounds = Stopwatch(), Bounds(_over([ticket for ticket, _ in group]), self._means.largest)
        try:
            hits = self._search(wanted, np.concatenate([vectors for _, vectors in group]), watch, bounds)
        except TooLargeError:
            if len(group) == 1:
                return answers | {group[0][0]: answer_too_large(self._means.largest)}
            for one in group:  # together they are too large; each of them may not be
                answers |= self._answer_group(wanted, [one])
            return answers
        except Exception as error:  # each of its requests has to hear of it
            return answers | {ticket: error for ticket, _ in group}
        for step, seconds in watch.seconds.items():
            self.steps[step] = self.steps.get(step, 0.0) + seconds
        for ticket, vectors in group:
            encoding = {} if ticket.item.texts is None else self._encoding
            steps = {"queue": ticket.waited, **encoding, **watch.seconds}
            answers[ticket] = Answer(hits[: len(vectors)], steps, self._snapshot.index.manifest.version)
            hits = hits[len(vectors) :]
        return answers

    def _search(self, wanted: Wanted, vectors: np.ndarray, watch: Stopwatch, bounds: Bounds) -> list[Hits]:
        index, exact = self._snapshot.index, self._snapshot.exact
        try:
            tree = None if wanted.filter is None else index.read_filter(wanted.filter)
        except RepconcError as error:
            raise invalid(str(error), "invalid_filter") from error
        if wanted.first is not None and wanted.first > index.manifest.bytes:
            raise invalid(f"first is {wanted.first}; codes have {index.manifest.bytes} bytes.", "invalid_first")
        if not wanted.exact:
            return index.search(
                vectors,
                wanted.k,
                self._means.threads,
                probes=wanted.probes,
                filter=tree,
                documents=wanted.text,
                stopwatch=watch,
                bounds=bounds,
                first=wanted.first,
            )
        if exact is None:
            raise invalid("The server has no uncompressed vectors of this index to rank by.", "no_vectors")
        return exact.rank(index, vectors, wanted.k, tree=tree, text=wanted.text, watch=watch, bounds=bounds)


def _over(tickets: Sequence[Asking]) -> Stop:
    return lambda: all(ticket.is_over for ticket in tickets)
