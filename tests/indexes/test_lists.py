"""Which lists a query reads, against plain products: what the kernel reads first must not change the answer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repconc.codec import Codec
from repconc.errors import RepconcError
from repconc.indexes.lists import Lists, nearest
from repconc.kernel import kernel


def unaligned(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """Zeros that begin one byte too late."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return np.zeros(size + 64, np.uint8)[1 : size + 1].view(dtype).reshape(shape)


@settings(deadline=None, max_examples=60)
@given(
    L=st.integers(1, 300),
    D=st.integers(1, 200),
    B=st.integers(1, 4),
    share=st.floats(0.01, 1.0),
    size=st.sampled_from([0.0, 1e-6, 1.0, 1e4]),
    twins=st.booleans(),
    seed=st.integers(0, 99),
)
def test_they_have_the_highest_products(L, D, B, share, size, twins, seed):
    random = np.random.default_rng(seed)
    centroids = (size * random.normal(size=(L, D))).astype(np.float16)
    half = (L + 1) // 2
    if twins:
        centroids[half:] = centroids[: L - half]
    queries = random.normal(size=(B, D)).astype(np.float32)
    count = max(1, int(share * L))
    best = Lists(centroids).best(queries, count)
    assert best.shape == (B, count)
    for query, row in zip(queries, best, strict=True):
        products = centroids.astype(np.float64) @ query.astype(np.float64)
        within = 1e-5 * np.linalg.norm(query) * np.linalg.norm(centroids.astype(np.float64), axis=1).max()
        wanted = -np.sort(-products)[:count]
        assert len(set(row.tolist())) == count
        np.testing.assert_allclose(products[row], wanted, rtol=0, atol=within)
        if twins:  # the same centroid under two numbers: the lower one first
            places = {number: place for place, number in enumerate(row.tolist())}
            later = [n for n in row.tolist() if n >= half]
            assert all(places.get(n - half, count) < places[n] for n in later)
        assert np.array_equal(Lists(centroids).best(query[None], L)[0, :count], row)  # alone, and among all


def test_products_beyond_floats_are_no_fault():
    centroids = np.full((3, 4), 6e4, np.float16) * np.array([[1], [-1], [0]], np.float16)
    assert sorted(Lists(centroids).best(np.full((1, 4), 3e38, np.float32), 3)[0].tolist()) == [0, 1, 2]


@settings(deadline=None, max_examples=30)
@given(
    n=st.integers(1, 700),
    M=st.integers(1, 12),
    K=st.integers(1, 256),
    d=st.integers(1, 9),
    L=st.integers(1, 60),
    size=st.sampled_from([0.0, 1e-3, 1.0, 100.0]),
    seed=st.integers(0, 99),
)
def test_a_document_goes_to_the_nearest_centroid(n, M, K, d, L, size, seed):
    """size: of the centroids beside documents of size one."""
    random = np.random.default_rng(seed)
    codec = Codec(random.normal(size=(M, K, d)).astype(np.float32), M * d)
    centroids = (size * random.normal(size=(L, M * d))).astype(np.float32)
    codes = random.integers(0, K, (n, M)).astype(np.uint8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("repconc.indexes.lists.FEW", 0)
        patch.setattr("repconc.indexes.lists.VECTORS_AT_A_TIME", 100)
        patch.setattr("repconc.indexes.lists.CODES_AT_A_TIME", 300)
        owners, distances = nearest(codes, codec, centroids)
    plain = ((codec.decode(codes).astype(np.float64)[:, None] - centroids.astype(np.float64)) ** 2).sum(axis=2)
    within = 1e-5 * plain.max()
    np.testing.assert_allclose(plain[np.arange(n), owners], plain.min(axis=1), rtol=0, atol=within)
    np.testing.assert_allclose(distances, plain.min(axis=1), rtol=0, atol=within)


def test_many_documents_on_several_threads():
    random = np.random.default_rng(0)
    codec = Codec(random.normal(size=(4, 16, 3)).astype(np.float32), 12)
    codes = random.integers(0, 16, (10_001, 4)).astype(np.uint8)
    centroids = random.normal(size=(20, 12)).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("repconc.indexes.lists.kernel", lambda: None)
        plain = nearest(codes, codec, centroids)[0]
    assert np.array_equal(nearest(codes, codec, centroids)[0], plain)
    if native := kernel():
        assert np.array_equal(native.Assigner(centroids, codec.by_dimension).nearest(codes, 3)[0], plain)


def test_vectors_that_are_too_long_are_refused():
    codec = Codec(np.full((2, 4, 3), 1e30, np.float32), 6)
    with pytest.raises(RepconcError, match="scale them down"):
        nearest(np.zeros((5000, 2), np.uint8), codec, np.full((3, 6), 1e30, np.float32))


@pytest.mark.skipif(kernel() is None, reason="the kernel was not built")
@pytest.mark.parametrize(
    "changes",
    [
        {"centroids": np.zeros((3, 5), np.uint16)},
        {"centroids": np.zeros((3, 4), np.float16)},
        {"levels": np.zeros((3, 4), np.int8)},
        {"about": np.zeros((3, 2), np.float32)},
        {"queries": np.zeros((1, 5), np.float32)},
        {"queries": unaligned((1, 4), np.float32)},
        {"about": np.full((3, 3), -1, np.float32)},
        {"count": 0},
        {"count": 4},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_malformed_arrays_are_refused(changes):
    centroids = np.zeros((3, 4), np.uint16)
    levels, about = kernel().levels(centroids)
    good = {
        "centroids": centroids,
        "levels": levels,
        "about": about,
        "queries": np.ones((1, 4), np.float32),
        "count": 2,
    }
    assert kernel().best_lists(**good).tolist() == [[0, 1]]
    with pytest.raises((TypeError, ValueError)):
        kernel().best_lists(**good | changes)


@pytest.mark.skipif(kernel() is None, reason="the kernel was not built")
@pytest.mark.parametrize(
    ("function", "changes"),
    [
        ("tables", {"codebooks": np.zeros((2, 3), np.float32)}),
        ("tables", {"codebooks": np.zeros((2, 3, 257), np.float32)}),
        ("tables", {"queries": np.zeros((1, 2, 4), np.float32)}),
        ("tables", {"queries": unaligned((1, 2, 3), np.float32)}),
        ("levels", {"centroids": np.zeros((5, 6), np.float16)}),
        ("levels", {"centroids": np.full((5, 6), 0x7C00, np.uint16)}),  # infinite
        ("Assigner", {"centroids": np.zeros((5, 7), np.float32)}),
        ("Assigner", {"codebooks": np.zeros((0, 3, 4), np.float32)}),
        ("Assigner", {"codebooks": np.full((2, 3, 4), np.nan, np.float32)}),
        ("strings", {"stops": np.array([4, 9])}),
        ("strings", {"starts": np.array([-1, 0])}),
        ("strings", {"starts": np.array([0])}),
        ("strings", {"content": np.frombuffer(b"a\xff\xff", np.uint8)}),
    ],
)
def test_malformed_arrays_are_refused_by_all_others(function, changes):
    books, centroids = np.ones((2, 3, 4), np.float32), np.ones((5, 6), np.float32)
    good = {
        "tables": {"codebooks": books, "queries": np.ones((1, 2, 3), np.float32)},
        "strings": {
            "content": np.frombuffer("aü€".encode(), np.uint8),
            "starts": np.array([0, 1]),
            "stops": np.array([1, 3]),
        },
        "levels": {"centroids": np.zeros((5, 6), np.uint16)},
        "Assigner": {"centroids": centroids, "codebooks": books},
    }[function]
    getattr(kernel(), function)(**good)
    with pytest.raises((TypeError, ValueError, OverflowError)):
        getattr(kernel(), function)(**good | changes)


@pytest.mark.skipif(kernel() is None, reason="the kernel was not built")
@pytest.mark.parametrize(
    "codes",
    [
        np.full((7, 2), 4, np.uint8),  # there are four codewords
        np.zeros((7, 3), np.uint8),
        np.zeros((7, 2), np.int64),
        np.zeros((2, 7), np.uint8).T,
    ],
)
def test_malformed_codes_are_refused_by_an_assigner(codes):
    assigner = kernel().Assigner(np.ones((5, 6), np.float32), np.ones((2, 3, 4), np.float32))
    assigner.nearest(np.zeros((7, 2), np.uint8))
    with pytest.raises((TypeError, ValueError)):
        assigner.nearest(codes)


def test_one_wide_block_does_not_make_the_others_coarse():
    """As real vectors have: a direction that matters a hundred times as much, which is cut into parts."""
    random = np.random.default_rng(0)
    books = random.normal(size=(24, 256, 2)).astype(np.float32)
    books[5] *= 100
    codec = Codec(books, 48)
    codes = random.integers(0, 256, (6000, 24)).astype(np.uint8)
    centroids = codec.decode(codes[:50])
    plain = ((codec.decode(codes)[:, None] - centroids[None]) ** 2).sum(axis=2)
    owners, distances = nearest(codes, codec, centroids)
    np.testing.assert_allclose(plain[np.arange(6000), owners], plain.min(axis=1), rtol=1e-4)
    np.testing.assert_allclose(distances, plain.min(axis=1), rtol=1e-3, atol=1.0)
