"""Suite `scan`: the native scan against faiss, from query vectors to ids, one thread and two.

Exhaustive: 2^20 documents, and 2^18, which at 48 bytes leave room in a cache that is shared. From memory: 8.8 million,
beside a plain sum over the same bytes. Codes of these scans are random: how fast they are read does not depend on what
they say. Inverted files: the 8.8 million documents of
the suite `index`, which are built first where they are not in the cache yet.

The rivals hold as many bytes a document: faiss IndexPQ the same codes, IndexPQFastScan twice as many of four bits.
"""

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import faiss
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.figures import Figure, interleaved
from benchmarks.index import DIMENSION, PROBES, kept_index, queries_of, real_codes
from repconc.codec import Codec
from repconc.indexes.blocks import to_blocks
from repconc.indexes.faiss_export import to_faiss
from repconc.indexes.scan import scan

LARGE, SMALL, FROM_MEMORY, QUICK = 1 << 20, 1 << 18, 8_841_823, 1 << 16
QUERIES, BATCH = 32, 32
Search = Callable[[np.ndarray], object]


def run(quick: bool) -> Iterator[Figure]:
    repeats = 3 if quick else 9
    for threads in (1, 2):
        faiss.omp_set_num_threads(threads)
        with threadpool_limits(threads):
            for M in (16, 48, 96):
                yield from _exhaustive(QUICK if quick else LARGE, M, threads, repeats)
            if not quick:
                yield from _exhaustive(SMALL, 48, threads, repeats)
            yield from _memory(QUICK if quick else FROM_MEMORY, threads, repeats)
            yield from _inverted(quick, threads, repeats)
    yield from _without_avx512(quick)


def _without_avx512(quick: bool) -> Iterator[Figure]:
    """The same inverted file in a process that may use AVX2 only."""
    code = f"from benchmarks.scan import print_ratio; print_ratio({quick})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"REPCONC_KERNEL": "avx2"},
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    rival = f"faiss IndexIVFPQ {faiss.__version__}"
    yield Figure(f"AVX2, {PROBES} lists, k 100, single queries, one thread", float(done.stdout), "x", rival, ">= 1")


def print_ratio(quick: bool) -> None:
    faiss.omp_set_num_threads(1)
    with threadpool_limits(1):
        index = kept_index(quick)
        queries = queries_of(index, real_codes())
        rival, _ = to_faiss(index)
        rival.nprobe = min(PROBES, index.manifest.lists)
        index.search(queries, 100, probes=PROBES)
        searches = {
            "ours": _each(partial(index.search, k=100, probes=PROBES), [query[None] for query in queries]),
            "faiss": _each(partial(rival.search, k=100), [query[None] for query in queries]),
        }
        seconds = interleaved(searches, 3 if quick else 9)
    print(seconds["faiss"] / seconds["ours"])


def _exhaustive(count: int, M: int, threads: int, repeats: int) -> Iterator[Figure]:
    systems = _Exhaustive(count, M, threads)
    judged = M == 48 and threads == 1 and count == LARGE
    for k in (10, 100):
        for batch in (1, BATCH):
            seconds = interleaved(systems.searches(k, batch), repeats)
            name = f"{count:,} documents, {M} bytes, k {k}, batches of {batch}, {_threads(threads)}"
            rate = QUERIES * count / seconds["ours"] / 1e6
            yield Figure(name, rate, "million documents x queries / s")
            goals = {"IndexPQ": ">= 5", "IndexPQFastScan": ">= 3"} if batch == 1 else {"IndexPQFastScan": ">= 1.2"}
            for rival in ("IndexPQ", "IndexPQFastScan"):
                ratio = seconds[rival] / seconds["ours"]
                yield Figure(
                    name, ratio, "x", f"faiss {rival} {faiss.__version__}", goals.get(rival) if judged else None
                )


def _memory(count: int, threads: int, repeats: int) -> Iterator[Figure]:
    systems = _Exhaustive(count, 48, threads)
    library = _bandwidth()
    for batch in (1, BATCH):
        searches = systems.searches(10, batch, queries=BATCH if batch > 1 else 4)
        del searches["IndexPQ"]
        if batch == 1 and threads == 1 and library is not None:
            searches["sum"] = lambda: [library(systems.content.ctypes.data, systems.content.size) for _ in range(4)]
        seconds = interleaved(searches, repeats)
        name = f"{count:,} documents, 48 bytes, k 10, batches of {batch}, {_threads(threads)}"
        searched = BATCH if batch > 1 else 4
        yield Figure(name, searched * count / seconds["ours"] / 1e6, "million documents x queries / s")
        goal = ">= 1.7" if batch == 1 and threads == 1 else None
        rival = f"faiss IndexPQFastScan {faiss.__version__}"
        yield Figure(name, seconds["IndexPQFastScan"] / seconds["ours"], "x", rival, goal)
        if "sum" in seconds:
            yield Figure(name, seconds["sum"] / seconds["ours"], "x", "a sum over the same bytes, AVX-512", ">= 0.8")


def _inverted(quick: bool, threads: int, repeats: int) -> Iterator[Figure]:
    index = kept_index(quick)
    queries = queries_of(index, real_codes())
    rival, _ = to_faiss(index)
    for probes in (16, 64, 256):
        rival.nprobe = min(probes, index.manifest.lists)
        index.search(queries, 100, probes=probes)  # every block is verified once
        for k in (10, 100):
            for batch in (1, BATCH):
                cut = [queries[start : start + batch] for start in range(0, len(queries), batch)]
                searches = {
                    "ours": _each(partial(index.search, k=k, threads=threads, probes=probes), cut),
                    "faiss": _each(partial(rival.search, k=k), cut),
                }
                seconds = interleaved(searches, repeats)
                name = f"{probes} of {index.manifest.lists} lists, k {k}, batches of {batch}, {_threads(threads)}"
                yield Figure(name, 1e3 * seconds["ours"] / len(queries), "ms")
                goal = ">= 5" if probes >= 64 and threads == 1 and not quick else None
                yield Figure(
                    name, seconds["faiss"] / seconds["ours"], "x", f"faiss IndexIVFPQ {faiss.__version__}", goal
                )


class _Exhaustive:
    """One list of random codes, and faiss over as many bytes."""

    def __init__(self, count: int, M: int, threads: int) -> None:
        random = np.random.default_rng(M)
        width = DIMENSION // M
        books = random.normal(size=(M, 256, width)).astype(np.float32) / np.float32(np.sqrt(DIMENSION))
        self.codec, self.threads = Codec(books, DIMENSION), threads
        codes = random.integers(0, 256, (count, M), dtype=np.uint8)
        self.content = to_blocks(codes)
        self.queries = random.normal(size=(QUERIES, DIMENSION)).astype(np.float32)
        self.whole = faiss.IndexPQ(DIMENSION, M, 8, faiss.METRIC_INNER_PRODUCT)
        faiss.copy_array_to_vector(books.ravel(), self.whole.pq.centroids)
        _fill(self.whole, codes, count)
        halves = faiss.IndexPQ(DIMENSION, 2 * M, 4, faiss.METRIC_INNER_PRODUCT)
        small = random.normal(size=2 * M * 16 * (DIMENSION // (2 * M))).astype(np.float32)
        faiss.copy_array_to_vector(small, halves.pq.centroids)
        _fill(halves, codes, count)
        self.fast = faiss.IndexPQFastScan(halves)  # type: ignore[arg-type]

    def searches(self, k: int, batch: int, queries: int = QUERIES) -> dict[str, Callable[[], object]]:
        cut = [self.queries[start : start + batch] for start in range(0, queries, batch)]
        stops = np.full((batch, 1), self.content.size // self.codec.blocks)

        def ours(part: np.ndarray) -> object:
            tables = self.codec.tables(part)
            return scan(self.content, tables, np.zeros_like(stops), stops, k, threads=self.threads)

        return {
            "ours": _each(ours, cut),
            "IndexPQ": _each(lambda part: self.whole.search(part, k), cut),
            "IndexPQFastScan": _each(lambda part: self.fast.search(part, k), cut),
        }


def _fill(index: faiss.IndexPQ, codes: np.ndarray, count: int) -> None:
    faiss.copy_array_to_vector(codes.ravel(), index.codes)
    index.is_trained, index.ntotal = True, count


def _each(search: Search, batches: list[np.ndarray]) -> Callable[[], object]:
    return lambda: [search(batch) for batch in batches]


def _threads(count: int) -> str:
    return "one thread" if count == 1 else f"{count} threads"


def _bandwidth() -> Callable[[int, int], int] | None:
    """The plain sum, compiled here; None where there is no compiler or no AVX-512."""
    compiler = shutil.which("c++")
    if compiler is None or "avx512f" not in Path("/proc/cpuinfo").read_text():
        return None
    with tempfile.TemporaryDirectory() as scratch:
        source, target = Path(__file__).parent / "rivals" / "bandwidth.cpp", Path(scratch) / "bandwidth.so"
        command = [compiler, "-O3", "-std=c++20", "-mavx512f", "-shared", "-fPIC", str(source), "-o", str(target)]
        subprocess.run(command, check=True)
        function = ctypes.CDLL(str(target)).sum_of_words
    function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_size_t], ctypes.c_uint64
    return function
