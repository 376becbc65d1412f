"""Suite `index`: the size, the build, the opening and the speed of an index of 8.8 million documents.

Codes are synthetic, drawn around real ones: each is a copy of the OPQ code of a HotpotQA paragraph (MiniLM-L6, 48
bytes) with three in ten of its bytes taken from another paragraph. Codebooks have 768 dimensions, as in the paper. The
rival is faiss' IndexIVFPQ over the same codes, lists and probes, one thread.
"""

import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import faiss
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.baselines import vectors_of
from benchmarks.figures import Figure, interleaved, status
from repconc import Document, Vectors, load_dataset
from repconc.codec import Codec
from repconc.data.catalogue import folder_of, get
from repconc.files import cache_directory
from repconc.indexes.faiss_export import to_faiss
from repconc.indexes.ivf import Index
from repconc.indexes.manifest import MANIFEST
from repconc.indexes.writing import Batches, add, build
from repconc.quantization.opq import train_opq

DOCUMENTS, QUICK_DOCUMENTS = 8_841_823, 100_000
DIMENSION, BLOCKS = 768, 48
QUERIES, PROBES, K = 64, 64, 100
AT_A_TIME = 1 << 17


def run(quick: bool) -> Iterator[Figure]:
    count = QUICK_DOCUMENTS if quick else DOCUMENTS
    real = real_codes()
    with tempfile.TemporaryDirectory(dir=cache_directory()) as scratch:
        folder = Path(scratch) / "index"
        yield from _build(folder, real, _codec(BLOCKS), count)
        yield from _sizes(Index(folder), count, quick)
        opening, memory = _opening(folder)
        yield Figure("opening", opening, "s", goal="<= 1")
        bytes_in_memory = memory + sum(Index(folder).sizes()[part] for part in ("codes", "lists", "removed"))
        goal = None if quick else "<= 1.04"
        yield Figure("memory over codes, 48 bytes", bytes_in_memory / (BLOCKS * count), "x", goal=goal)
        yield from _speed(Index(folder), real, quick)
        yield from _adding(folder, real)


def kept_index(quick: bool) -> Index:
    """The same index, built once and kept in the cache, for other suites."""
    count = QUICK_DOCUMENTS if quick else DOCUMENTS
    folder = cache_directory() / "benchmarks" / f"index-{count}"
    if (folder / MANIFEST).exists():
        return Index(folder)
    shutil.rmtree(folder, ignore_errors=True)  # a build that was killed
    folder.parent.mkdir(exist_ok=True)
    codec = _codec(BLOCKS)
    return build(folder, _batches(real_codes(), count), coding=codec, scoring=codec)


def queries_of(index: Index, real: np.ndarray) -> np.ndarray:
    random = np.random.default_rng(5)
    chosen = real[random.permutation(len(real))[:QUERIES]]
    noise = 0.02 * random.normal(size=(QUERIES, DIMENSION)).astype(np.float32)
    return np.asarray(index.scoring.decode(chosen) + noise)


def _build(folder: Path, real: np.ndarray, codec: Codec, count: int) -> Iterator[Figure]:
    with _Peak() as peak:
        start = time.perf_counter()
        index = build(folder, _batches(real, count), coding=codec, scoring=codec)
        seconds = time.perf_counter() - start
    yield Figure("build", seconds, "s")
    yield Figure("build, peak anonymous memory over the index", peak.bytes / index.nbytes, "x", goal="<= 2")


def _sizes(index: Index, count: int, quick: bool) -> Iterator[Figure]:
    """What must be in memory to search; with 16 bytes a document all but the codes stays as large."""
    goal = None if quick else "<= 1.04"
    yield Figure("index over codes, 48 bytes", index.nbytes / (BLOCKS * count), "x", goal=goal)
    narrow = index.nbytes - (BLOCKS - 16) * count
    yield Figure("index over codes, 16 bytes", narrow / (16 * count), "x")


OPEN = """
import sys, time
import numpy as np
from benchmarks.figures import status
from benchmarks.index import DIMENSION
from repconc.indexes.ivf import Index
from repconc.kernel import kernel
kernel()
before, start = status("RssAnon"), time.perf_counter()
index = Index(sys.argv[1])
seconds = time.perf_counter() - start
index.search(np.ones(DIMENSION, np.float32))
print(seconds, max(0, status("RssAnon") - before))
"""


def _opening(folder: Path) -> tuple[float, int]:
    """Seconds of a fresh process after its imports, and its anonymous memory after a search (codebooks, tables)."""
    command = [sys.executable, "-c", OPEN, str(folder)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(output.split()[0]), int(output.split()[1])


def _speed(index: Index, real: np.ndarray, quick: bool) -> Iterator[Figure]:
    queries = queries_of(index, real)
    rival, _ = to_faiss(index)
    rival.nprobe = min(PROBES, index.manifest.lists)
    faiss.omp_set_num_threads(1)
    against = (
        f"faiss IndexIVFPQ {faiss.__version__}: {len(index):,} documents, {PROBES} of {index.manifest.lists} lists"
    )
    with threadpool_limits(1):
        index.search(queries, K, probes=PROBES)  # every block is verified once
        for size in (1, 32):
            cut = [queries[start : start + size] for start in range(0, QUERIES, size)]
            ours = partial(_search_all, partial(index.search, k=K, probes=PROBES), cut)
            theirs = partial(_search_all, partial(rival.search, k=K), cut)
            seconds = interleaved({"ours": ours, "faiss": theirs}, 3 if quick else 9)
            yield Figure(f"milliseconds a query, batches of {size}", 1e3 * seconds["ours"] / QUERIES, "ms")
            yield Figure(f"speed, batches of {size}", seconds["faiss"] / seconds["ours"], "x", against, ">= 1")


def _search_all(search: Callable[[np.ndarray], object], batches: list[np.ndarray]) -> None:
    for batch in batches:
        search(batch)


def _adding(folder: Path, real: np.ndarray) -> Iterator[Figure]:
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir() if path.name[0].isdigit()}
    start = time.perf_counter()
    add(folder, _batches(real, 1000, prefix="new"))
    yield Figure("adding 1,000 documents", time.perf_counter() - start, "s")
    rewritten = sum(path.stat().st_mtime_ns != then for path, then in before.items())
    written = sum(path.stat().st_size for path in folder.iterdir() if path not in before)
    yield Figure("files rewritten by that", rewritten, "files", goal="<= 0")
    yield Figure("bytes written by that", written, "bytes")


def _batches(real: np.ndarray, count: int, prefix: str = "d") -> Batches:
    random = np.random.default_rng(len(prefix))
    for start in range(0, count, AT_A_TIME):
        n = min(AT_A_TIME, count - start)
        codes = real[random.integers(0, len(real), n)]
        others = real[random.integers(0, len(real), n)]
        yield (
            [Document(f"{prefix}{number}", "") for number in range(start, start + n)],
            np.where(random.random(codes.shape) < 0.3, others, codes),
        )


def real_codes() -> np.ndarray:
    if not folder_of("hotpotqa").is_dir():
        get("hotpotqa")
    vectors = Vectors(vectors_of(load_dataset(folder_of("hotpotqa")), "minilm"))
    matrix = np.concatenate(list(vectors.blocks()))
    return train_opq(matrix[::8], BLOCKS, turns=2, final=5).encode(matrix)


def _codec(blocks: int) -> Codec:
    books = np.random.default_rng(1).normal(size=(blocks, 256, DIMENSION // blocks)).astype(np.float32)
    return Codec(books / np.float32(np.sqrt(DIMENSION)), DIMENSION)


class _Peak:
    """The most anonymous memory above that of the loaded process, looked up twenty times a second."""

    def __enter__(self) -> "_Peak":
        self._before, self._most, self._over = status("RssAnon"), 0, threading.Event()
        self._watcher = threading.Thread(target=self._watch)
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._watcher.join()

    @property
    def bytes(self) -> int:
        return max(0, self._most - self._before)

    def _watch(self) -> None:
        while not self._over.wait(0.05):
            self._most = max(self._most, status("RssAnon"))
