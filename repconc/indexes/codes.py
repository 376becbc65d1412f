"""Exhaustive search over codes: one look-up table a query, one table entry a byte.

Sizes: N documents, M bytes a code, C classes of lengths (lengths.py).
"""

from collections.abc import Sequence

import numpy as np

from repconc.codec import Codec
from repconc.errors import RepconcError
from repconc.indexes.blocks import to_blocks
from repconc.indexes.queries import in_groups, read_queries, whole_number
from repconc.indexes.scan import Found, depth_for, scan
from repconc.records import Hit, in_order


class ByClass:
    """All codes, class after class, as the scan reads them."""

    def __init__(self, codes: np.ndarray, classes: np.ndarray, gains: np.ndarray) -> None:
        """codes: [N, M], in the order of their classes [N]; gains: [C]"""
        self._gains = gains
        self._stops = np.cumsum(np.bincount(classes, minlength=len(gains)))  # [C]
        self.content = to_blocks(codes)  # one list of all

    def scan(self, tables: np.ndarray, k: int, threads: int, first: int | None = None, depth: int = 0) -> Found:
        """For tables [B, M, K] the places of the best documents and their scores, with all ties, in no order.

        first, depth: as the scan has them.
        """
        stops = np.tile(self._stops, (len(tables), 1))
        starts = np.tile(np.append(0, self._stops[:-1]), (len(tables), 1))
        return scan(
            self.content, tables, starts, stops, k, threads=threads, gains=self._gains, first=first, depth=depth
        )


class CodeIndex:
    """All documents, scored by the sum of their codewords' inner products with the query."""

    def __init__(self, ids: Sequence[str], codes: np.ndarray, codec: Codec, coding: Codec) -> None:
        """codes: [N, M]; codec: what queries are scored with; coding: what documents were coded with."""
        if len(ids) != len(codes) or not len(ids):
            raise RepconcError(f"There are {len(ids)} ids for {len(codes)} codes; each needs one.")
        self.codec = codec
        classes = coding.classes_of(codes)
        order = np.argsort(classes, kind="stable")
        self.ids = [ids[number] for number in order.tolist()]  # as the codes lie
        self._classes = ByClass(np.asarray(codes)[order], classes[order], coding.gains)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        """Codes, codebooks and map: what must be in memory to search; without ids."""
        return self._classes.content.nbytes + self.codec.nbytes

    def search(
        self,
        queries: np.ndarray,
        k: int = 10,
        threads: int | None = None,
        *,
        first: int | None = None,
        depth: int | None = None,
    ) -> list[list[Hit]]:
        """The k best documents of each query. queries: [B, D]

        first: bytes of each code that are scanned, default all; the `depth` best by these are scored with all bytes.
        """
        vectors, k = read_queries(queries, self.codec.dimension), whole_number("k", k)
        workers = 1 if threads is None else whole_number("threads", threads)
        deep = depth_for(k) if depth is None else whole_number("depth", depth)
        hits = []
        for group in in_groups(vectors, self.codec):
            for places, scores in self._classes.scan(self.codec.tables_of(group), k, workers, first, deep):
                found = zip(places.tolist(), scores.tolist(), strict=True)
                hits.append(in_order(Hit(self.ids[place], score) for place, score in found)[:k])
        return hits
