"""The first lines to beat: BM25 and the uncompressed encoders, exhaustive search, on the test questions.

    python -m benchmarks.baselines [--sets hotpotqa,insuranceqa] [--systems bm25,static,minilm] [--again]

A line that is there already is not measured again without --again. Vectors are kept in the cache and resumed.
"""

import argparse
import time
from pathlib import Path
from typing import Any

from benchmarks import results
from repconc import Encoder, Searcher, encode_corpus, evaluate, load_dataset
from repconc.baselines.bm25 import BM25
from repconc.data.catalogue import folder_of, get
from repconc.data.dataset import RetrievalDataset
from repconc.evaluation.measures import Search, answer
from repconc.evaluation.timing import queries_per_second
from repconc.files import cache_directory

SUITE = "baselines"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="hotpotqa,insuranceqa")
    parser.add_argument("--systems", default="bm25,static,minilm")
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    known = {(line["dataset"], line["system"]) for line in results.read(SUITE)}
    for name in options.sets.split(","):
        for system in options.systems.split(","):
            if (name, system) not in known or options.again:
                made_with = results.provenance()
                line = results.append(SUITE, measure(name, system), made_with)
                print(name, system, line["measures"], f"{line['bytes_per_document']:.0f} bytes", flush=True)


def measure(name: str, system: str) -> dict[str, Any]:
    """One line: a system on the test questions of a set."""
    if not folder_of(name).is_dir():
        get(name)
    dataset = load_dataset(folder_of(name))
    encoder = None if system == "bm25" else Encoder(system)
    reused = encoder is not None and vectors_of(dataset, system).exists()
    start = time.perf_counter()
    search, size = _exhaustive(dataset, encoder, system) if encoder else _bm25(dataset)
    built = time.perf_counter()
    queries = dataset.queries("test")
    evaluation = evaluate(answer(search, queries), dataset.qrels("test"), relevance=dataset.relevance("test"))
    return {
        "dataset": name,
        "split": "test",
        "system": system,
        "queries": len(queries),
        "documents": dataset.card.documents,
        "bytes_per_document": round(size, 1),
        "bytes_count": "postings and vocabulary" if system == "bm25" else "float32 vectors",
        "measures": {measure: round(value, 5) for measure, value in evaluation.means.items()},
        "tied@10": round(evaluation.tied, 5),
        "build_seconds": None if reused else round(built - start, 1),
        "queries_per_second": round(queries_per_second(search, [query.text for query in queries[:200]]), 1),
    }


def _bm25(dataset: RetrievalDataset) -> tuple[Search, float]:
    index = BM25(dataset.documents)
    return index.search, index.nbytes / len(index)


def _exhaustive(dataset: RetrievalDataset, encoder: Encoder, name: str) -> tuple[Search, float]:
    encode_corpus(encoder, dataset, vectors_of(dataset, name))
    searcher = Searcher.open(vectors_of(dataset, name))
    return searcher.search, searcher.index.nbytes / len(searcher.index)


def vectors_of(dataset: RetrievalDataset, encoder: str) -> Path:
    """Where a corpus's vectors are kept in the cache."""
    return cache_directory() / "vectors" / f"{dataset.name}-{encoder}"


if __name__ == "__main__":
    main()
