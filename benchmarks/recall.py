"""Recall against queries a second: codes that are searched by our scan, beside what else can search vectors on a CPU.

    python -m benchmarks.recall --documents 1000000

Vectors: MiniLM-L6 of all paragraphs of HotpotQA and SQuAD and all answers of InsuranceQA, and perturbed copies of them
beyond; queries: real ones of HotpotQA's test split. Recall@10 is against exact search over the original vectors, for
everybody. One thread, one query at a time; each system is swept over how much it reads. Bytes are all that each of them
keeps to search. Ours are OPQ codes in an inverted file: nothing is learned from labels here, and no vector is kept.
ScaNN is left out, and that is said, where it is not installed (`pip install scann`).
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import faiss
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import results
from benchmarks.baselines import vectors_of
from repconc import Document, Encoder, Vectors, load_dataset
from repconc.codec import Codec
from repconc.data.catalogue import folder_of, get
from repconc.indexes.ivf import Index
from repconc.indexes.lists import default_lists
from repconc.indexes.writing import build
from repconc.quantization.opq import train_opq

SUITE = "recall"
SETS = ("hotpotqa", "squad", "insuranceqa")
QUERIES, K, ROUNDS = 500, 10, 3
SAMPLE = 100_000
SIZES = (48, 96, 192)
NOISE = 0.3
Search = Callable[[np.ndarray, int], np.ndarray]  # a query [1, D] and how much to read -> numbers of documents


class System(NamedTuple):
    """A way to search."""

    name: str
    bytes: int
    search: Search
    steps: list[int]


class Material(NamedTuple):
    """What systems are made of."""

    documents: np.ndarray
    codecs: dict[int, Codec]  # OPQ, by bytes
    scratch: Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1_000_000)
    options = parser.parse_args()
    made_with = results.provenance()
    documents, queries = _vectors(options.documents), _queries()
    exact = faiss.knn(queries, documents, K, metric=faiss.METRIC_INNER_PRODUCT)[1]
    with tempfile.TemporaryDirectory() as scratch:
        material = Material(documents, {M: _codec(documents, M) for M in SIZES}, Path(scratch))
        systems = [system for maker in (_ours, _faiss, _graph, _scann) for system in _told(maker, material)]
        faiss.omp_set_num_threads(1)
        with threadpool_limits(1):
            for line in _measure(systems, queries, exact):
                results.append(SUITE, line | {"documents": len(documents)}, made_with)


def _measure(systems: list[System], queries: np.ndarray, exact: np.ndarray) -> Iterator[dict[str, Any]]:
    """All points in turn, three times, so that a noisy moment hits all of them."""
    points = [(system, step) for system in systems for step in system.steps]
    seconds: dict[tuple[str, int], list[float]] = {(system.name, step): [] for system, step in points}
    recalls: dict[tuple[str, int], float] = {}
    for _ in range(ROUNDS):
        for system, step in points:
            start = time.perf_counter()
            found = [system.search(query[None], step) for query in queries]
            seconds[system.name, step].append(time.perf_counter() - start)
            hits = sum(len(set(row.tolist()) & set(best.tolist())) for row, best in zip(found, exact, strict=True))
            recalls[system.name, step] = hits / exact.size
    for system, step in points:
        rate = len(queries) / statistics.median(seconds[system.name, step])
        line = {"system": system.name, "bytes": system.bytes, "step": step, "recall": recalls[system.name, step]}
        print(f"{system.name:<40} {step:>5} {line['recall']:.3f} {rate:>8.0f} queries/s", flush=True)
        yield line | {"queries a second": round(rate, 1)}


def _told(maker: Callable[[Material], Iterator[System]], material: Material) -> Iterator[System]:
    try:
        for system in maker(material):
            print(f"{system.name}: {system.bytes / len(material.documents):.1f} bytes a document", flush=True)
            yield system
    except ImportError as error:
        print(f"Left out: {error.name} is not installed.", flush=True)


def _codec(documents: np.ndarray, M: int) -> Codec:
    return train_opq(documents[:: max(1, len(documents) // SAMPLE)], M, turns=15, final=10)


def _ours(material: Material) -> Iterator[System]:
    documents, at_a_time = material.documents, 1 << 16
    for M, codec in material.codecs.items():
        batches = (
            ([Document(str(number), "") for number in range(start, start + len(part))], codec.encode(part))
            for start in range(0, len(documents), at_a_time)
            if len(part := documents[start : start + at_a_time])
        )
        index = build(material.scratch / f"ours-{M}", batches, coding=codec, scoring=codec)
        index.verify()
        size = index.nbytes + 4 * len(documents)  # and the numbers of documents, which the others keep too
        yield System(f"RepCONC's index, OPQ {M} bytes", size, _search_ours(index), _steps(index.manifest.lists))


def _search_ours(index: Index) -> Search:
    def search(query: np.ndarray, probes: int) -> np.ndarray:
        return np.array([int(hit.id) for hit in index.search(query, K, probes=probes)[0]])

    return search


def _faiss(material: Material) -> Iterator[System]:
    """faiss' own, with the rotation that our codes have."""
    documents, lists = material.documents, default_lists(len(material.documents))
    for name, M, factory in (
        ("faiss IVFPQFastScan, 48 bytes", 48, f"IVF{lists},PQ96x4fs"),
        ("faiss IVFPQFastScan, 96 bytes", 96, f"IVF{lists},PQ192x4fs"),
        ("faiss IVFPQFastScan, 96 bytes + vectors", 96, f"IVF{lists},PQ192x4fs,RFlat"),
        ("faiss IVFRaBitQFastScan", 96, f"IVF{lists},RaBitQfs"),
        ("faiss IVFRaBitQFastScan + vectors", 96, f"IVF{lists},RaBitQfs,RFlat"),
    ):
        turn = material.codecs[M].map
        assert turn is not None
        rotation = turn.linear
        rotated = documents @ rotation
        index = faiss.index_factory(documents.shape[1], factory, faiss.METRIC_INNER_PRODUCT)
        index.train(rotated[:: max(1, len(documents) // SAMPLE)])
        index.add(rotated)
        size = faiss.serialize_index(index).nbytes + rotation.nbytes
        yield System(name, size, _search_faiss(index, rotation), _steps(lists))


def _search_faiss(index: Any, rotation: np.ndarray) -> Search:
    refined = isinstance(index, faiss.IndexRefine)
    lists = faiss.extract_index_ivf(index.base_index if refined else index)
    if refined:
        index.k_factor = 10

    def search(query: np.ndarray, probes: int) -> np.ndarray:
        lists.nprobe = probes
        return np.asarray(index.search(query @ rotation, K)[1][0])

    return search


def _scann(material: Material) -> Iterator[System]:
    import scann

    documents, lists = material.documents, default_lists(len(material.documents))
    for name, reorder in {"ScaNN, 96 bytes": 0, "ScaNN, 96 bytes + vectors": 100}.items():
        builder = scann.scann_ops_pybind.builder(documents, K, "dot_product")
        builder = builder.tree(lists, 64, training_sample_size=SAMPLE).score_ah(
            2, anisotropic_quantization_threshold=0.2
        )
        searcher = (builder.reorder(reorder) if reorder else builder).build()
        folder = material.scratch / f"scann-{reorder}"
        folder.mkdir()
        searcher.serialize(str(folder))
        size = sum(path.stat().st_size for path in folder.iterdir() if reorder or path.name != "dataset.npy")
        size -= 96 * len(documents)  # four bits take a byte on disk, and half of it in memory

        def search(query: np.ndarray, leaves: int, searcher: Any = searcher) -> np.ndarray:
            return np.asarray(searcher.search(query[0], leaves_to_search=leaves)[0])

        yield System(name, size, search, _steps(lists))


def _graph(material: Material) -> Iterator[System]:
    documents = material.documents
    index: Any = faiss.index_factory(documents.shape[1], "HNSW16_SQ8", faiss.METRIC_INNER_PRODUCT)
    index.train(documents[:SAMPLE])
    index.add(documents)

    def search(query: np.ndarray, breadth: int) -> np.ndarray:
        index.hnsw.efSearch = breadth
        return np.asarray(index.search(query, K)[1][0])

    yield System("faiss HNSW, one byte a dimension", faiss.serialize_index(index).nbytes, search, _steps(512)[3:])


def _steps(lists: int) -> list[int]:
    return [2**power for power in range(10) if 2**power <= lists]


def _vectors(count: int) -> np.ndarray:
    parts = []
    for name in SETS:
        if not folder_of(name).is_dir():
            get(name)
        parts += list(Vectors(vectors_of(load_dataset(folder_of(name)), "minilm")).blocks())
    real = np.concatenate(parts).astype(np.float32)
    if count <= len(real):
        return real[:count]
    random = np.random.default_rng(0)
    copies = real[random.integers(0, len(real), count - len(real))]
    noise = random.normal(size=copies.shape).astype(np.float32)
    copies = copies + NOISE * noise / np.linalg.norm(noise, axis=1, keepdims=True)
    return np.concatenate([real, copies / np.linalg.norm(copies, axis=1, keepdims=True)])


def _queries() -> np.ndarray:
    texts = [query.text for query in load_dataset(folder_of("hotpotqa")).queries("test")][:QUERIES]
    return Encoder("minilm").embed_queries(texts)


if __name__ == "__main__":
    main()
