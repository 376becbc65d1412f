"""The scan against plain sums, on every path that this machine has: positions, scores and ties, to the bit."""

import itertools
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repconc.codec import Codec
from repconc.errors import RepconcError
from repconc.indexes.blocks import DOCUMENTS, codes_at, to_blocks
from repconc.indexes.scan import WIDEST, scan
from repconc.kernel import kernel
from tests.indexes import test_lists

TABLES = ["normal", "all equal", "one outlier", "tiny", "huge range", "negative"]


def make_tables(kind: str, M: int, K: int, random: np.random.Generator) -> np.ndarray:
    tables = random.normal(size=(M, K)).astype(np.float32)
    if kind == "all equal":
        tables[:] = 0.37
    elif kind == "one outlier":
        tables[random.integers(M), random.integers(K)] = 1e30
    elif kind == "tiny":
        tables *= np.float32(1e-38)
    elif kind == "huge range":
        tables *= np.float32(10.0) ** random.integers(-20, 20, size=(M, 1)).astype(np.float32)
    elif kind == "negative":
        tables = -np.abs(tables)
    return tables


@settings(deadline=None, max_examples=60)
@given(
    M=st.one_of(st.integers(1, 100), st.sampled_from([256, 257, 258])),
    K=st.integers(1, 256),
    sizes=st.lists(st.one_of(st.integers(0, 200), st.just(4500)), min_size=1, max_size=6),
    k=st.integers(1, 300),
    kinds=st.lists(st.sampled_from(TABLES), min_size=1, max_size=3),
    few=st.booleans(),
    share=st.sampled_from([None, 0.0, 0.01, 0.5, 1.0]),
    threads=st.integers(1, 3),
    classes=st.integers(1, 5),
    spread=st.sampled_from([0.0, 0.1, 3.0]),
    read=st.sampled_from([None, 0.0, 0.3, 0.9]),
    depth=st.integers(0, 600),
    seed=st.integers(0, 99),
)
def test_it_gives_the_plain_result(M, K, sizes, k, kinds, few, share, threads, classes, spread, read, depth, seed):
    """kinds: of the tables of each query; few: codes from two values only, so that many tie; share: of the documents
    that a bitmap lets pass; classes: of each list, some of them empty; spread: of the logarithms of their gains;
    read: of the bytes, to find what is then scored with all of them."""
    random = np.random.default_rng(seed)
    tables = np.stack([make_tables(kind, M, K, random) for kind in kinds])
    lists = [random.integers(0, min(K, 2) if few else K, (n, M)).astype(np.uint8) for n in sizes]
    offsets = np.cumsum([0, *sizes])
    probes = random.integers(1, len(sizes) + 1)
    chosen = np.stack([random.permutation(len(sizes))[:probes] for _ in kinds])
    passing = np.ones(offsets[-1], bool) if share is None else random.random(offsets[-1]) < share
    allowed = None if share is None else np.packbits(passing, bitorder="little")
    content = np.concatenate([to_blocks(part) for part in lists])
    gains = np.exp(spread * random.normal(size=classes)).astype(np.float32)
    inner = np.sort(random.integers(0, np.array(sizes)[:, None] + 1, (len(sizes), classes - 1)), axis=1)
    bounds = offsets[:-1, None] + np.column_stack([np.zeros(len(sizes), int), inner, sizes])  # [L, C + 1]
    starts, stops = (
        np.ascontiguousarray(part.reshape(len(kinds), -1)) for part in (bounds[chosen, :-1], bounds[chosen, 1:])
    )
    first = None if read is None else 1 + int(read * (M - 1))
    found = scan(content, tables, starts, stops, k, allowed, threads, gains, first, depth)

    codes = np.concatenate(lists)
    for (positions, scores), own, probed in zip(found, tables, chosen, strict=True):
        totals, there = np.zeros(offsets[-1], np.float32), np.zeros(offsets[-1], bool)
        for m in range(M):
            totals += own[m][codes[:, m]]
            if m + 1 == (first or M):
                shorter = totals.copy()
        for number in probed:
            there[offsets[number] : offsets[number + 1]] = True
            for start, stop, gain in zip(bounds[number], bounds[number, 1:], gains, strict=False):
                totals[start:stop] *= gain
                shorter[start:stop] *= gain
        expected = np.flatnonzero(there & passing)
        for scored, count in ((shorter, max(k, depth)), (totals, k)):
            if count < len(expected):
                expected = expected[scored[expected] >= np.sort(scored[expected])[-count]]
        order = np.argsort(positions)
        assert np.array_equal(positions[order], expected)
        assert np.array_equal(scores[order], totals[expected])


@given(sizes=st.lists(st.integers(0, 150), min_size=1, max_size=4), M=st.integers(1, 9), seed=st.integers(0, 9))
def test_codes_come_back_from_blocks(sizes, M, seed):
    random = np.random.default_rng(seed)
    lists = [random.integers(0, 256, (n, M)).astype(np.uint8) for n in sizes]
    content, offsets = np.concatenate([to_blocks(part) for part in lists]), np.cumsum([0, *sizes])
    positions = random.permutation(offsets[-1])
    assert np.array_equal(codes_at(content, offsets, positions, M), np.concatenate(lists)[positions])


def test_without_the_kernel_numpy_does_it_and_says_so_once(monkeypatch):
    monkeypatch.delenv("REPCONC_KERNEL", raising=False)
    monkeypatch.setitem(sys.modules, "repconc._kernel", None)
    kernel.cache_clear()
    try:
        with pytest.warns(UserWarning, match="does without its native scan"):
            test_it_gives_the_plain_result()
    finally:
        kernel.cache_clear()


@pytest.mark.skipif(
    not shutil.which("c++") or os.environ.get("REPCONC_KERNEL") == "numpy", reason="no compiler, or not wanted"
)
def test_where_there_is_a_compiler_the_kernel_was_built():
    """A failed build is no error of the installation, so that a broken kernel would go unseen."""
    assert kernel() is not None


@settings(deadline=None)
@given(M=st.integers(1, 20), K=st.integers(1, 256), d=st.integers(1, 20), B=st.integers(1, 3), seed=st.integers(0, 9))
def test_tables_have_the_same_bits_with_and_without_the_kernel(M, K, d, B, seed):
    random = np.random.default_rng(seed)
    codec = Codec(random.normal(size=(M, K, d)).astype(np.float32), M * d)
    queries = random.normal(size=(B, M * d)).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("repconc.codec.kernel", lambda: None)
        plain = codec.tables(queries)
    assert np.array_equal(codec.tables(queries), plain)
    np.testing.assert_allclose(
        plain,
        np.einsum("mkd,bmd->bmk", codec.codebooks, codec.transform(queries).reshape(len(queries), codec.blocks, -1)),
        atol=1e-4,
    )


@pytest.mark.parametrize("kind", ["sum", "nan"])
def test_scores_beyond_floats_are_refused(kind):
    """They would tie at infinity."""
    tables = np.full((1, 3, 256), 2e38 if kind == "sum" else np.nan, np.float32)
    lists = np.zeros((1, 1), np.int64)
    with pytest.raises(RepconcError, match="too large to multiply"):
        scan(np.zeros(12, np.uint8), tables, lists, lists + 4, 2)
    with pytest.raises(RepconcError, match="threads is 0"):
        scan(np.zeros(12, np.uint8), np.zeros_like(tables), lists, lists + 4, 2, threads=0)


@pytest.mark.parametrize("threads", [1, 3])
def test_many_documents_on_several_threads(threads):
    """So many that each thread gets some of them, in a batch and from two lists."""
    random = np.random.default_rng(0)
    codes, tables = random.integers(0, 256, (150_000, 2), dtype=np.uint8), random.normal(size=(2, 2, 256)).astype("f4")
    edges = np.array([0, 90_001, 150_000])
    content = np.concatenate([to_blocks(codes[start:stop]) for start, stop in itertools.pairwise(edges)])
    lists = np.array([[0, 1], [1, 0]])
    found = scan(content, tables, edges[lists], edges[lists + 1], 50, threads=threads)
    for (positions, scores), own in zip(found, tables, strict=True):
        totals = own[0][codes[:, 0]] + own[1][codes[:, 1]]
        expected = np.flatnonzero(totals >= np.sort(totals)[-50])
        order = np.argsort(positions)
        assert np.array_equal(positions[order], expected) and np.array_equal(scores[order], totals[expected])


def test_lists_that_begin_together_may_end_apart():
    random = np.random.default_rng(0)
    content, tables = random.integers(0, 256, 5000, dtype=np.uint8), random.normal(size=(2, 1, 256)).astype(np.float32)
    starts = np.zeros((2, 1), np.int64)
    for stops in ([[5000], [4]], [[4], [5000]]):
        together = scan(content, tables, starts, np.array(stops), 10)
        for query, found in enumerate(together):
            [alone] = scan(content, tables[query : query + 1], starts[:1], np.array([stops[query]]), 10)
            assert sorted(found[0].tolist()) == sorted(alone[0].tolist())


native = pytest.mark.skipif(kernel() is None, reason="the kernel was not built")


@native
def test_both_sides_know_the_same_sizes():
    assert (kernel().WIDEST, kernel().BLOCK) == (WIDEST, DOCUMENTS)


@native
@pytest.mark.parametrize("path", ["portable", "avx2", "avx512vbmi", "neon"])
def test_every_path_gives_the_plain_result(path):
    before = kernel().path()
    if path == before:
        return  # all other tests run on it
    try:
        kernel().use(path)
    except RuntimeError:
        pytest.skip("not on this machine")
    try:
        test_it_gives_the_plain_result()
        test_tables_have_the_same_bits_with_and_without_the_kernel()
        test_lists.test_they_have_the_highest_products()
        test_lists.test_a_document_goes_to_the_nearest_centroid()
    finally:
        kernel().use(before)


@native
@pytest.mark.parametrize("path", ["portable", "nonsense"])
def test_a_path_can_be_forced(path):
    code = "from repconc.kernel import kernel; print(kernel().path())"
    environment = os.environ | {"REPCONC_KERNEL": path}
    asked = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    if path == "nonsense":
        assert "REPCONC_KERNEL asks for 'nonsense'" in asked.stderr
    else:
        assert asked.stdout.strip() == path


@native
@pytest.mark.slow
@pytest.mark.parametrize("path", ["portable", "avx2", "numpy"])
def test_an_index_is_the_same_on_every_path(path):
    elsewhere = ["-k", "not killed and not interrupted"]  # they depend on the time that things take, not on the path
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *elsewhere, str(Path(__file__).parent)]
    done = subprocess.run(command, env=os.environ | {"REPCONC_KERNEL": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]


@native
@pytest.mark.parametrize(("size", "gain"), [(1e-8, 1.2e-38), (1e-42, 1e-4), (1e-38, 1e3)])
def test_products_that_are_no_normal_numbers_are_exact_too(size, gain, monkeypatch):
    """They round by more than others do, so that many tie."""
    random = np.random.default_rng(0)
    tables = (size * random.normal(size=(2, 4, 256))).astype(np.float32)
    content, starts = to_blocks(random.integers(0, 256, (3000, 4)).astype(np.uint8)), np.zeros((2, 1), np.int64)
    search = partial(scan, content, tables, starts, starts + 3000, 5, gains=np.array([gain], np.float32))
    found = search()
    monkeypatch.setattr("repconc.indexes.scan.kernel", lambda: None)
    for (positions, scores), (plain, values) in zip(found, search(), strict=True):
        order, other = np.argsort(positions), np.argsort(plain)
        assert np.array_equal(positions[order], plain[other]) and np.array_equal(scores[order], values[other])


LONG = """
import signal, sys, threading, time, numpy as np
from repconc.indexes.scan import scan
codes, tables = np.zeros(1 << 24, np.uint8), np.zeros((3000, 1, 256), np.float32)
starts, stops = np.zeros((3000, 1), np.int64), np.full((3000, 1), 1 << 24)
allowed = np.zeros(1 << 21, np.uint8)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored in the background
threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
begun = time.monotonic()
try:
    scan(codes, tables, starts, stops, 1, allowed, threads=int(sys.argv[1]))  # half a minute or more
except KeyboardInterrupt:
    print(time.monotonic() - begun)
"""


@native
@pytest.mark.parametrize("threads", [1, 2])
def test_a_long_search_can_be_interrupted(threads):
    command = [sys.executable, "-c", LONG, str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert float(done.stdout) < 5, done.stderr
