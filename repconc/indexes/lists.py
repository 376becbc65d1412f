"""The lists of the inverted file: centroids, which list a document belongs to, which lists a query reads.

K-means (L2) runs on *quantized* vectors, decoded with the codebooks that score them; a document goes to the nearest
centroid of its decoded vector, also when it is added later. Lists are chosen by inner product with the query.

Sizes: N documents, L lists, D dimensions (padded to whole blocks).
"""

import math
import os
from collections.abc import Callable
from functools import cached_property, partial

import numpy as np

from repconc.codec import Codec
from repconc.errors import RepconcError
from repconc.indexes.scan import WIDEST
from repconc.kernel import kernel, row_width
from repconc.packages import Progress

VECTORS_AT_A_TIME = 4096
CODES_AT_A_TIME = 1 << 17
FEW = 4096
"""Documents for which tables of all centroids would cost more than they save."""

TOO_LONG = "The vectors are too long to be compared; scale them down."
SAMPLE_A_LIST = 40
ABOUT = 3 * 4
"""Bytes that the kernel keeps beside a centroid: a scale and two bounds."""
TURNS = 10


def default_lists(documents: int) -> int:
    """1.7 times the root of N: 5,000 for 8.8 million."""
    return max(1, min(documents, round(1.7 * math.sqrt(documents))))


def train_centroids(codes: np.ndarray, codec: Codec, lists: int, seed: int, progress: Progress) -> np.ndarray:
    """[L, D] float16: k-means on the decoded vectors of a sample of codes [N, M]."""
    random = np.random.default_rng(seed)
    sample = np.sort(random.permutation(len(codes))[: lists * SAMPLE_A_LIST])
    chosen = np.asarray(codes[sample])
    centroids = codec.decode(chosen[random.permutation(len(chosen))[:lists]])
    for turn in range(TURNS):
        owners, distances = nearest(chosen, codec, centroids)
        sums, counts = np.zeros_like(centroids), np.bincount(owners, minlength=lists)
        for start in range(0, len(chosen), VECTORS_AT_A_TIME):
            part = slice(start, start + VECTORS_AT_A_TIME)
            _add_rows(sums, owners[part], codec.decode(chosen[part]))
        centroids = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centroids)
        empty = np.flatnonzero(counts == 0)
        if len(empty):  # start again where vectors are farthest from home
            centroids[empty] = codec.decode(chosen[np.argsort(-distances, kind="stable")[: len(empty)]])
        progress(turn + 1, TURNS)
    if not np.abs(centroids).max() <= np.finfo(np.float16).max:
        raise RepconcError("The vectors are too long for centroids of half precision; scale them down.")
    return centroids.astype(np.float16)


def cells_of(
    codes: np.ndarray, coding: Codec, scoring: Codec, centroids: np.ndarray, progress: Progress | None = None
) -> np.ndarray:
    """[N]: where documents of these codes [N, M] belong: their list, and in it their class of lengths."""
    owners, _ = nearest(codes, scoring, centroids, progress)
    return np.asarray(owners * len(coding.gains) + coding.classes_of(codes))


def nearest(
    codes: np.ndarray, codec: Codec, centroids: np.ndarray, progress: Progress | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The L2-nearest centroid [N] of each decoded vector, and its squared distance [N]. codes: [N, M]"""
    centroids = np.ascontiguousarray(centroids, np.float32)
    # The kernel makes tables of centroids block by block.
    scanned = kernel() is not None and codec.in_blocks and codec.blocks <= WIDEST and len(codes) > FEW
    at_a_time = CODES_AT_A_TIME if scanned else VECTORS_AT_A_TIME
    find = _scanner(codec, centroids) if scanned else partial(_compare, codec, centroids, _half_norms(centroids))
    owners, distances = np.empty(len(codes), np.int64), np.empty(len(codes), np.float32)
    for start in range(0, len(codes), at_a_time):
        part = slice(start, start + at_a_time)
        owners[part], distances[part] = find(np.ascontiguousarray(codes[part]))
        if progress:
            progress(min(start + at_a_time, len(codes)), len(codes))
    if not np.isfinite(distances).all():
        raise RepconcError(TOO_LONG)
    return owners, distances


def _scanner(codec: Codec, centroids: np.ndarray) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """A centroid's products with coded documents are sums of table entries, as a query's are."""
    try:
        assigner = kernel().Assigner(centroids, codec.by_dimension)
    except OverflowError as error:
        raise RepconcError(TOO_LONG) from error
    return partial(assigner.nearest, threads=len(os.sched_getaffinity(0)))


def _compare(
    codec: Codec, centroids: np.ndarray, half_norms: np.ndarray, codes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    vectors = codec.decode(codes)
    with np.errstate(over="ignore", invalid="ignore"):  # who calls looks at the distances
        closeness = vectors @ centroids.T
        closeness -= half_norms
        owners = closeness.argmax(axis=1)
        best = np.take_along_axis(closeness, owners[:, None], axis=1)[:, 0]
        return owners, 2 * (_half_norms(vectors) - best)


def _half_norms(vectors: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.asarray((vectors**2).sum(axis=1) / 2)


def _add_rows(sums: np.ndarray, owners: np.ndarray, rows: np.ndarray) -> None:
    """sums[owner] += row, for rows of the same owner together."""
    order = np.argsort(owners, kind="stable")
    firsts = np.flatnonzero(np.diff(owners[order], prepend=-1))
    sums[owners[order][firsts]] += np.add.reduceat(rows[order], firsts, axis=0)


class Lists:
    """The centroids as searches see them: [L, D] float16, in memory as on disk."""

    def __init__(self, centroids: np.ndarray) -> None:
        self._centroids = centroids

    @property
    def copied(self) -> int:
        """Bytes of a second form of the centroids: one a dimension, and what is known of each."""
        L, D = self._centroids.shape
        return int(L * (row_width(D) + ABOUT))

    def best(self, queries: np.ndarray, count: int) -> np.ndarray:
        """[B, count]: the lists of the highest inner products with each query, descending; equal ones by number.

        queries: [B, D]. A query finds the same alone and in a batch.
        """
        if (native := kernel()) is not None:
            halves = self._centroids.view(np.uint16)
            return np.asarray(native.best_lists(halves, *self._levels, np.ascontiguousarray(queries), count))
        scores = np.empty((len(queries), len(self._centroids)), np.float32)
        for start in range(0, len(self._centroids), VECTORS_AT_A_TIME):
            part = self._centroids[start : start + VECTORS_AT_A_TIME].astype(np.float32)
            for row, query in zip(scores, queries, strict=True):  # not by a product of matrices, which rounds by place
                row[start : start + len(part)] = (part * query).sum(axis=1)
        return np.argsort(-scores, axis=1, kind="stable")[:, :count]

    @cached_property
    def _levels(self) -> tuple[np.ndarray, np.ndarray]:
        """The centroids as bytes, which are read first, and how far off they are."""
        levels: tuple[np.ndarray, np.ndarray] = kernel().levels(self._centroids.view(np.uint16))
        return levels
