"""The best k of a row of scores, in the one order of results."""

from collections.abc import Sequence

import numpy as np

from repconc.records import Hit, in_order


def best(scores: np.ndarray, ids: Sequence[str], k: int) -> list[Hit]:
    """The k hits of highest score; a score of minus infinity means that the document is out.

    All documents tied with the k-th are considered, so that ties break by id and not by chance.
    """
    kth = np.partition(scores, -k)[-k] if k < len(scores) else -np.inf
    places = np.flatnonzero((scores >= kth) & (scores > -np.inf))
    return in_order(Hit(ids[place], float(scores[place])) for place in places.tolist())[:k]
