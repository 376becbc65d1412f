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


@dataclass(frozen=True)
class Validation:
    """The dev queries that choose the checkpoint."""

    query_ids: list[str]
    queries: Inputs
    qrels: Qrels
    relevance: int
    documents: np.ndarray
    """Numbers of the documents that are searched: all, or a pool where encoding all takes too long."""


@dataclass(frozen=True)
class Examples:
    """A labelled set as training sees it."""

    document_ids: list[str]
    documents: Inputs
    queries: Inputs
    relevant: list[np.ndarray]
    """For each query the numbers of its relevant documents."""
    validation: Validation

    @cached_property
    def pairs(self) -> np.ndarray:
        """[P, 2]: each query with each of its relevant documents."""
        return np.array(
            [(query, document) for query, known in enumerate(self.relevant) for document in known.tolist()],
            dtype=np.int64,
        ).reshape(-1, 2)


class Batch(NamedTuple):
    """Some pairs of query and positive, and hard negatives."""

    queries: np.ndarray  # [B]
    documents: np.ndarray  # [N]: first the B positives in the order of the queries, then the hard negatives
    dropout: Dropout | None = None


class Batches:
    """All batches of a phase. Those of one epoch are of almost equal size: no small rest at the end."""

    def __init__(self, pairs: np.ndarray, size: int, epochs: float, seed: int, dropout: float = 0.0) -> None:
        if not len(pairs):
            raise RepconcError("There are no pairs of a query and a relevant document to train on.")
        self._pairs, self._seed, self._dropout = pairs, seed, dropout
        self.in_epoch = -(-len(pairs) // size)
        self.steps = max(1, round(self.in_epoch * epochs))

    def at(self, step: int, negatives: np.ndarray | None = None, hard: int = 0) -> Batch:
        """The batch of a step. negatives: [Q, n], for each query the numbers to draw `hard` from; -1 for none."""
        epoch, place = divmod(step, self.in_epoch)
        order = np.random.default_rng([self._seed, epoch]).permutation(len(self._pairs))
        queries, positives = self._pairs[np.array_split(order, self.in_epoch)[place]].T
        dropout = Dropout(self._dropout, self._seed * 2**32 + step) if self._dropout else None
        if negatives is None or not hard:
            return Batch(queries, positives, dropout)
        columns = np.random.default_rng([self._seed, epoch, place]).random((len(queries), hard))
        known = (negatives[queries] >= 0).sum(axis=1, keepdims=True)  # rows are filled from the left
        chosen = np.take_along_axis(negatives[queries], (columns * known).astype(np.int64), axis=1)
        return Batch(queries, np.concatenate([positives, chosen[chosen >= 0]]), dropout)
