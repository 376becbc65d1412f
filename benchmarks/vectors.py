"""Suite `vectors`: how long it takes to compress given vectors, and how much memory ten million of them need.

Time: MiniLM-L6 vectors of HotpotQA at 24 bytes, from files to the index. Memory: a synthetic file of ten million
vectors of 768 dimensions in float16, drawn around random centres; anonymous memory is what the process cannot give
back, unlike pages of the mapped file. Learning is cut short there: more of its steps need no more memory.
"""

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.compression import Bench
from benchmarks.figures import Figure, status
from repconc.compression.compress import run as compress
from repconc.compression.given import open_given
from repconc.files import cache_directory
from repconc.quantization.opq import train_opq
from repconc.training.recipe import Recipe, make_recipe, read_recipe

BYTES = 24
MANY, QUICK_MANY, WIDE = 10_000_000, 100_000, 768
AT_A_TIME = 1 << 15


def run(quick: bool) -> Iterator[Figure]:
    bench = Bench("hotpotqa", 0)
    train = bench.asked("train")
    sample = bench.all.vectors[: 1 << 16]
    seconds = _seconds(lambda: train_opq(sample, BYTES, turns=2 if quick else 50))
    yield Figure("OPQ", seconds, "s", goal=None if quick else "<= 60")
    for mode in ("queries", "labels"):
        given = open_given(
            bench.vectors,
            queries=train.vectors,
            query_ids=train.ids,
            qrels=bench.dataset.qrels("train") if mode == "labels" else None,
        )
        recipe = _recipe(mode, short=quick)
        with tempfile.TemporaryDirectory(dir=cache_directory()) as scratch:
            seconds = _seconds(partial(compress, given, Path(scratch) / "index", bytes=BYTES, recipe=recipe))
        yield Figure(f"mode {mode}, from files to the index", seconds, "s", goal=None if quick else "<= 360")
    yield from _many(QUICK_MANY if quick else MANY, quick)


_SHORT = {"stage_one": {"epochs": 0.1}, "stage_two": {"epochs": 0.05}, "quantizer": {"turns": 2}}


def _recipe(mode: str, short: bool) -> Recipe:
    """short: the same steps on the same batches, but few of them."""
    values = read_recipe(f"compress-{mode}")
    changed = {table: values.get(table, {}) | few for table, few in _SHORT.items()} if short else {}
    return make_recipe(values | changed)


def _many(count: int, quick: bool) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(dir=cache_directory()) as scratch:
        path = Path(scratch) / "vectors.npy"
        _write(path, count)
        recipe = _recipe("documents", short=True)
        with _Anonymous() as memory:
            seconds = _seconds(lambda: compress(open_given(path), Path(scratch) / "index", bytes=48, recipe=recipe))
    name = f"{count:,} x {WIDE}, mode documents, 48 bytes"
    yield Figure(f"{name}: peak of anonymous memory", memory.peak / 2**30, "GB", goal=None if quick else "<= 4")
    yield Figure(f"{name}: from file to the index, with short learning", seconds, "s")


def _write(path: Path, count: int) -> None:
    random = np.random.default_rng(0)
    centres = random.normal(size=(1000, WIDE)).astype(np.float32)
    target = np.lib.format.open_memmap(path, "w+", np.float16, (count, WIDE))
    for start in range(0, count, AT_A_TIME):
        part = target[start : start + AT_A_TIME]
        part[:] = centres[random.integers(0, 1000, len(part))] + random.normal(size=part.shape)
    target.flush()


class _Anonymous:
    """The most anonymous memory that the process had, looked at every tenth of a second."""

    peak = 0

    def __enter__(self) -> "_Anonymous":
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(0.1):
            self.peak = max(self.peak, status("RssAnon"))


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
