"""Exhaustive search over uncompressed vectors: exact, and the line that every compressed index is measured against."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext

import numpy as np
from threadpoolctl import threadpool_limits

from repconc.errors import RepconcError
from repconc.indexes.queries import read_queries, whole_number
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
        if not len(ids):
            raise RepconcError("There are no vectors to search.")
        self._longest = max(float(np.linalg.norm(block, axis=1).max()) for block in blocks)
        if not np.isfinite(self._longest):
            raise RepconcError("A document vector holds NaN or an infinite value.")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def dimension(self) -> int:
        return int(self.blocks[0].shape[1])

    @property
    def nbytes(self) -> int:
        return sum(block.nbytes for block in self.blocks)

    def search(
        self, queries: np.ndarray, k: int = 10, threads: int | None = None, among: np.ndarray | None = None
    ) -> list[list[Hit]]:
        """The k best documents of each query. queries: [B, D]. among: [N] bool, those that are looked at."""
        queries, k = read_queries(queries, self.dimension), whole_number("k", k)
        if among is not None:
            k = min(k, int(among.sum()))
            if not k:
                return [[] for _ in queries]
        with threadpool_limits(limits=threads) if threads else nullcontext():  # setting none takes a while too
            rows = self._scores(queries)
            if among is not None:
                rows = (np.where(among, rough, -np.inf) for rough in rows)
            return [self._best(query, rough, k) for query, rough in zip(queries, rows, strict=True)]

    def _best(self, query: np.ndarray, rough: np.ndarray, k: int) -> list[Hit]:
        """The exact k best of a row of scores from a matrix product, which rounds by position and batch.

        What could be among them is scored again row by row, always in the same order of summation, so that equal
        vectors tie and a query finds the same alone or in a batch.
        """
        kth = np.partition(rough, -k)[-k] if k < len(rough) else -np.inf
        error = 2 * self.dimension * np.finfo(np.float32).eps * np.linalg.norm(query) * self._longest
        places = np.flatnonzero(rough >= kth - error)
        scores = (self._rows(places) * query).sum(axis=1)
        return best(scores, [self.ids[place] for place in places.tolist()], k)

    def _rows(self, places: np.ndarray) -> np.ndarray:
        """The vectors at ascending places."""
        ends = np.cumsum([len(block) for block in self.blocks])
        parts = np.split(places, np.searchsorted(places, ends[:-1]))
        starts = [0, *ends[:-1].tolist()]
        return np.concatenate(
            [block[part - start] for block, part, start in zip(self.blocks, parts, starts, strict=True)]
        )

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
