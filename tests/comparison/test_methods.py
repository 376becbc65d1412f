"""Compared methods against the libraries that have them too."""

import faiss
import numpy as np
import pytest

from repconc.baselines import itq, opq, opq_scann, pq, rabitq, scann
from repconc.quantization.opq import train_opq


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    random = np.random.default_rng(0)
    return (random.normal(size=(3000, 32)) @ random.normal(size=(32, 32))).astype(np.float32)


@pytest.fixture(scope="module")
def rotated(vectors):
    """OPQ by faiss."""
    index = faiss.index_factory(32, "OPQ8,PQ8", faiss.METRIC_INNER_PRODUCT)
    matrix = faiss.downcast_VectorTransform(index.chain.at(0))
    matrix.niter, matrix.niter_pq, matrix.niter_pq_0 = 20, 4, 10
    faiss.downcast_index(index.index).do_polysemous_training = False
    index.train(vectors)
    index.add(vectors)
    return index


def test_iterative_quantization_loses_as_little_as_that_of_faiss(vectors):
    mean, turned = itq.learn(vectors, 16, seed=0)
    ours = (vectors - mean) @ turned
    theirs = faiss.ITQTransform(32, 16, True)
    theirs.train(vectors)
    reference = theirs.apply(vectors)

    def loss(projected: np.ndarray) -> float:
        scaled = projected / np.linalg.norm(projected)
        return float(np.linalg.norm(scaled - np.sign(projected) / np.sqrt(projected.size)))

    assert loss(ours) < 1.02 * loss(reference)


def test_its_distances_are_those_of_bits(vectors):
    coded = itq.fit(vectors, 2, 0)([str(n) for n in range(len(vectors))], vectors)
    mean, turned = itq.learn(vectors, 16, seed=0)
    bits = (vectors - mean) @ turned >= 0
    for hit in coded.index.search(vectors[:1], 50)[0]:
        assert -hit.score == (bits[0] != bits[int(hit.id)]).sum()


def error(restored: np.ndarray, vectors: np.ndarray) -> float:
    return float(((restored - vectors) ** 2).sum(axis=1).mean())


def test_product_quantization_loses_as_little_as_that_of_faiss(vectors):
    theirs = faiss.ProductQuantizer(32, 8, 8)
    theirs.cp.niter = 25
    theirs.train(vectors)
    ours = train_opq(vectors, 8, rotate=False, seed=0)
    reference = error(theirs.decode(theirs.compute_codes(vectors)), vectors)
    assert error(ours.decode(ours.encode(vectors)), vectors) < 1.03 * reference


def test_a_learned_rotation_loses_as_little_as_that_of_faiss(vectors, rotated):
    reference = error(rotated.reconstruct_n(0, len(vectors)), vectors)
    ours = train_opq(vectors, 8, seed=0)
    assert error(ours.decode(ours.encode(vectors)) @ ours.map.linear.T, vectors) < 1.03 * reference


def test_they_find_what_those_of_faiss_find(vectors, rotated):
    """Of the exact best ten, for queries of the same kind."""
    plain = faiss.IndexPQ(32, 8, 8, faiss.METRIC_INNER_PRODUCT)
    plain.do_polysemous_training = False
    plain.train(vectors)
    plain.add(vectors)
    queries = vectors[:200] + 0.1 * vectors[200:400]
    for ours, theirs in ((pq, plain), (opq, rotated)):
        coded = ours.fit(vectors, 8, 0)([str(n) for n in range(len(vectors))], vectors)
        hits = [[int(hit.id) for hit in row] for row in coded.index.search(queries, 10)]
        assert recall(hits, queries, vectors) > recall(theirs.search(queries, 10)[1], queries, vectors) - 0.03


def recall(found, queries: np.ndarray, vectors: np.ndarray) -> float:
    best = np.argsort(-(queries @ vectors.T), axis=1)[:, :10]
    return float(
        np.mean([len(set(row) & set(map(int, own))) / 10 for row, own in zip(best.tolist(), found, strict=True)])
    )


def test_rabitq_estimates_inner_products_without_bias(vectors):
    """As its paper proves (section 3.2): no bias, and an error within its bound."""
    random = np.random.default_rng(1)
    documents = random.normal(size=(400, 64)).astype(np.float32)
    query = random.normal(size=(1, 64)).astype(np.float32)
    coded = rabitq.fit(documents, 0, 0)([str(n) for n in range(400)], documents)
    scores = {int(hit.id): hit.score for hit in coded.index.search(query, 400)[0]}
    estimated = np.array([scores[number] for number in range(400)])
    exact = documents @ query[0]
    mean = documents.mean(axis=0)
    rest = documents - mean
    # |o - c| |q - c| / sqrt(D) is the scale of the error bound; its constant is about one for one bit a dimension
    scale = np.linalg.norm(rest, axis=1) * np.linalg.norm(query[0] - mean) / 8
    assert abs(float((estimated - exact).mean())) < 0.15 * float(scale.mean())
    assert 0.4 < float(np.sqrt((((estimated - exact) / scale) ** 2).mean())) < 1.1
    assert coded.bytes == rabitq.fixed(64)


def test_scann_finds_what_four_bit_codes_of_faiss_find(vectors):
    pytest.importorskip("scann")
    queries = vectors[:200] + 0.1 * vectors[200:400]
    reference = faiss.IndexPQ(32, 16, 4, faiss.METRIC_INNER_PRODUCT)
    reference.do_polysemous_training = False
    reference.train(vectors)
    reference.add(vectors)
    coded = scann.fit(vectors, 8, 0)([str(n) for n in range(len(vectors))], vectors)
    hits = [[int(hit.id) for hit in row] for row in coded.index.search(queries, 10)]
    assert recall(hits, queries, vectors) > recall(reference.search(queries, 10)[1], queries, vectors) - 0.05


def test_a_rotation_for_four_bit_codes_helps_scann(vectors):
    """A spectrum that falls, so that cutting the vectors as they come loses much."""
    pytest.importorskip("scann")
    random = np.random.default_rng(2)
    skewed = (random.normal(size=(3000, 32)) * 0.8 ** np.arange(32)).astype(np.float32)
    queries, ids = skewed[:200] + 0.1 * skewed[200:400], [str(n) for n in range(len(skewed))]
    found = {}
    for method in (scann, opq_scann):
        rows = method.fit(skewed, 4, 0)(ids, skewed).index.search(queries, 10)
        found[method.NAME] = recall([[int(hit.id) for hit in row] for row in rows], queries, skewed)
    assert found[opq_scann.NAME] > found[scann.NAME]


def test_scann_counts_its_codes_once(vectors):
    """What is beside the codes does not grow with the documents."""
    pytest.importorskip("scann")
    shared = [
        scann.fit(part, 4, 0)([str(n) for n in range(len(part))], part).shared for part in (vectors[:1000], vectors)
    ]
    assert min(shared) > 0 and abs(shared[0] - shared[1]) < 1000
