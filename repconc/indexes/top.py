"""The best k of a row of scores, in the one order of results."""

from collections.abc import Sequence

import numpy as np

from repconc.records import Hit, in_order


def best(scores: np.ndarray, ids: Sequence[str], k: int) -> list[Hit]:
    """The k hits of highest score; a score of minus infinity means that the document is out.

    All documents tied with the k-th are considered, so that ties break by id and not by chance.
    """
    places, values = best_places(np.arange(len(scores)), scores, k)
    found = zip(places.tolist(), values.tolist(), strict=True)
    return in_order(Hit(ids[place], value) for place, value in found if value > -np.inf)[:k]


def best_places(places: np.ndarray, scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The places and scores of the k best and of all that tie with the k-th; in the order in which they stand."""
    if k < len(scores):
        kept = scores >= np.partition(scores, -k)[-k]
        places, scores = places[kept], scores[kept]
    return places, scores
