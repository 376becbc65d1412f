"""Suite `additive`: what whole codewords cost beside blocks of them: tables, scan, search and coding.

Random codebooks and codes: time does not depend on what they hold. Tables of D = 768, M = 48; documents coded with
D = 384, M = 24. Additive codes lie by classes of lengths, as those of vectors of length 1 do. One thread where nothing
else is said.
"""

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.figures import Figure, interleaved
from repconc.additive import AdditiveCodec
from repconc.codec import Codec
from repconc.indexes.blocks import to_blocks
from repconc.indexes.codes import CodeIndex
from repconc.indexes.lists import default_lists
from repconc.indexes.scan import DEPTH, scan

M, K, D, BATCH, PROBES = 48, 256, 768, 32, 64
FIRST = 8
"""Bytes of a code that are scanned alone."""
RIVAL = "product codes of the same bytes"


def run(quick: bool) -> Iterator[Figure]:
    random = np.random.default_rng(0)
    books = random.normal(size=(M, K, D)).astype(np.float32)
    some = random.integers(0, K, (4096, M), np.uint8)
    additive, product = AdditiveCodec(books, D), Codec(books[:, :, : D // M].copy(), D)
    additive = additive.with_lengths(some)
    queries = random.normal(size=(BATCH, D)).astype(np.float32)
    repeats = 5 if quick else 30
    with threadpool_limits(1):
        yield from _tables(additive, product, queries, repeats)
        yield from _searches(additive, product, queries, 100_000 if quick else 1_000_000, repeats)
    yield from _coding(2_000 if quick else 20_000)


def _tables(additive: Codec, product: Codec, queries: np.ndarray, repeats: int) -> Iterator[Figure]:
    rows = additive.floats.reshape(-1, D)
    seconds = interleaved(
        {
            "one": lambda: additive.tables_of(queries[:1]),
            "batch": lambda: additive.tables_of(queries),
            "product": lambda: product.tables_of(queries[:1]),
            "floats": lambda: queries @ rows.T,
        },
        repeats,
    )
    yield Figure("tables, one query", 1000 * seconds["one"], "ms", goal="<= 1.5")
    yield Figure(f"tables, a query of a batch of {BATCH}", 1000 * seconds["batch"] / BATCH, "ms", goal="<= 0.2")
    name = f"tables, a batch of {BATCH}, ratio"
    yield Figure(name, seconds["batch"] / seconds["floats"], "x", "numpy's product of float matrices", "<= 1")
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
    yield from _nested(content, documents, tables["additive"][:1], max(3, repeats // 3))
    ids = [str(number) for number in range(documents)]
    codecs: dict[str, Codec] = {"additive": additive, "product": product}
    indexes = {name: CodeIndex(ids, codes, codec, codec) for name, codec in codecs.items()}
    for count in (1, BATCH):
        searches: dict[str, Callable[[], Any]] = {
            name: partial(own.search, queries[:count], 10) for name, own in indexes.items()
        }
        searches["shortened"] = partial(indexes["additive"].search, queries[:count], 10, first=FIRST, depth=DEPTH)
        seconds = interleaved(searches, max(3, repeats // 3))
        name = f"whole search of {documents:,} documents, {count} at a time"
        yield Figure(name, 1000 * seconds["additive"] / count, "ms a query")
        yield Figure(f"{name}, product", 1000 * seconds["product"] / count, "ms a query")
        yield Figure(f"{name}, ratio", seconds["additive"] / seconds["product"], "x", RIVAL)
        shortened = f"{name}, first {FIRST} bytes, {DEPTH:,} documents scored again, ratio"
        yield Figure(shortened, seconds["shortened"] / seconds["additive"], "x", f"a search of all {M} bytes")
    yield from _lists(codecs, codes, queries, max(3, repeats // 3))
    shared = {name: own.nbytes - codes.nbytes for name, own in indexes.items()}
    yield Figure("codebooks", shared["additive"] / 1e6, "MB")
    yield Figure("codebooks, product", shared["product"] / 1e6, "MB")


def _nested(content: np.ndarray, documents: int, tables: np.ndarray, repeats: int) -> Iterator[Figure]:
    """The first bytes of all codes, then all bytes of the best: a shorter scan with more to sort."""
    start, stop = np.zeros((1, 1), np.int64), np.full((1, 1), documents)
    whole = partial(scan, content, tables, start, stop, 10)
    seconds = interleaved({"whole": whole, "shortened": partial(whole, first=FIRST, depth=DEPTH)}, repeats)
    name = f"scan of the first {FIRST} bytes, {DEPTH:,} documents scored again"
    yield Figure(name, seconds["shortened"] / seconds["whole"], "x", f"a scan of all {M} bytes, one query")


def _lists(codecs: dict[str, Codec], codes: np.ndarray, queries: np.ndarray, repeats: int) -> Iterator[Figure]:
    """Some lists of an inverted file, as long as lists are by default; those of additive codes are cut into classes."""
    scans: dict[str, Callable[[], Any]] = {}
    searches: dict[str, Callable[[], Any]] = {}
    for name, codec in codecs.items():
        C, count = len(codec.gains), default_lists(len(codes))
        cells = np.random.default_rng(3).integers(0, count, len(codes)) * C + codec.classes_of(codes)
        offsets = np.append(0, np.cumsum(np.bincount(cells, minlength=count * C)))
        order = np.argsort(cells, kind="stable")
        content = np.concatenate([to_blocks(part) for part in np.split(codes[order], offsets[C:-1:C])])
        read = np.arange(min(PROBES, count) * C)[None]  # the classes of the first lists
        ranges: dict[str, Any] = {"starts": offsets[read], "stops": offsets[read + 1], "k": 10, "gains": codec.gains}
        scans[name] = partial(scan, content, codec.tables_of(queries[:1]), **ranges)
        searches[name] = partial(_with_tables, codec, queries[:1], content, ranges)
    seconds = interleaved(scans, 5 * repeats)
    yield Figure(f"scan, {PROBES} lists", seconds["additive"] / seconds["product"], "x", RIVAL, "<= 1.1")
    seconds = interleaved(searches, 5 * repeats)
    yield Figure(f"tables and scan of {PROBES} lists, one query", 1000 * seconds["additive"], "ms")
    name = f"tables and scan of {PROBES} lists, one query, ratio"
    yield Figure(name, seconds["additive"] / seconds["product"], "x", RIVAL)


def _with_tables(codec: Codec, query: np.ndarray, content: np.ndarray, ranges: dict[str, Any]) -> None:
    scan(content, codec.tables_of(query), **ranges)


def _coding(documents: int) -> Iterator[Figure]:
    random = np.random.default_rng(2)
    codec = AdditiveCodec(random.normal(size=(24, K, 384)).astype(np.float32), 384)
    vectors = random.normal(size=(documents, 384)).astype(np.float32)
    seconds = interleaved({"coding": lambda: codec.encode(vectors)}, 3)["coding"]
    cores = len(os.sched_getaffinity(0))
    yield Figure(f"documents coded, {cores} cores, D = 384, M = 24", documents / seconds, "a second", goal=">= 2000")
