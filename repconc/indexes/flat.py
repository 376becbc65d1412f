"""Exhaustive search over uncompressed vectors: exact, and the line that every compressed index is measured against."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext

import numpy as np
from threadpoolctl import threadpool_limits

from repconc.errors import RepconcError
from repconc.indexes.top import best
from repconc.records import Hit

SCORES_IN_MEMORY = 1 << 26
"""How many scores are held at a time (256 MB of float32); a batch of queries is cut to stay below it."""


class FlatIndex:
    """All documents, scored by inner product."""

    def __init__(self, ids: Sequence[str], blocks: Sequence[np.ndarray]) -> None:
        self.ids = ids
        self.blocks = blocks  # [n, D] each, in the order of the ids; they may be memory maps
        if sum(map(len, blocks)) != len(ids):
            raise RepconcError(f"There are {len(ids)} ids for {sum(map(len, blocks))} vectors; each needs one.")
        if not ids:
            raise RepconcError("There are no vectors to search.")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def dimension(self) -> int:
        return int(self.blocks[0].shape[1])

    @property
    def nbytes(self) -> int:
        return sum(block.nbytes for block in self.blocks)

    def search(self, queries: np.ndarray, k: int = 10, threads: int | None = None) -> list[list[Hit]]:
        """The k best documents of each query. queries: [B, D]."""
        queries = np.atleast_2d(np.asarray(queries, dtype=np.float32))
        if queries.shape[1] != self.dimension:
            raise RepconcError(f"The query has {queries.shape[1]} dimensions and the index {self.dimension}.")
        if not np.isfinite(queries).all():
            raise RepconcError("A query vector holds NaN or an infinite value.")
        if k < 1:
            raise RepconcError(f"k is {k}; at least one result must be asked for.")
        with threadpool_limits(limits=threads) if threads else nullcontext():  # setting none takes a while too
            return [best(scores, self.ids, k) for scores in self._scores(queries)]

    def _scores(self, queries: np.ndarray) -> Iterator[np.ndarray]:
        """One row of N scores per query."""
        size = max(1, SCORES_IN_MEMORY // len(self))
        for start in range(0, len(queries), size):
            batch = queries[start : start + size]
            scores, column = np.empty((len(batch), len(self)), np.float32), 0
            for block in self.blocks:
                scores[:, column : column + len(block)] = batch @ block.T
                column += len(block)
            yield from scores
