"""Compared methods against the libraries that have them too."""

import faiss
import numpy as np
import pytest

from repconc.baselines import itq


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    random = np.random.default_rng(0)
    return (random.normal(size=(3000, 32)) @ random.normal(size=(32, 32))).astype(np.float32)


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
