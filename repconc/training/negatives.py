"""Search while training: hard negatives, mined once or searched at every step (paper, 3.6.2), and dev queries.

Sizes: B queries, N documents, D dimensions, n negatives.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from repconc.codec import Codec
from repconc.indexes.codes import ByClass
from repconc.kernel import kernel
from repconc.quantization.quantizer import Quantizer
from repconc.training.picked import picked_products

DOCUMENTS_AT_A_TIME = 1 << 16
QUERIES_AT_A_TIME = 256


class Searchable(Protocol):
    """Documents to search for negatives."""

    def blocks(self) -> Iterator[Tensor]:
        """The vectors that are searched, [n, D] at a time."""
        ...


class FixedDocuments(Searchable, Protocol):
    """A corpus whose document side does not change any more, while queries learn to search it."""

    def scores(self, queries: Tensor, candidates: Tensor) -> Tensor:
        """[B, D] and numbers [B, n] -> [B, n], with gradients to all that still learns."""
        ...


class Passing:
    """Uncompressed, embedded while they go by: for mining, where the corpus may be larger than memory."""

    def __init__(self, embed: Callable[[np.ndarray], Tensor], count: int) -> None:
        self._embed, self._count = embed, count

    def blocks(self) -> Iterator[Tensor]:
        for start in range(0, self._count, DOCUMENTS_AT_A_TIME):
            yield self._embed(np.arange(start, min(start + DOCUMENTS_AT_A_TIME, self._count)))


class FixedVectors:
    """Uncompressed and in memory, embedded when they are first asked for: ADORE."""

    def __init__(self, embed: Callable[[], Tensor]) -> None:
        self._embed = embed

    @cached_property
    def vectors(self) -> Tensor:
        """[N, D]"""
        return self._embed()

    def blocks(self) -> Iterator[Tensor]:
        yield from torch.split(self.vectors, DOCUMENTS_AT_A_TIME)

    def scores(self, queries: Tensor, candidates: Tensor) -> Tensor:
        return picked_products(queries, self.vectors, candidates)


class FixedCodes:
    """Compressed: codes stay, codebooks learn. Scores are sums of table entries, so no [B, n, D] is formed."""

    def __init__(self, quantizer: Quantizer, codes: Tensor, coding: Codec | None = None) -> None:
        """coding: what documents were coded with; None: the quantizer as it now is."""
        self.quantizer = quantizer
        self.codes = codes  # [N, M] uint8
        self._coding = coding or quantizer.to_coding(codes.cpu().numpy())

    def blocks(self) -> Iterator[Tensor]:
        for start in range(0, len(self.codes), DOCUMENTS_AT_A_TIME):
            part = slice(start, start + DOCUMENTS_AT_A_TIME)
            yield self.quantizer.decode(self.codes[part].long()) * self.gains[part, None]

    def can_be_scanned(self, queries: Tensor) -> bool:
        """Whether the native scan is there and all scores are numbers; else who trains shall see it in the loss."""
        if self.codes.device.type != "cpu" or kernel() is None:
            return False
        whole = self.quantizer.codebooks[:, 0].numel()  # of all codewords of a document
        gain = max(1.0, float(self._coding.gains.max()))
        largest = queries.abs().max() * self.quantizer.codebooks.abs().max() * whole * gain
        return bool(largest < torch.finfo(torch.float32).max)

    @cached_property
    def by_class(self) -> ByClass:
        """The codes as the native scan reads them."""
        return ByClass(self.codes.numpy()[self.order], self._classes[self.order], self._coding.gains)

    @cached_property
    def order(self) -> np.ndarray:
        """[N]: the numbers of documents, class after class."""
        return np.argsort(self._classes, kind="stable")

    @cached_property
    def gains(self) -> Tensor:
        """[N]: what the scores of each document are multiplied by."""
        return torch.from_numpy(self._coding.gains[self._classes]).to(self.codes.device)

    @cached_property
    def _classes(self) -> np.ndarray:
        return self._coding.classes_of(self.codes.cpu().numpy())

    def scores(self, queries: Tensor, candidates: Tensor) -> Tensor:
        tables = self.quantizer.tables(queries)  # [B, M, K]
        codes = self.codes[candidates].long().transpose(1, 2)  # [B, M, n]
        return tables.gather(2, codes).sum(dim=1) * self.gains[candidates]


def top_irrelevant(queries: Tensor, documents: Searchable, relevant: list[np.ndarray], n: int) -> Tensor:
    """[B, D] -> [B, n]: the numbers of the best documents that are not relevant; -1 where there are no more."""
    return top(queries, documents, n, relevant)[1]


@torch.no_grad()
def top(
    queries: Tensor, documents: Searchable, n: int, without: list[np.ndarray] | None = None
) -> tuple[Tensor, Tensor]:
    """[B, D] -> scores [B, n] and numbers [B, n] of the best documents, but for those that a query goes `without`.

    Where there are fewer than n, the rest has the number -1.
    """
    without = without or [np.empty(0, np.int64)] * len(queries)
    best = torch.full((len(queries), n), -torch.inf, device=queries.device)
    numbers = torch.full((len(queries), n), -1, device=queries.device)
    if isinstance(documents, FixedCodes) and documents.can_be_scanned(queries):
        _scan(queries.float(), documents, without, best.numpy(), numbers.numpy())
    else:
        _compare(queries, documents, without, best, numbers)
    return best, numbers.masked_fill_(best == -torch.inf, -1)


def _scan(
    queries: Tensor, documents: FixedCodes, without: list[np.ndarray], best: np.ndarray, numbers: np.ndarray
) -> None:
    """Fill scores and numbers [B, n] by the native scan; nothing is decoded."""
    n, threads = best.shape[1], torch.get_num_threads()
    deepest = n + max((len(known) for known in without), default=0)
    for low in range(0, len(queries), QUERIES_AT_A_TIME):
        tables = documents.quantizer.tables(queries[low : low + QUERIES_AT_A_TIME]).numpy()  # [B, M, K]
        for row, (places, values) in enumerate(documents.by_class.scan(tables, deepest, threads), start=low):
            found = documents.order[places]
            for number in without[row]:
                values[found == number] = -np.inf
            order = np.lexsort((found, -values))[:n]
            best[row, : len(order)], numbers[row, : len(order)] = values[order], found[order]


def _compare(queries: Tensor, documents: Searchable, without: list[np.ndarray], best: Tensor, numbers: Tensor) -> None:
    """The same by inner products on any device. Documents go by once, so that they may be embedded on the way."""
    n = best.shape[1]
    ends = np.cumsum([len(known) for known in without])
    rows = np.repeat(np.arange(len(without)), [len(known) for known in without])
    columns = np.concatenate([np.empty(0, np.int64), *without])
    start = 0
    for block in documents.blocks():
        for low in range(0, len(queries), QUERIES_AT_A_TIME):
            high = min(low + QUERIES_AT_A_TIME, len(queries))
            scores = queries[low:high] @ block.T  # [B, block]
            those = slice(ends[low - 1] if low else 0, ends[high - 1])  # of these queries
            here = (columns[those] >= start) & (columns[those] < start + len(block))
            out = [torch.from_numpy(part[those][here]) for part in (rows - low, columns - start)]
            scores[out[0].to(scores.device), out[1].to(scores.device)] = -torch.inf
            found, places = scores.topk(min(n, len(block)), dim=1)
            merged, order = torch.cat([best[low:high], found], dim=1).topk(n, dim=1)
            numbers[low:high] = torch.cat([numbers[low:high], places + start], dim=1).gather(1, order)
            best[low:high] = merged
        start += len(block)
