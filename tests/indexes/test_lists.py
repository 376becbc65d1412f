"""Which lists a query reads, against plain products: what the kernel reads first must not change the answer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repconc.codec import Codec
from repconc.indexes.lists import Lists, nearest
from repconc.kernel import kernel


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
        patch.setattr("repconc.indexes.lists.VECTORS_AT_A_TIME", 0 if kernel() else 100)  # no number is small
        patch.setattr("repconc.indexes.lists.CODES_AT_A_TIME", 300)
        owners, distances = nearest(codes, codec, centroids)
    plain = ((codec.decode(codes).astype(np.float64)[:, None] - centroids.astype(np.float64)) ** 2).sum(axis=2)
    within = 1e-5 * plain.max()
    np.testing.assert_allclose(plain[np.arange(n), owners], plain.min(axis=1), rtol=0, atol=within)
    np.testing.assert_allclose(distances, plain.min(axis=1), rtol=0, atol=within)


@pytest.mark.skipif(kernel() is None, reason="the kernel was not built")
@pytest.mark.parametrize(
    "changes",
    [
        {"centroids": np.zeros((3, 5), np.uint16)},
        {"centroids": np.zeros((3, 4), np.float16)},
        {"levels": np.zeros((3, 4), np.int8)},
        {"about": np.zeros((3, 2), np.float32)},
        {"queries": np.zeros((1, 5), np.float32)},
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
        "queries": np.zeros((1, 4), np.float32),
        "count": 2,
    }
    assert kernel().best_lists(**good).tolist() == [[0, 1]]
    with pytest.raises((TypeError, ValueError)):
        kernel().best_lists(**good | changes)
