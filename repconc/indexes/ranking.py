"""What was found in the segments of an index -> the best k of each query, in the one order of results."""

from itertools import repeat
from typing import NamedTuple, TypeAlias

import numpy as np

from repconc.indexes.segment import SegmentReader


class Part(NamedTuple):
    """What was found in a segment."""

    segment: SegmentReader
    positions: np.ndarray
    scores: np.ndarray


Row: TypeAlias = tuple[float, str, int, int]
"""Score, id, the part that it was found in, and its number there."""


def rank(found: list[list[Part]], k: int) -> list[list[Row]]:
    """The best k of what was found for each query in all segments and rounds.

    A segment is asked once for the ids of all queries.
    """
    rows: list[list[Row]] = [[] for _ in found]
    shares: dict[SegmentReader, list[tuple[int, int, np.ndarray, np.ndarray]]] = {}
    for query, parts in enumerate(found):
        least = _least(parts, k)
        for owner, (segment, positions, scores) in enumerate(parts):
            kept = slice(None) if least == -np.inf else scores >= least
            shares.setdefault(segment, []).append((query, owner, positions[kept], scores[kept]))
    for segment, pieces in shares.items():
        numbers = segment.numbers.take(np.concatenate([positions for _, _, positions, _ in pieces]))
        ids, plain = segment.documents.ids_of(numbers), numbers.tolist()
        values, start = np.concatenate([scores for _, _, _, scores in pieces]).tolist(), 0
        for query, owner, positions, _ in pieces:
            part = slice(start, start + len(positions))
            rows[query] += zip(values[part], ids[part], repeat(owner), plain[part])
            start += len(positions)
    for own in rows:
        own.sort(reverse=True)  # by score, then by id: the one order of records.py
    return [own[:k] for own in rows]


def _least(parts: list[Part], k: int) -> float:
    """The k-th score; a single part holds the k best and what ties with the last of them already."""
    if len(parts) < 2 or sum(len(part.scores) for part in parts) <= k:
        return -np.inf
    return float(np.partition(np.concatenate([part.scores for part in parts]), -k)[-k])
