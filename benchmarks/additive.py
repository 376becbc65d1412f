"""Suite `additive`: what whole codewords cost beside blocks of them: tables, scan, search and coding.

Random codebooks and codes: time does not depend on what they hold. Tables of D = 768, M = 48; documents coded with
D = 384, M = 24. Additive codes lie by classes of lengths, as those of vectors of length 1 do. One thread where nothing
else is said.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.figures import Figure, interleaved
from repconc.additive import AdditiveCodec
from repconc.codec import Codec
from repconc.indexes.blocks import to_blocks
from repconc.indexes.codes import CodeIndex
from repconc.indexes.scan import scan
from repconc.lengths import learn_lengths

M, K, D, BATCH = 48, 256, 768, 32
RIVAL = "product codes of the same bytes"


def run(quick: bool) -> Iterator[Figure]:
    random = np.random.default_rng(0)
    books = random.normal(size=(M, K, D)).astype(np.float32)
    some = random.integers(0, K, (4096, M), np.uint8)
    additive, product = AdditiveCodec(books, D), Codec(books[:, :, : D // M].copy(), D)
    additive = replace(additive, lengths=learn_lengths(additive.decode(some)))
    queries = random.normal(size=(BATCH, D)).astype(np.float32)
    repeats = 5 if quick else 30
    with threadpool_limits(1):
        yield from _tables(additive, product, queries, repeats)
        yield from _searches(additive, product, queries, 100_000 if quick else 1_000_000, repeats)
    yield from _coding(2_000 if quick else 20_000)


def _tables(additive: Codec, product: Codec, queries: np.ndarray, repeats: int) -> Iterator[Figure]:
    seconds = interleaved(
        {
            "one": lambda: additive.tables_of(queries[:1]),
            "batch": lambda: additive.tables_of(queries),
            "product": lambda: product.tables_of(queries[:1]),
        },
        repeats,
    )
    yield Figure("tables, one query", 1000 * seconds["one"], "ms", goal="<= 1.5")
    yield Figure(f"tables, a query of a batch of {BATCH}", 1000 * seconds["batch"] / BATCH, "ms", goal="<= 0.2")
    yield Figure("tables, one query, product", 1000 * seconds["product"], "ms")


def _searches(additive: Codec, product: Codec, queries: np.ndarray, documents: int, repeats: int) -> Iterator[Figure]:
    codes = np.random.default_rng(1).integers(0, K, (documents, M), np.uint8)
    content, starts = to_blocks(codes), np.zeros((BATCH, 1), np.int64)
    tables = {"additive": additive.tables_of(queries), "product": product.tables_of(queries)}
    seconds = interleaved(
        {name: partial(scan, content, own, starts, starts + documents, 10) for name, own in tables.items()},
        max(3, repeats // 5),
    )
    yield Figure("scan", seconds["additive"] / seconds["product"], "x", RIVAL, "<= 1.1")
    ids = [str(number) for number in range(documents)]
    indexes = {"additive": CodeIndex(ids, codes, additive), "product": CodeIndex(ids, codes, product)}
    for count in (1, BATCH):
        seconds = interleaved(
            {name: partial(own.search, queries[:count], 10) for name, own in indexes.items()},
            max(3, repeats // 3),
        )
        name = f"whole search of {documents:,} documents, {count} at a time"
        yield Figure(name, 1000 * seconds["additive"] / count, "ms a query")
        yield Figure(f"{name}, ratio", seconds["additive"] / seconds["product"], "x", RIVAL)
    shared = {name: own.nbytes - codes.nbytes for name, own in indexes.items()}
    yield Figure("codebooks", shared["additive"] / 1e6, "MB")
    yield Figure("codebooks, product", shared["product"] / 1e6, "MB")


def _coding(documents: int) -> Iterator[Figure]:
    random = np.random.default_rng(2)
    codec = AdditiveCodec(random.normal(size=(24, K, 384)).astype(np.float32), 384)
    vectors = random.normal(size=(documents, 384)).astype(np.float32)
    seconds = interleaved({"coding": lambda: codec.encode(vectors)}, 3)["coding"]
    cores = len(os.sched_getaffinity(0))
    yield Figure(f"documents coded, {cores} cores, D = 384, M = 24", documents / seconds, "a second", goal=">= 2000")
