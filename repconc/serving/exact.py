"""The uncompressed ranking of an index's documents, to be looked at beside the compressed one."""

import numpy as np

from repconc.indexes.filters import Filter, condition_of
from repconc.indexes.flat import FlatIndex
from repconc.indexes.ivf import Index, Place
from repconc.indexes.segment import SegmentReader
from repconc.indexes.stopwatch import Stopwatch
from repconc.records import Hit, Hits


def rank_exactly(
    index: Index, exact: FlatIndex, queries: np.ndarray, k: int, tree: Filter | None, text: bool, watch: Stopwatch
) -> list[Hits]:
    """The k best documents of each query that the index holds and that pass the filter. queries: [B, D]"""
    passing = None if tree is None else [_passing(segment, tree) for segment in index.segments]
    found = [_best(index, exact, query, k, passing) for query in queries]
    watch.lap("scan")
    if not text:
        return [[hit for hit, _ in best] for best in found]
    hits = [[hit._replace(document=place.segment.documents.get(place.number)) for hit, place in best] for best in found]
    watch.lap("documents")
    return hits


def _best(
    index: Index, exact: FlatIndex, query: np.ndarray, k: int, passing: list[set[int]] | None
) -> list[tuple[Hit, Place]]:
    """Ask for more until k pass: vectors know nothing of filters and removals."""
    wanted = k
    while True:
        kept = []
        for hit in exact.search(query, wanted)[0]:
            place = index.find(hit.id)
            if place is not None and (passing is None or place.number in passing[index.segments.index(place.segment)]):
                kept.append((hit, place))
        if len(kept) >= k or wanted >= len(exact):
            return kept[:k]
        wanted = min(4 * wanted, len(exact))


def _passing(segment: SegmentReader, tree: Filter) -> set[int]:
    """The numbers of the documents of a segment that pass."""
    return set(segment.documents.matching(*condition_of(tree, segment.documents.columns)).tolist())
