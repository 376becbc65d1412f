"""Product codes as plain arrays: what training and search share. No torch. Additive ones: additive.py.

A vector x of D dimensions is mapped (or not), padded with zeros to M blocks of d dimensions, and each block m is
replaced by the number of its nearest codeword among c[m, 0..K-1] (L2). Its inner product with a query q is then a sum
of M table entries, t[m, j] = <q_m, c[m, j]>  (Jegou et al., 2011; a rotation as the map: Ge et al., 2013).

Sizes: N vectors, B queries, D dimensions, M blocks of d dimensions, K codewords a block.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from repconc.errors import RepconcError
from repconc.kernel import kernel
from repconc.lengths import Lengths, learn_lengths
from repconc.maps import VectorMap

VECTORS_AT_A_TIME = 4096


@dataclass(frozen=True)
class Codec:
    """Codebooks, and the map before them where it is not a module of the text model."""

    codebooks: np.ndarray  # [M, K, d] float32
    dimension: int  # D, before padding
    map: VectorMap | None = None
    lengths: Lengths | None = None  # of decoded vectors; what documents are coded with says it, scores are multiplied
    at_a_time: ClassVar[int] = VECTORS_AT_A_TIME  # vectors that are coded
    in_blocks: ClassVar[bool] = True  # each codeword in a block of dimensions of its own

    def __post_init__(self) -> None:
        if not 1 <= self.codewords <= 256:
            raise RepconcError(
                f"A codebook has {self.codewords} codewords; a code of one byte can tell 1 to 256 apart."
            )
        self._check_shape()
        if self.map is not None and self.map.dimension != self.dimension:
            raise RepconcError(
                f"The map is for {self.map.dimension} dimensions and the vectors have {self.dimension} of them."
            )

    def _check_shape(self) -> None:
        M, _, d = self.codebooks.shape
        if self.dimension < M or not M * d - M < self.dimension <= M * d:
            raise RepconcError(f"{M} blocks of {d} dimensions do not fit vectors of {self.dimension} dimensions.")

    @property
    def structure(self) -> str:
        """What kind of codes these are, in words."""
        return "product"

    @property
    def blocks(self) -> int:
        """M, which is also the bytes of a code."""
        return int(self.codebooks.shape[0])

    @property
    def codewords(self) -> int:
        """K"""
        return int(self.codebooks.shape[1])

    @property
    def width(self) -> int:
        """The dimensions of decoded vectors, M * d: those of vectors and the padding."""
        return self.blocks * int(self.codebooks.shape[2])

    @property
    def padding(self) -> int:
        """How many zeros stand behind a vector so that M divides its length."""
        return self.width - self.dimension

    @property
    def nbytes(self) -> int:
        """Of codebooks and map: what search needs beside codes."""
        return self.codebooks.nbytes + (self.map.nbytes if self.map else 0)

    @property
    def copied(self) -> int:
        """Bytes of a second form of the codebooks, from which tables are made."""
        return self.codebooks.nbytes

    @property
    def floats(self) -> np.ndarray:
        """The codewords as floats: [M, K, d] float32"""
        return self.codebooks

    def transform(self, vectors: np.ndarray) -> np.ndarray:
        """[N, D] -> [N, width]: mapped and padded. Queries and documents alike."""
        vectors = np.atleast_2d(np.asarray(vectors, dtype=np.float32))
        if vectors.shape[1] != self.dimension:
            raise RepconcError(f"The vectors have {vectors.shape[1]} dimensions and the codec {self.dimension}.")
        if self.map is not None:
            vectors = self.map(vectors)
        return np.pad(vectors, ((0, 0), (0, self.padding))) if self.padding else vectors

    def encode(self, vectors: np.ndarray) -> np.ndarray:
        """[N, D] -> [N, M] uint8"""
        codes = np.empty((len(vectors), self.blocks), np.uint8)
        for start in range(0, len(vectors), self.at_a_time):
            transformed = self.transform(vectors[start : start + self.at_a_time])
            if not np.isfinite(transformed).all():
                raise RepconcError("A document vector holds NaN or an infinite value; it cannot be coded.")
            codes[start : start + len(transformed)] = self._nearest(transformed)
        return codes

    def _nearest(self, transformed: np.ndarray) -> np.ndarray:
        """[n, width] -> [n, M]: the nearest codeword of each block; of two at the same distance, the lower number."""
        codes = np.empty((len(transformed), self.blocks), np.uint8)
        blocks = transformed.reshape(len(transformed), self.blocks, -1)
        for m, (codebook, half_norms) in enumerate(zip(self.codebooks, self.half_norms, strict=True)):
            # |x - c|^2 = |x|^2 - 2 (<x, c> - |c|^2 / 2), and |x|^2 is the same for every c.
            closeness = blocks[:, m] @ codebook.T - half_norms  # [n, K]
            codes[:, m] = closeness.argmax(axis=1)
        return codes

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """[N, M] -> [N, width]: the codewords side by side, in the space in which queries are scored."""
        return np.asarray(self.codebooks[np.arange(self.blocks), codes].reshape(len(codes), -1))

    @property
    def gains(self) -> np.ndarray:
        """[C]: what the scores of each class of documents are multiplied by."""
        return np.ones(1, np.float32) if self.lengths is None else self.lengths.gains

    def classes_of(self, codes: np.ndarray) -> np.ndarray:
        """[N, M] -> [N]: the classes of documents, by the lengths that these codebooks decode them with."""
        if self.lengths is None:
            return np.zeros(len(codes), np.int64)
        return self.lengths.classes_of(self.lengths_of(codes))

    def with_lengths(self, codes: np.ndarray) -> Self:
        """The same, with classes of the lengths that codes [N, M] of vectors of length 1 are decoded with."""
        return replace(self, lengths=learn_lengths(self.lengths_of(codes)))

    def lengths_of(self, codes: np.ndarray) -> np.ndarray:
        """[N, M] -> [N] float32: the lengths of decoded vectors."""
        lengths = np.empty(len(codes), np.float32)
        for start in range(0, len(codes), VECTORS_AT_A_TIME):
            part = slice(start, start + VECTORS_AT_A_TIME)
            decoded = self.decode(codes[part])
            lengths[part] = np.sqrt(np.einsum("nd,nd->n", decoded, decoded))
        return lengths

    def tables(self, queries: np.ndarray) -> np.ndarray:
        """[B, D] -> [B, M, K]: the inner product of each block of a query with each codeword."""
        return self.tables_of(self.transform(queries))

    def tables_of(self, transformed: np.ndarray) -> np.ndarray:
        """[B, width] -> [B, M, K]: the same for queries that were transformed already.

        Products are added up dimension after dimension, so that tables have the same bits alone and in a batch, with
        and without the native kernel.
        """
        blocks = transformed.reshape(len(transformed), self.blocks, -1)
        if (native := kernel()) is not None:
            return np.asarray(native.tables(self.by_dimension, np.ascontiguousarray(blocks))[..., : self.codewords])
        tables = np.zeros((len(blocks), self.blocks, self.codewords), np.float32)
        with np.errstate(over="ignore", invalid="ignore"):  # who searches looks at the result
            for i in range(blocks.shape[2]):
                tables += blocks[:, :, i, None] * self.by_dimension[:, i]
        return tables

    @cached_property
    def by_dimension(self) -> np.ndarray:
        """The codebooks as tables read them: [M, d, K]"""
        return np.ascontiguousarray(self.codebooks.transpose(0, 2, 1))

    @cached_property
    def half_norms(self) -> np.ndarray:
        """|c|^2 / 2 of every codeword: [M, K]"""
        return half_norms_of(self.codebooks)


def half_norms_of(codebooks: np.ndarray) -> np.ndarray:
    """[M, K, d] -> [M, K]"""
    return np.asarray((codebooks**2).sum(axis=2) / 2)


def score(tables: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """[M, K] and [N, M] -> [N]: the float32 sum of table entries for m = 0..M-1 in that order, on every path.

    The order is fixed because float addition is not associative, and equal codes must get equal scores everywhere.
    """
    total = np.zeros(len(codes), np.float32)
    for m in range(codes.shape[1]):
        total += tables[m].astype(np.float32, copy=False)[codes[:, m]]
    return total
