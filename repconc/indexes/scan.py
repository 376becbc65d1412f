"""The scan: codes through look-up tables to the best documents. One narrow function, with a native kernel behind it.

Where the kernel was not built, numpy does the same: the same documents and scores, to the bit, but slowly.
"""

import numpy as np

from repconc.errors import RepconcError
from repconc.indexes.blocks import scores_of
from repconc.indexes.queries import whole_number
from repconc.indexes.top import best_places
from repconc.kernel import kernel

WIDEST = 257
"""Bytes of a code that the kernel can sum in 16 bits."""

DEPTH = 1000
"""Documents that the first bytes of codes choose, at least, before all bytes are read."""

TOO_LARGE = "A query vector holds values too large to multiply."

PLAIN = np.ones(1, np.float32)
"""The gains of lists of one class, whose scores are the sums."""

Found = list[tuple[np.ndarray, np.ndarray]]
"""Positions and scores, for each query."""


def depth_for(k: int) -> int:
    """How many documents the first bytes of codes choose, where nobody says it."""
    return max(DEPTH, 10 * k)


def scan(
    content: np.ndarray,
    tables: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    k: int,
    allowed: np.ndarray | None = None,
    threads: int = 1,
    gains: np.ndarray = PLAIN,
    first: int | None = None,
    depth: int = 0,
) -> Found:
    """Of each query the k best documents of its lists, and all that tie with the k-th; in no order.

    content: the bytes of all lists (blocks.py); tables: [B, M, K] float32; starts, stops: [B, P], the positions of its
    lists, none twice, the most promising first; allowed: a bitmap by position, or None; gains: [C], where each list
    lies in C classes one after the other, and starts and stops are [B, P * C], those of its classes. A score is the
    gain of its class times the float32 sum of table entries for m = 0 .. M - 1.

    first: bytes of each code that are read, default all; the `depth` best documents by these, with all that tie, are
    scored with all bytes, and of them the k best are given. Fewer than k are no depth.
    """
    M = tables.shape[1]
    first, depth = M if first is None else whole_number("first", first), max(k, depth)
    if first > M:
        raise RepconcError(f"first is {first}; codes have {M} bytes.")
    native = kernel()
    if threads < 1:
        raise RepconcError(f"threads is {threads}; at least one must search.")
    if native is None or tables.shape[1] > WIDEST:
        largest = np.abs(tables).max(axis=2).sum(axis=1, dtype=np.float64).max(initial=0) * max(1, gains.max())
        if not largest <= np.finfo(np.float32).max:
            raise RepconcError(TOO_LARGE)
        rows = zip(tables, starts, stops, strict=True)
        return [_plain(content, own, start, stop, k, allowed, gains, first, depth) for own, start, stop in rows]
    try:
        lists = (starts, stops, k, allowed, threads, gains, first, depth)
        ends, positions, scores = native.scan(content, _whole(tables), *lists)
    except OverflowError as error:
        raise RepconcError(TOO_LARGE) from error
    stops_of = ends.tolist()
    parts = zip([0, *stops_of[:-1]], stops_of, strict=True)
    return [(positions[start:stop], scores[start:stop]) for start, stop in parts]


def _whole(tables: np.ndarray) -> np.ndarray:
    """With 256 entries, as the kernel reads them."""
    missing = 256 - tables.shape[2]
    return np.ascontiguousarray(np.pad(tables, ((0, 0), (0, 0), (0, missing)), mode="edge") if missing else tables)


def _plain(
    content: np.ndarray,
    tables: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    k: int,
    allowed: np.ndarray | None,
    gains: np.ndarray,
    first: int,
    depth: int,
) -> tuple[np.ndarray, np.ndarray]:
    positions, scores = [np.empty(0, np.int64)], [np.empty((0, 2), np.float32)]  # by the first bytes, and by all
    C = len(gains)
    for start, stop, sizes in zip(starts[::C], stops[C - 1 :: C], (stops - starts).reshape(-1, C), strict=True):
        here, values = np.arange(start, stop), scores_of(content, int(start), int(stop), tables, first)  # [n], [n, 2]
        values *= np.repeat(gains, sizes)[:, None]
        if allowed is not None:
            passing = np.unpackbits(allowed[start // 8 : -(-stop // 8)], bitorder="little")[start % 8 :][: stop - start]
            here, values = here[passing.astype(bool)], values[passing.astype(bool)]
        positions.append(here)
        scores.append(values)
    whole = np.concatenate(scores)
    shortlist, _ = best_places(np.arange(len(whole)), whole[:, 0], depth)
    return best_places(np.concatenate(positions)[shortlist], whole[shortlist, 1], k)
