"""Exhaustive search over codes: one look-up table a query, one table entry a byte."""

from collections.abc import Sequence

import numpy as np

from repconc.codec import Codec, score
from repconc.errors import RepconcError
from repconc.indexes.top import best
from repconc.records import Hit


class CodeIndex:
    """All documents, scored by the sum of their codewords' inner products with the query."""

    def __init__(self, ids: Sequence[str], codes: np.ndarray, codec: Codec) -> None:
        if len(ids) != len(codes) or not len(ids):
            raise RepconcError(f"There are {len(ids)} ids for {len(codes)} codes; each needs one.")
        self.ids = ids
        self.codec = codec
        self._codes = np.asfortranarray(codes)  # [N, M]: a block's codes side by side, as the scan reads them

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        """Codes, codebooks and rotation: what must be in memory to search."""
        rotation = self.codec.rotation
        return self._codes.nbytes + self.codec.codebooks.nbytes + (rotation.nbytes if rotation is not None else 0)

    def search(self, queries: np.ndarray, k: int = 10, threads: int | None = None) -> list[list[Hit]]:
        """The k best documents of each query. queries: [B, D]. The scan uses one thread, whatever is asked for."""
        if k < 1:
            raise RepconcError(f"k is {k}; at least one result must be asked for.")
        queries = np.atleast_2d(np.asarray(queries, dtype=np.float32))
        if not np.isfinite(queries).all():
            raise RepconcError("A query vector holds NaN or an infinite value.")
        # One query's tables at a time: the inner products of a batch round differently from those of a single query.
        return [best(score(self.codec.tables(query)[0], self._codes), self.ids, k) for query in queries]
