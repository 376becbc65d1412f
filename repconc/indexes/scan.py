"""The scan: codes through look-up tables to the best documents. One narrow function, with a native kernel behind it.

Where the kernel was not built, numpy does the same: the same documents and scores, to the bit, but slowly.
"""

import warnings
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from repconc.indexes.blocks import scores_of
from repconc.indexes.top import best_places

WIDEST = 257
"""Bytes of a code that the kernel can sum in 16 bits."""


def scan(
    content: np.ndarray,
    tables: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    k: int,
    allowed: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Positions and scores of the k best documents of some lists, and of all that tie with the k-th; in no order.

    content: the bytes of all lists (blocks.py); tables: [M, K] float32; starts, stops: positions of the lists;
    allowed: a bitmap by position, or None. A score is the float32 sum of table entries for m = 0 .. M - 1.
    """
    native = kernel()
    if native is None or len(tables) > WIDEST:
        return _plain(content, tables, starts, stops, k, allowed)
    missing = 256 - tables.shape[1]
    whole = np.ascontiguousarray(tables if not missing else np.pad(tables, ((0, 0), (0, missing)), mode="edge"))
    found: tuple[np.ndarray, np.ndarray] = native.scan(content, whole, starts, stops, k, allowed)
    return found


@cache
def kernel() -> Any:
    """The compiled module, or None; says so once."""
    try:
        return import_module("repconc.indexes._kernel")
    except ImportError:
        warnings.warn("repconc was installed without its native scan: searches are slow, and exact.", stacklevel=2)
        return None


def _plain(
    content: np.ndarray,
    tables: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    k: int,
    allowed: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    positions, scores = [np.empty(0, np.int64)], [np.empty(0, np.float32)]
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        here, values = np.arange(start, stop), scores_of(content, start, stop, tables)
        if allowed is not None:
            passing = np.unpackbits(allowed[start // 8 : -(-stop // 8)], bitorder="little")[start % 8 :][: stop - start]
            here, values = here[passing.astype(bool)], values[passing.astype(bool)]
        positions.append(here)
        scores.append(values)
    return best_places(np.concatenate(positions), np.concatenate(scores), k)
