"""What is learned from: documents and queries by number, who is relevant to whom, and the batches of each epoch.

A batch is a pure function of seed and step: a run that was killed needs no state of a random generator to go on.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from repconc.errors import RepconcError
from repconc.models.inputs import Dropout, Inputs
from repconc.records import Qrels

PIECES = 100_000
"""How many pieces of documents are cut at most."""


@dataclass(frozen=True)
class Validation:
    """The dev queries that choose the checkpoint."""

    query_ids: list[str]
    queries: Inputs
    qrels: Qrels
    relevance: int
    documents: np.ndarray
    """Numbers of the documents that are searched: all, or a pool where encoding all takes too long."""
    measure: str = "MRR@10"
    """What chooses the checkpoint."""


@dataclass(frozen=True)
class Examples:
    """A labelled set as training sees it."""

    document_ids: list[str]
    documents: Inputs
    queries: Inputs
    """The labelled ones, then pieces of documents that stand in for queries."""
    relevant: list[np.ndarray]
    """For each query the numbers of its relevant documents."""
    labelled: int
    """How many queries are labelled."""
    validation: Validation
    judged: bool = True
    """Whether people marked what is relevant. If not, it is the uncompressed ranking that did, a best few of many."""

    @cached_property
    def pairs(self) -> np.ndarray:
        """[P, 2]: each labelled query with each of its relevant documents."""
        return _pairs(self.relevant[: self.labelled], 0)

    @cached_property
    def pieces(self) -> np.ndarray:
        """[P', 2]: each piece with the document that it was cut from."""
        return _pairs(self.relevant[self.labelled :], self.labelled)


def _pairs(relevant: list[np.ndarray], first: int) -> np.ndarray:
    rows = [(query, document) for query, known in enumerate(relevant, first) for document in known.tolist()]
    return np.array(rows, dtype=np.int64).reshape(-1, 2)


def piece_of(text: str, random: np.random.Generator) -> str:
    """A few words of a document in a row, of the length of a question."""
    words = text.split()
    length = int(random.integers(6, 20))
    start = int(random.integers(0, max(1, len(words) - length + 1)))
    return " ".join(words[start : start + length])


class Batch(NamedTuple):
    """Some pairs of query and positive, and hard negatives."""

    queries: np.ndarray  # [B]
    documents: np.ndarray  # [N]: first the B positives in the order of the queries, then the hard negatives
    dropout: Dropout | None = None


class Epoch(NamedTuple):
    """How an epoch is cut."""

    pieces: int
    batches: int
    smallest: int


def batches_in(pairs: int, pieces: int, size: int, ratio: float) -> Epoch:
    """An epoch of all pairs, and of `ratio` times as many pieces where there are so many."""
    if not pairs:
        raise RepconcError("There are no pairs of a query and a relevant document to train on.")
    taken = min(round(ratio * pairs), pieces)
    batches = -(-(pairs + taken) // size)
    return Epoch(taken, batches, (pairs + taken) // batches)


class Batches:
    """All batches of a phase. Those of one epoch are of almost equal size: no small rest at the end.

    An epoch is all labelled pairs and `pieces` times as many pieces of documents, others in each epoch.
    """

    def __init__(
        self, examples: Examples, size: int, epochs: float, seed: int, *, dropout: float = 0.0, pieces: float = 0.0
    ) -> None:
        self._examples, self._seed, self._dropout = examples, seed, dropout
        self._pieces, self.in_epoch, self.smallest = batches_in(len(examples.pairs), len(examples.pieces), size, pieces)
        self.steps = max(1, round(self.in_epoch * epochs))

    def at(self, step: int, negatives: np.ndarray | None = None, hard: int = 0) -> Batch:
        """The batch of a step. negatives: [Q, n], for each query the numbers to draw `hard` from; -1 for none."""
        epoch, place = divmod(step, self.in_epoch)
        random = np.random.default_rng([self._seed, epoch])
        chosen_pieces = random.permutation(len(self._examples.pieces))[: self._pieces]
        pairs = np.concatenate([self._examples.pairs, self._examples.pieces[chosen_pieces]])
        queries, positives = pairs[np.array_split(random.permutation(len(pairs)), self.in_epoch)[place]].T
        dropout = Dropout(self._dropout, self._seed * 2**32 + step) if self._dropout else None
        if negatives is None or not hard:
            return Batch(queries, positives, dropout)
        columns = np.random.default_rng([self._seed, epoch, place]).random((len(queries), hard))
        known = (negatives[queries] >= 0).sum(axis=1, keepdims=True)  # rows are filled from the left
        chosen = np.take_along_axis(negatives[queries], (columns * known).astype(np.int64), axis=1)
        return Batch(queries, np.concatenate([positives, chosen[chosen >= 0]]), dropout)
