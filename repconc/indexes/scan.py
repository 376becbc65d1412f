"""The scan: codes through look-up tables to the best documents. One narrow function, so that a kernel can replace it.

With faiss it is used for a first, rounded scan, and what could be among the best is scored again in our own order of
summation; without it numpy does all. Both give the same documents and scores, to the bit.

Sizes: n documents, M blocks of d dimensions, K codewords a block.
"""

import threading
from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from repconc.codec import Codec, score

SPARE = 32
"""How many more documents than asked for the rounded scan keeps."""


class Scanner:
    """Scans with one codec; any number of threads may use it at once."""

    def __init__(self, codec: Codec, *, use_faiss: bool = True) -> None:
        self.codec = codec
        self._faiss: Any = find_faiss() if use_faiss else None
        self._local = threading.local()

    def scan(self, query: np.ndarray, parts: Sequence[np.ndarray], k: int) -> tuple[np.ndarray, np.ndarray]:
        """Places, in the joined parts [n, M], of the k best documents and of all that tie with the k-th; and scores.

        query: [D], as the codec's `tables` wants it.
        """
        tables = self.codec.tables(query)[0]
        total = sum(map(len, parts))
        if self._faiss is None or total <= k + SPARE:
            scores = np.concatenate([np.empty(0, np.float32), *(score(tables, part) for part in parts)])
            return _best(np.arange(total), scores, k)
        keep = k + SPARE
        while True:
            rounded, places = self._rounded(query, parts, min(keep, total))
            kth = np.partition(rounded, -k)[-k]
            if keep >= total or rounded.min() < kth - 2 * self._error(query):
                break
            keep *= 4  # so many tie that the best of them may have been left out
        places = places[rounded >= kth - 2 * self._error(query)]
        return _best(places, score(tables, _rows(parts, places)), k)

    def _rounded(self, query: np.ndarray, parts: Sequence[np.ndarray], keep: int) -> tuple[np.ndarray, np.ndarray]:
        """Scores of faiss, whose order of summation is another, and places; in no order."""
        blocks = np.ascontiguousarray(self.codec.transform(query)).reshape(-1)
        scores, labels = np.full(keep, -np.inf, np.float32), np.full(keep, -1, np.int64)
        scanner, pointer = self._own_scanner(), self._faiss.swig_ptr
        into = pointer(scores), pointer(labels)
        scanner.set_query(pointer(blocks))
        for number, part in enumerate(parts):
            if len(part):
                scanner.set_list(number, 0.0)
                scanner.scan_codes(len(part), pointer(part), None, *into, keep)
        starts = np.cumsum([0, *map(len, parts)])
        return scores, starts[labels >> 32] + (labels & 0xFFFFFFFF)

    def _own_scanner(self) -> Any:
        if not hasattr(self._local, "scanner"):
            options = self._faiss.IVFPQSearchParameters()
            self._local.scanner = self._index.get_InvertedListScanner(True, None, options)
        return self._local.scanner

    @cached_property
    def _index(self) -> Any:
        """An empty faiss index with our codebooks."""
        M, K, d = self.codec.codebooks.shape
        coarse = self._faiss.IndexFlatIP(M * d)
        index = self._faiss.IndexIVFPQ(coarse, M * d, 1, M, 8, self._faiss.METRIC_INNER_PRODUCT)
        index.by_residual, index.is_trained = False, True
        padded = np.pad(self.codec.codebooks, ((0, 0), (0, 256 - K), (0, 0)))  # faiss knows bytes of 256 values only
        self._faiss.copy_array_to_vector(padded.reshape(-1), index.pq.centroids)
        self._keep = coarse
        return index

    def _error(self, query: np.ndarray) -> float:
        """More than two sums of the same numbers in different orders can differ by."""
        M, _, d = self.codec.codebooks.shape
        norms = np.linalg.norm(self.codec.transform(query)[0], axis=1)  # [M]
        return float(2 * (M + d) * np.finfo(np.float32).eps * (norms * self._longest).sum())

    @cached_property
    def _longest(self) -> np.ndarray:
        return np.asarray(np.linalg.norm(self.codec.codebooks, axis=2).max(axis=1))  # [M]


def find_faiss() -> Any:
    """The library, or None."""
    try:
        return import_module("faiss")
    except ModuleNotFoundError:
        return None


def _rows(parts: Sequence[np.ndarray], places: np.ndarray) -> np.ndarray:
    """[n, M]: some rows of the joined parts."""
    starts = np.cumsum([0, *map(len, parts)])
    owners = np.searchsorted(starts, places, side="right") - 1
    pairs = zip(owners.tolist(), (places - starts[owners]).tolist(), strict=True)
    return np.stack([parts[owner][place] for owner, place in pairs])


def _best(places: np.ndarray, scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    if k < len(scores):
        kept = scores >= np.partition(scores, -k)[-k]
        places, scores = places[kept], scores[kept]
    return places, scores
