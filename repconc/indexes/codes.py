"""Exhaustive search over codes: one look-up table a query, one table entry a byte."""

from collections.abc import Sequence

import numpy as np

from repconc.codec import Codec
from repconc.errors import RepconcError
from repconc.indexes.blocks import to_blocks
from repconc.indexes.queries import in_groups, read_queries, whole_number
from repconc.indexes.scan import scan
from repconc.records import Hit, in_order


class CodeIndex:
    """All documents, scored by the sum of their codewords' inner products with the query."""

    def __init__(self, ids: Sequence[str], codes: np.ndarray, codec: Codec) -> None:
        if len(ids) != len(codes) or not len(ids):
            raise RepconcError(f"There are {len(ids)} ids for {len(codes)} codes; each needs one.")
        self.ids = ids
        self.codec = codec
        self._codes = to_blocks(np.asarray(codes))  # one list of all

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        """Codes, codebooks and map: what must be in memory to search."""
        mapping = self.codec.map.nbytes if self.codec.map else 0
        return self._codes.nbytes + self.codec.codebooks.nbytes + mapping

    def search(self, queries: np.ndarray, k: int = 10, threads: int | None = None) -> list[list[Hit]]:
        """The k best documents of each query. queries: [B, D]"""
        vectors, k = read_queries(queries, self.codec.dimension), whole_number("k", k)
        workers = 1 if threads is None else whole_number("threads", threads)
        hits = []
        for group in in_groups(vectors, self.codec):
            starts = np.zeros((len(group), 1), np.int64)
            tables = self.codec.tables_of(group)
            for places, scores in scan(self._codes, tables, starts, starts + len(self), k, threads=workers):
                found = zip(places.tolist(), scores.tolist(), strict=True)
                hits.append(in_order(Hit(self.ids[place], score) for place, score in found)[:k])
        return hits
