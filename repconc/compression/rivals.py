"""What else can be done with the same vectors, each at its own bytes, all exhaustive, all over the same documents.

PQ and OPQ at the bytes that were asked for; RaBitQ of faiss (a bit a dimension and two factors); int8 and binary as
sentence-transformers quantizes them, with queries left as they are where that is better for them.
"""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from repconc.codec import Codec
from repconc.compression.given import Sample
from repconc.compression.learning import Asked
from repconc.indexes.codes import CodeIndex
from repconc.indexes.flat import FlatIndex
from repconc.quantization.opq import train_opq
from repconc.records import Hit, Run

DEPTH = 100
OPQ_SAMPLE = 65_536


class System(NamedTuple):
    """A way to search, and what it found."""

    name: str
    bytes: float
    """A document."""
    shared: int
    """Bytes beside, once: codebooks, maps, ranges."""
    run: Run


def rivals(
    sample: Sample, asked: Asked, bytes: int, codewords: int, seed: int, say: Callable[[str], None]
) -> Iterator[System]:
    """All of them; one whose package is missing is left out, and that is said."""
    D = sample.vectors.shape[1]
    yield System("uncompressed", 4 * D, 0, exhaustive(FlatIndex(sample.ids, [sample.vectors]), asked))
    chosen = np.sort(np.random.default_rng(seed).permutation(len(sample.ids))[:OPQ_SAMPLE])
    for name, rotate in (("OPQ", True), ("PQ", False)):
        codec = train_opq(sample.vectors[chosen], bytes, codewords, rotate=rotate, seed=seed)
        yield coded(name, sample, asked, codec, codec)
    if find_spec("faiss") is None:
        say("RaBitQ is left out: faiss is not installed (pip install 'repconc[faiss]').")
    else:
        yield _rabitq(sample, asked)
    yield _int8(sample, asked)
    yield _binary(sample, asked)


def coded(name: str, sample: Sample, asked: Asked, coding: Codec, scoring: Codec) -> System:
    """Product codes of any kind."""
    shared = scoring.codebooks.nbytes + (scoring.map.nbytes if scoring.map else 0)
    index = CodeIndex(sample.ids, coding.encode(sample.vectors), scoring)
    return System(name, coding.blocks, shared, exhaustive(index, asked))


def mapped(name: str, sample: Sample, asked: Asked, coding: Codec, scoring: Codec) -> System:
    """The same without codes: what the maps do alone."""
    assert coding.map is not None
    assert scoring.map is not None
    index = FlatIndex(sample.ids, [coding.map(sample.vectors)])
    run = exhaustive(index, asked._replace(vectors=scoring.map(asked.vectors)))
    return System(name, 4 * index.dimension, scoring.map.nbytes, run)


def exhaustive(index: CodeIndex | FlatIndex, asked: Asked) -> Run:
    return dict(zip(asked.ids, index.search(asked.vectors, DEPTH), strict=True))


def _rabitq(sample: Sample, asked: Asked) -> System:
    import faiss

    D = sample.vectors.shape[1]
    index: Any = faiss.index_factory(D, "RR,RaBitQ", faiss.METRIC_INNER_PRODUCT)
    index.train(sample.vectors)
    index.add(sample.vectors)
    inner: Any = faiss.downcast_index(index.index)
    scores, places = index.search(asked.vectors, min(DEPTH, len(sample.ids)))
    return System("RaBitQ (faiss)", inner.code_size, 4 * D * (D + 1), _as_run(sample, asked, places, scores))


def _int8(sample: Sample, asked: Asked) -> System:
    from sentence_transformers.util.quantization import quantize_embeddings

    low, high = sample.vectors.min(axis=0), sample.vectors.max(axis=0)
    codes = quantize_embeddings(sample.vectors, "int8", ranges=np.stack([low, high]))
    step = (high - low) / 255
    restored = (np.asarray(codes, np.float32) + 128.5) * step + low  # the middle of what a code stands for
    index = FlatIndex(sample.ids, [restored.astype(np.float32)])
    return System("int8 (sentence-transformers)", len(low), 8 * len(low), exhaustive(index, asked))


def _binary(sample: Sample, asked: Asked) -> System:
    """Signs of documents against whole queries, which ranks better than counting equal bits."""
    from sentence_transformers.util.quantization import quantize_embeddings

    D = sample.vectors.shape[1]
    bits = np.unpackbits(np.asarray(quantize_embeddings(sample.vectors, "ubinary")), axis=1)[:, :D]
    index = FlatIndex(sample.ids, [2 * bits.astype(np.float32) - 1])
    return System("binary (sentence-transformers)", -(-D // 8), 0, exhaustive(index, asked))


def _as_run(sample: Sample, asked: Asked, places: np.ndarray, scores: np.ndarray) -> Run:
    return {
        id: [Hit(sample.ids[place], float(score)) for place, score in zip(row, values, strict=True) if place >= 0]
        for id, row, values in zip(asked.ids, places.tolist(), scores.tolist(), strict=True)
    }
