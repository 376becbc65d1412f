"""What a compared method is. Every file of this folder has the same anatomy:

    head        what it is, and who made it
    NAME        as it stands in tables
    fixed       dimension -> bytes, where its size is not ours to choose

and one of these:

    fit         document vectors [n, D], bytes, seed -> a `Coder`, which turns ids and vectors into something to search
    train       a trainer after dense training, and after OPQ unless the size is fixed -> the states of its phases;
                beside it `recipe`, where the method changes settings
    dense       a recipe -> the phases that train it uncompressed

Sizes: N documents, D dimensions, Q queries.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from repconc.codec import Codec
from repconc.indexes.codes import CodeIndex
from repconc.records import Hit, in_order
from repconc.training.recipe import Recipe

DOCUMENTS_AT_A_TIME = 1 << 14


class Searchable(Protocol):
    """Documents that can be searched with query vectors."""

    def search(self, queries: np.ndarray, k: int = 10) -> list[list[Hit]]: ...


@dataclass(frozen=True)
class Compressed:
    """Coded documents, and all that must be in memory to search them."""

    index: Searchable
    bytes: float
    """A document."""
    shared: int
    """Bytes beside, once: codebooks, rotations, ranges."""


Coder = Callable[[Sequence[str], np.ndarray], Compressed]
Places = Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]]
"""Queries [Q, D] and k -> scores [Q, k] and numbers of documents [Q, k]; -1 where there are no more."""


class Numbered:
    """Search that speaks of documents by number, with their ids put back."""

    def __init__(self, ids: Sequence[str], places: Places) -> None:
        self._ids, self._places = ids, places

    def search(self, queries: np.ndarray, k: int = 10) -> list[list[Hit]]:
        scores, numbers = self._places(np.ascontiguousarray(queries, np.float32), min(k, len(self._ids)))
        return [
            in_order(Hit(self._ids[number], score) for number, score in zip(row, values, strict=True) if number >= 0)
            for row, values in zip(numbers.tolist(), scores.tolist(), strict=True)
        ]


class Mapped:
    """Search with queries that go through a map first."""

    def __init__(self, inner: Searchable, change: Callable[[np.ndarray], np.ndarray]) -> None:
        self._inner, self._change = inner, change

    def search(self, queries: np.ndarray, k: int = 10) -> list[list[Hit]]:
        return self._inner.search(self._change(queries), k)


def one_stage(base: Recipe) -> Recipe:
    """For trained methods with one stage of the two: it gets the epochs of both, and as many measurements on dev."""
    first, second = base.stage_one, base.stage_two
    whole = {"epochs": first.epochs + second.epochs, "evaluations": first.evaluations + second.evaluations}
    return base.model_copy(
        update={"stage_one": first.model_copy(update=whole), "stage_two": second.model_copy(update=whole)}
    )


def product_coder(coding: Codec, scoring: Codec | None = None) -> Coder:
    """Product codes of any origin, searched by our scan. scoring: where queries have codebooks of their own."""
    asked = scoring or coding

    def code(ids: Sequence[str], documents: np.ndarray) -> Compressed:
        return Compressed(CodeIndex(ids, coding.encode(documents), asked, coding), coding.blocks, asked.nbytes)

    return code


def restored_search(codes: np.ndarray, restore: Callable[[np.ndarray], np.ndarray]) -> Places:
    """Exhaustive search over codes [N, n] that are turned back into vectors [., D] a block at a time."""

    def places(queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        scores: np.ndarray = np.empty((len(queries), 0), np.float32)
        numbers: np.ndarray = np.empty((len(queries), 0), np.int64)
        for start in range(0, len(codes), DOCUMENTS_AT_A_TIME):
            block = queries @ restore(codes[start : start + DOCUMENTS_AT_A_TIME]).T  # [Q, block]
            here = np.broadcast_to(np.arange(start, start + block.shape[1]), block.shape)
            scores, numbers = np.hstack([scores, block]), np.hstack([numbers, here])
            if scores.shape[1] > k:
                best = np.argpartition(-scores, k - 1, axis=1)[:, :k]
                scores, numbers = (np.take_along_axis(part, best, axis=1) for part in (scores, numbers))
        return scores, numbers

    return places
