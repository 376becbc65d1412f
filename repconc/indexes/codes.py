"""Exhaustive search over codes: one look-up table a query, one table entry a byte."""

from collections.abc import Sequence

import numpy as np

from repconc.codec import Codec
from repconc.errors import RepconcError
from repconc.indexes.blocks import to_blocks
from repconc.indexes.scan import scan
from repconc.records import Hit, in_order

QUERIES_AT_A_TIME = 64


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
        """Codes, codebooks and rotation: what must be in memory to search."""
        rotation = self.codec.rotation
        return self._codes.nbytes + self.codec.codebooks.nbytes + (rotation.nbytes if rotation is not None else 0)

    def search(self, queries: np.ndarray, k: int = 10, threads: int | None = None) -> list[list[Hit]]:
        """The k best documents of each query. queries: [B, D]"""
        if k < 1:
            raise RepconcError(f"k is {k}; at least one result must be asked for.")
        queries = np.atleast_2d(np.asarray(queries, dtype=np.float32))
        if not np.isfinite(queries).all():
            raise RepconcError("A query vector holds NaN or an infinite value.")
        hits = []
        for start in range(0, len(queries), QUERIES_AT_A_TIME):
            # One at a time: a rotated batch rounds differently from a single query.
            part = queries[start : start + QUERIES_AT_A_TIME]
            tables = np.concatenate([self.codec.tables(query) for query in part])
            starts = np.zeros((len(part), 1), np.int64)
            for places, scores in scan(
                self._codes, tables, starts, starts + len(self), k, threads=1 if threads is None else threads
            ):
                found = zip(places.tolist(), scores.tolist(), strict=True)
                hits.append(in_order(Hit(self.ids[place], score) for place, score in found)[:k])
        return hits
