"""MRR@10 against queries a second on HotpotQA, one thread: the paper's figure of latency.

    python -m benchmarks.tradeoff --recipe static --sizes 16,32

RepCONC in its inverted file, the uncompressed vectors of the same trained encoder in an inverted file of as many lists
(faiss IndexIVFFlat), and BM25, one query at a time and in batches of 32; each point is a number of lists that are read.
Queries are encoded before the clock starts, words are looked up while it runs. The models are those of
`python -m benchmarks.training`, seed 0.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import faiss
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import results
from benchmarks.training import Ablation
from repconc.baselines import bm25
from repconc.evaluation.measures import evaluate
from repconc.indexes.ivf import Index
from repconc.indexes.writing import Batches, build
from repconc.records import Document, Hit
from repconc.training.trainer import Trainer

SUITE = "tradeoff"
ROUNDS, DEPTH = 3, 10
Search = Callable[[np.ndarray, int | None], list[list[Hit]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="static")
    parser.add_argument("--sizes", default="16,32")
    options = parser.parse_args()
    ablation = Ablation("hotpotqa", options.recipe, 0, [])
    made_with = results.provenance()
    with tempfile.TemporaryDirectory() as scratch:
        lists, systems = _systems(ablation, [int(size) for size in options.sizes.split(",")], Path(scratch))
        faiss.omp_set_num_threads(1)
        with threadpool_limits(1):
            for name, (queries, search) in systems.items():
                steps = [None] if name == bm25.NAME else [2**power for power in range(lists.bit_length())]
                for batch, probes in product((1, 32), steps):
                    line = _point(ablation, queries, search, probes, batch)
                    line |= {"system": name, "batch": batch, "probes": probes, "lists": lists}
                    results.append(SUITE, line | {"dataset": "hotpotqa", "recipe": options.recipe}, made_with)
                    print(line, flush=True)


def _systems(ablation: Ablation, sizes: list[int], scratch: Path) -> tuple[int, dict[str, tuple[np.ndarray, Search]]]:
    """How many lists there are; by its name what each system is asked [Q, ...], and its search."""
    systems: dict[str, tuple[np.ndarray, Search]] = {}
    for size in sizes:
        dense, compressed = ablation.models(size)
        index = _index(compressed, scratch / f"index-{size}")
        systems[f"RepCONC, {size} bytes"] = ablation.setting.asked(compressed), partial(_ours, index)
    lists = index.manifest.lists
    flat = partial(_theirs, _flat(dense, lists), dense.examples.document_ids)
    systems["uncompressed"] = ablation.setting.asked(dense), flat
    words = bm25.BM25(ablation.setting.dataset.documents)
    texts = np.array([query.text for query in ablation.setting.dataset.queries("test")], dtype=object)
    systems[bm25.NAME] = texts, lambda queries, probes: words.search(queries.tolist(), DEPTH)
    return lists, systems


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


def _ours(index: Index, queries: np.ndarray, probes: int | None) -> list[list[Hit]]:
    return index.search(queries, DEPTH, probes=probes)


def _theirs(index: Any, ids: list[str], queries: np.ndarray, probes: int | None) -> list[list[Hit]]:
    index.nprobe = probes
    scores, numbers = index.search(queries, DEPTH)
    rows = zip(numbers.tolist(), scores.tolist(), strict=True)
    return [[Hit(ids[n], score) for n, score in zip(*row, strict=True) if n >= 0] for row in rows]


def _point(ablation: Ablation, vectors: np.ndarray, search: Search, probes: int | None, batch: int) -> dict[str, Any]:
    queries = ablation.setting.dataset.queries("test")
    cut = [vectors[start : start + batch] for start in range(0, len(vectors), batch)]
    seconds, found = [], []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        found = [hits for part in cut for hits in search(part, probes)]
        seconds.append(time.perf_counter() - start)
    run = {query.id: hits for query, hits in zip(queries, found, strict=True)}
    means = evaluate(
        run, ablation.setting.dataset.qrels("test"), ["MRR@10"], ablation.setting.dataset.relevance("test")
    ).means
    return {"MRR@10": round(means["MRR@10"], 5), "queries a second": round(len(queries) / float(np.median(seconds)), 1)}


if __name__ == "__main__":
    main()
