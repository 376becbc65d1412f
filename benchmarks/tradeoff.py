"""MRR@10 against queries a second on HotpotQA, one thread: the paper's figure of latency.

    python -m benchmarks.tradeoff --recipe static --bytes 16

RepCONC in its inverted file, and the uncompressed vectors of the same trained encoder in an inverted file of as many
lists (faiss IndexIVFFlat); each point is a number of lists that are read. Queries are encoded before the clock starts.
The models are those of `python -m benchmarks.training`, seed 0.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import results
from benchmarks.training import Ablation
from repconc.evaluation.measures import evaluate
from repconc.indexes.ivf import Index
from repconc.indexes.writing import Batches, build
from repconc.records import Document, Hit
from repconc.training.trainer import Trainer

SUITE = "tradeoff"
ROUNDS = 3
Search = Callable[[np.ndarray, int], list[list[Hit]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="static")
    parser.add_argument("--bytes", type=int, default=16)
    options = parser.parse_args()
    ablation = Ablation("hotpotqa", options.recipe, 0, [])
    made_with = results.provenance()
    dense, compressed = ablation.models(options.bytes)
    with tempfile.TemporaryDirectory() as scratch, threadpool_limits(1):
        faiss.omp_set_num_threads(1)
        index = _index(compressed, Path(scratch) / "index")
        flat = _flat(dense, index.manifest.lists)
        systems: dict[str, tuple[Trainer, Search]] = {
            f"RepCONC, {options.bytes} bytes": (
                compressed,
                lambda query, probes: index.search(query, 10, probes=probes),
            ),
            "uncompressed": (dense, lambda query, n: _hits(flat, dense.examples.document_ids, query, n)),
        }
        for name, (trainer, search) in systems.items():
            vectors = trainer.corpus.queries(ablation.queries, np.arange(len(ablation.queries))).cpu().numpy()
            probes = 1
            while probes <= index.manifest.lists:
                line = _point(ablation, vectors, search, probes)
                line |= {"system": name, "probes": probes, "lists": index.manifest.lists, "dataset": "hotpotqa"}
                results.append(SUITE, line | {"recipe": options.recipe}, made_with)
                print(line, flush=True)
                probes *= 2


def _index(trainer: Trainer, folder: Path) -> Index:
    ids, codes = trainer.examples.document_ids, trainer.codes

    def batches() -> Batches:
        yield [Document(id, "") for id in ids], codes

    return build(folder, batches(), coding=trainer.coding, scoring=trainer.quantizer.to_codec())


def _flat(trainer: Trainer, lists: int) -> Any:
    vectors = trainer.corpus.vectors(trainer.corpus.everything).cpu().numpy()
    index = faiss.index_factory(vectors.shape[1], f"IVF{lists},Flat", faiss.METRIC_INNER_PRODUCT)
    index.train(vectors)
    index.add(vectors)
    return index


def _hits(index: Any, ids: list[str], query: np.ndarray, probes: int) -> list[list[Hit]]:
    index.nprobe = probes
    scores, numbers = index.search(query[None], 10)
    pairs = zip(numbers[0].tolist(), scores[0].tolist(), strict=True)
    return [[Hit(ids[number], score) for number, score in pairs if number >= 0]]


def _point(ablation: Ablation, vectors: np.ndarray, search: Search, probes: int) -> dict[str, Any]:
    seconds, run = [], {}
    queries = ablation.dataset.queries("test")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        found = [search(vector, probes)[0] for vector in vectors]
        seconds.append(time.perf_counter() - start)
        run = {query.id: hits for query, hits in zip(queries, found, strict=True)}
    means = evaluate(run, ablation.dataset.qrels("test"), ["MRR@10"], ablation.dataset.relevance("test")).means
    return {"MRR@10": round(means["MRR@10"], 5), "queries a second": round(len(queries) / float(np.median(seconds)), 1)}


if __name__ == "__main__":
    main()
