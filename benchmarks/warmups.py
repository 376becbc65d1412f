"""Ways to warm additive codes up, without any labels: ours, and those of faiss.

    python -m benchmarks.warmups --sizes 8

Codebooks are learned on one thread from the vectors of the trained dense model, as many as a recipe's warm-up sees;
then all documents are coded: by our beam search, and those of LSQ, which has no levels, as faiss does it. Dev
questions, seed 0, before and after lengths are given back (benchmarks.lengths).
"""

import argparse
import time
from collections.abc import Callable
from functools import partial

import faiss
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import results
from benchmarks.lengths import COLUMNS, figures_of
from benchmarks.setting import on_dev
from repconc.additive import AdditiveCodec
from repconc.evaluation.tables import Table
from repconc.quantization.residual import ROUNDS, SHAKEN, train_residual

SUITE = "warmups"
Learned = tuple[AdditiveCodec, Callable[[np.ndarray], np.ndarray]]
"""A codec, and what gives vectors [N, D] their codes [N, M]."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="hotpotqa,insuranceqa")
    parser.add_argument("--sizes", default="8")
    options = parser.parse_args()
    for name in options.sets.split(","):
        _measure(name, [int(size) for size in options.sizes.split(",")])


def residual_of_faiss(vectors: np.ndarray, size: int, kind: int) -> Learned:
    """Level by level, with a beam of 5."""
    learned = faiss.ResidualQuantizer(vectors.shape[1], size, 8)
    learned.train_type = kind
    learned.train(vectors)
    codec = codec_of(learned)
    return codec, codec.encode


def lsq_of_faiss(vectors: np.ndarray, size: int) -> Learned:
    """Local search: codewords without an order (Martinez et al., 2018)."""
    learned = faiss.LocalSearchQuantizer(vectors.shape[1], size, 8)
    learned.train(vectors)
    return codec_of(learned), learned.compute_codes


def ours(vectors: np.ndarray, size: int, rounds: int = ROUNDS, shaken: float = SHAKEN) -> Learned:
    codec = train_residual(vectors, size, rounds=rounds, shaken=shaken)
    return codec, codec.encode


def codec_of(learned: faiss.AdditiveQuantizer) -> AdditiveCodec:
    """The codebooks of faiss, of 256 codewords each."""
    return AdditiveCodec(faiss.vector_to_array(learned.codebooks).reshape(learned.M, 256, learned.d), learned.d)


KINDS: dict[str, Callable[[np.ndarray, int], Learned]] = {
    "faiss, k-means of residuals": partial(residual_of_faiss, kind=faiss.ResidualQuantizer.Train_default),
    "faiss, progressive dimensions": partial(residual_of_faiss, kind=faiss.ResidualQuantizer.Train_progressive_dim),
    "faiss, LSQ": lsq_of_faiss,
    "ours, level by level": partial(ours, rounds=0),
    "ours, then together": partial(ours, shaken=0.0),
    "ours, then together, shaken": ours,
    "ours, twice the rounds": partial(ours, rounds=2 * ROUNDS),
}


def _measure(name: str, sizes: list[int]) -> None:
    made_with = results.provenance()
    setting, queries, documents = on_dev(name)
    count = setting.recipe.quantizer.sample
    sample = documents[np.sort(np.random.default_rng(0).permutation(len(documents))[:count])]
    for size in sizes:
        for kind, learn in KINDS.items():
            key = setting.key | {"kind": kind, "bytes": size}
            if results.has(SUITE, key):
                continue
            start = time.perf_counter()
            with threadpool_limits(1):
                codec, code = learn(sample, size)
            seconds = round(time.perf_counter() - start, 1)
            line = key | {"seconds": seconds} | figures_of(setting, codec, code(documents), queries, documents)
            results.append(SUITE, line, made_with)
            print(line, flush=True)


def warmups_table() -> Table:
    """All that was measured."""
    rows = [
        [
            f"{line['dataset']}, {line['kind']}",
            str(line["bytes"]),
            *(f"{line[column]:.3f}" for column in COLUMNS),
            f"{line['seconds']:.0f}",
        ]
        for line in results.read(SUITE)
    ]
    return Table(["set and warm-up", "bytes", *COLUMNS, "seconds"], rows)


if __name__ == "__main__":
    main()
