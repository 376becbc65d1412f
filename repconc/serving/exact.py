"""The uncompressed ranking of an index's documents, to be looked at beside the compressed one.

Vectors know nothing of filters and removals. Where each of their documents lies in a segment is found once, through the
hashes of the ids; what passes is then a mask over all vectors, and one search among those gives the answer.
"""

from weakref import WeakKeyDictionary

import numpy as np

from repconc.indexes.bounds import Bounds
from repconc.indexes.documents import DocumentReader, hashes_of
from repconc.indexes.filters import Filter
from repconc.indexes.flat import FlatIndex
from repconc.indexes.ivf import Index
from repconc.indexes.stopwatch import Stopwatch
from repconc.records import Hits

QUERIES_AT_A_TIME = 8
"""Between two looks at whether anybody still waits."""


class Exact:
    """Uncompressed vectors, and where their documents lie in the segments of an index."""

    def __init__(self, vectors: FlatIndex) -> None:
        self._vectors = vectors
        self._hashes = hashes_of([id.encode(errors="replace") for id in vectors.ids])
        self._known: WeakKeyDictionary[DocumentReader, tuple[np.ndarray, np.ndarray]] = WeakKeyDictionary()

    def rank(
        self,
        index: Index,
        queries: np.ndarray,
        k: int,
        *,
        tree: Filter | None,
        text: bool,
        watch: Stopwatch,
        bounds: Bounds,
    ) -> list[Hits]:
        """The k best documents of each query that the index holds and that pass the filter. queries: [B, D]"""
        passing, hits = self._passing(index, tree, bounds), list[Hits]()
        for start in range(0, len(queries), QUERIES_AT_A_TIME):
            bounds.go_on()
            hits += self._vectors.search(queries[start : start + QUERIES_AT_A_TIME], k, among=passing)
        watch.lap("scan")
        if text:
            hits = [[hit._replace(document=index.get(hit.id, bounds)) for hit in found] for found in hits]
            watch.lap("documents")
        return hits

    def _passing(self, index: Index, tree: Filter | None, bounds: Bounds) -> np.ndarray:
        """[N] bool: which of the vectors belong to a document that is there and passes."""
        mask = np.zeros(len(self._vectors), bool)
        for segment in index.segments:
            bounds.go_on()
            places, numbers = self._places(segment.documents)
            mask[places[segment.passing(tree, bounds)[numbers]]] = True
        return mask

    def _places(self, documents: DocumentReader) -> tuple[np.ndarray, np.ndarray]:
        """The places of those vectors whose documents a segment holds, and the numbers of these documents."""
        if documents not in self._known:
            self._known[documents] = self._find(documents)
        return self._known[documents]

    def _find(self, documents: DocumentReader) -> tuple[np.ndarray, np.ndarray]:
        hashes, owners = documents.hashes()
        slots = np.minimum(np.searchsorted(hashes, self._hashes), len(hashes) - 1)
        places = np.flatnonzero(hashes[slots] == self._hashes)
        numbers = owners[slots[places]].astype(np.int64)
        ids = [self._vectors.ids[place] for place in places.tolist()]
        for row, (id, found) in enumerate(zip(ids, documents.ids_of(numbers), strict=True)):
            if id != found:  # two ids with one hash
                number = documents.number_of(id)
                numbers[row] = -1 if number is None else number
        return places[numbers >= 0], numbers[numbers >= 0]
