"""The warm-up against faiss, and its promises."""

import faiss
import numpy as np
import pytest

from repconc.errors import RepconcError
from repconc.quantization.opq import train_opq


def vectors(count: int = 3000, dimension: int = 32, seed: int = 0) -> np.ndarray:
    """Correlated vectors of uneven variance, as encoders give them."""
    generator = np.random.default_rng(seed)
    mixing = generator.normal(size=(dimension, dimension)) * np.linspace(0.1, 2, dimension)
    return (generator.normal(size=(count, dimension)) @ mixing).astype(np.float32)


def error(codec, x: np.ndarray) -> float:
    """Mean squared error of the coded vectors."""
    target = codec.transform(x).reshape(len(x), -1)
    return float(((target - codec.decode(codec.encode(x))) ** 2).sum(axis=1).mean())


def test_opq_is_as_good_as_that_of_faiss_and_better_than_pq():
    x = vectors()
    matrix = faiss.OPQMatrix(32, 8)
    matrix.pq = faiss.ProductQuantizer(32, 8, 6)
    matrix.niter = 25
    matrix.train(x)
    rotated = matrix.apply(x)
    reference = faiss.ProductQuantizer(32, 8, 6)
    reference.train(rotated)
    theirs = float(((rotated - reference.decode(reference.compute_codes(rotated))) ** 2).sum(axis=1).mean())
    ours, plain = error(train_opq(x, 8, 64), x), error(train_opq(x, 8, 64, rotate=False), x)
    assert ours < 1.02 * theirs
    assert ours < 0.97 * plain


def test_pq_is_as_good_as_that_of_faiss():
    x = vectors()
    reference = faiss.ProductQuantizer(32, 8, 6)
    reference.train(x)
    theirs = float(((x - reference.decode(reference.compute_codes(x))) ** 2).sum(axis=1).mean())
    assert error(train_opq(x, 8, 64, rotate=False), x) < 1.02 * theirs


@pytest.mark.parametrize(("dimension", "blocks"), [(32, 8), (30, 8), (32, 5), (7, 7), (5, 1)])
def test_the_rotation_is_orthonormal_also_where_blocks_do_not_divide(dimension, blocks):
    codec = train_opq(vectors(600, dimension), blocks, 16, turns=5, final=3)
    np.testing.assert_allclose(codec.map.linear.T @ codec.map.linear, np.eye(dimension), atol=1e-4)
    assert codec.blocks == blocks
    assert error(codec, vectors(600, dimension)) < float((vectors(600, dimension) ** 2).sum(axis=1).mean())


def test_the_same_seed_gives_the_same_codec():
    first, second = (train_opq(vectors(500), 4, 16, turns=4, final=2, seed=3) for _ in range(2))
    np.testing.assert_array_equal(first.codebooks, second.codebooks)


def test_duplicates_leave_no_codeword_undefined():
    codec = train_opq(np.ones((300, 8), np.float32), 2, 16, turns=3, final=2)
    assert np.isfinite(codec.codebooks).all()
    assert np.isfinite(codec.map.linear).all()


def test_progress_reaches_its_end():
    seen = []
    train_opq(vectors(300), 4, 16, turns=3, final=2, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(step, 5) for step in range(1, 6)]


def test_too_few_vectors_or_too_many_blocks_are_refused():
    with pytest.raises(RepconcError, match="10 vectors for 16 codewords"):
        train_opq(vectors(10), 4, 16)
    with pytest.raises(RepconcError, match="cannot be cut into 33 blocks"):
        train_opq(vectors(100), 33, 16)
