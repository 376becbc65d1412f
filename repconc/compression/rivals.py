"""What else can be done with the same vectors, each at its own bytes, all exhaustive, all over the same documents.

PQ and OPQ at the bytes that were asked for, and, where ours are additive, such codes without learning; RaBitQ of faiss
(a bit a dimension and two factors); int8 and binary as sentence-transformers quantizes them, with queries left as they
are where that is better for them.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from repconc.additive import AdditiveCodec
from repconc.baselines import binary, int8, rabitq
from repconc.baselines.method import Coder, Searchable, product_coder
from repconc.codec import Codec
from repconc.compression.given import Sample
from repconc.compression.learning import Asked
from repconc.indexes.flat import FlatIndex
from repconc.quantization.opq import train_opq
from repconc.quantization.residual import train_residual
from repconc.records import Run

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
    for name, rotate in (("OPQ", True), ("PQ", False)):
        codec = train_opq(_some(sample, seed), bytes, codewords, rotate=rotate, seed=seed)
        yield _compressed(name, product_coder(codec), sample, asked)
    if find_spec("faiss") is None:
        say("RaBitQ is left out: faiss is not installed (pip install 'repconc[faiss]').")
    for method in (rabitq, int8, binary):
        if method is not rabitq or find_spec("faiss") is not None:
            yield _compressed(method.NAME, method.fit(sample.vectors, bytes, seed), sample, asked)


def unlearned(sample: Sample, asked: Asked, coding: AdditiveCodec, seed: int) -> System:
    """Additive codes of the same bytes, made from the vectors alone; lengths are given back where ours are."""
    some = _some(sample, seed)
    codec = replace(train_residual(some, coding.blocks, coding.codewords, seed=seed), beam=coding.beam)
    if coding.lengths is not None:
        codec = codec.with_lengths(codec.encode(some))
    return _compressed("residual codes", product_coder(codec), sample, asked)


def _some(sample: Sample, seed: int) -> np.ndarray:
    """Vectors to learn codebooks from."""
    return sample.vectors[np.sort(np.random.default_rng(seed).permutation(len(sample.ids))[:OPQ_SAMPLE])]


def _compressed(name: str, code: Coder, sample: Sample, asked: Asked) -> System:
    made = code(sample.ids, sample.vectors)
    return System(name, made.bytes, made.shared, exhaustive(made.index, asked))


def coded(name: str, sample: Sample, asked: Asked, coding: Codec, scoring: Codec) -> System:
    """Product codes of any kind."""
    return _compressed(name, product_coder(coding, scoring), sample, asked)


def mapped(name: str, sample: Sample, asked: Asked, coding: Codec, scoring: Codec) -> System:
    """The same without codes: what the maps do alone."""
    assert coding.map is not None
    assert scoring.map is not None
    index = FlatIndex(sample.ids, [coding.map(sample.vectors)])
    run = exhaustive(index, asked._replace(vectors=scoring.map(asked.vectors)))
    return System(name, 4 * index.dimension, scoring.map.nbytes, run)


def exhaustive(index: Searchable, asked: Asked) -> Run:
    return dict(zip(asked.ids, index.search(asked.vectors, DEPTH), strict=True))
