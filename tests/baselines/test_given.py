"""Methods that compress given vectors: what they find, what they cost, and the search that several of them share."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repconc.baselines import itq
from repconc.baselines.method import Numbered, restored_search
from repconc.baselines.registry import methods
from repconc.errors import RepconcError

D, BYTES = 32, 4
GIVEN = {name: method for name, method in methods().items() if hasattr(method, "fit")}
FIXED = {"RaBitQ (faiss)": 12, "binary (sentence-transformers)": 4, "int8 (sentence-transformers)": D}


@pytest.fixture(scope="module")
def world() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Documents in clusters, queries near some of them, and the ten documents that are really nearest."""
    random = np.random.default_rng(0)
    centres = random.normal(size=(64, D))
    documents = centres[random.integers(64, size=2000)] + 0.4 * random.normal(size=(2000, D))
    documents = (documents / np.linalg.norm(documents, axis=1, keepdims=True)).astype(np.float32)
    queries = documents[::40] + 0.05 * random.normal(size=(50, D)).astype(np.float32)
    return documents, queries, np.argsort(-queries @ documents.T, axis=1)[:, :10]


@pytest.mark.parametrize("name", GIVEN)
def test_it_finds_what_is_near_and_says_its_bytes(name, world):
    if name in ("ScaNN", "OPQ + ScaNN"):
        pytest.importorskip("scann")
    documents, queries, nearest = world
    coded = GIVEN[name].fit(documents, BYTES, 0)([str(number) for number in range(len(documents))], documents)
    hits = coded.index.search(queries, 10)
    found = [{int(hit.id) for hit in row} for row in hits]
    recall = np.mean([len(row & set(best.tolist())) / 10 for row, best in zip(found, nearest, strict=True)])
    assert recall > 0.1  # a random ten would reach 0.005
    assert all(len(row) == 10 and row == sorted(row, key=lambda hit: -hit.score) for row in hits)
    assert coded.bytes == FIXED.get(name, BYTES)
    assert coded.shared >= 0


def test_more_bytes_find_more(world):
    documents, queries, nearest = world
    ids = [str(number) for number in range(len(documents))]
    for name in ("PQ", "OPQ", "ITQ + LSH", "PCA + int8"):
        recalls = []
        for size in (1, 2, 4):
            hits = GIVEN[name].fit(documents, size, 0)(ids, documents).index.search(queries, 10)
            rows = zip(hits, nearest, strict=True)
            recalls.append(np.mean([len({int(hit.id) for hit in row} & set(best.tolist())) for row, best in rows]))
        assert recalls[0] < recalls[-1]


def test_what_cannot_be_cut_is_refused(world):
    with pytest.raises(RepconcError, match="one bit a direction"):
        itq.fit(world[0], 5, 0)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 300), st.integers(1, 40), st.integers(0, 10))
def test_searching_restored_blocks_is_searching_all(count, k, seed):
    random = np.random.default_rng(seed)
    codes = random.integers(-128, 127, size=(count, 8)).astype(np.int8)
    queries = random.normal(size=(3, 8)).astype(np.float32)
    index = Numbered([str(n) for n in range(count)], restored_search(codes, lambda part: part.astype(np.float32)))
    exact = -np.sort(-(queries @ codes.astype(np.float32).T), axis=1)[:, :k]
    for row, best in zip(index.search(queries, k), exact, strict=True):
        assert [hit.score for hit in row] == pytest.approx(best.tolist(), rel=1e-5)
