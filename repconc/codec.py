"""Product codes as plain arrays: the one file that training and search share. No torch.

A vector x of D dimensions is mapped (or not), padded with zeros to M blocks of d dimensions, and each block m is
replaced by the number of its nearest codeword among c[m, 0..K-1] (L2). Its inner product with a query q is then a sum
of M table entries, t[m, j] = <q_m, c[m, j]>  (Jegou et al., 2011; a rotation as the map: Ge et al., 2013).

Sizes: N vectors, B queries, D dimensions, M blocks of d dimensions, K codewords a block.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import safetensors
from safetensors.numpy import load, save

from repconc.errors import RepconcError, first_line
from repconc.kernel import kernel
from repconc.maps import VectorMap

VECTORS_AT_A_TIME = 4096


@dataclass(frozen=True)
class Codec:
    """Codebooks, and the map before them where it is not a module of the text model."""

    codebooks: np.ndarray  # [M, K, d] float32
    dimension: int  # D, before padding
    map: VectorMap | None = None

    def __post_init__(self) -> None:
        M, K, d = self.codebooks.shape
        if not 1 <= K <= 256:
            raise RepconcError(f"A codebook has {K} codewords; a code of one byte can tell 1 to 256 apart.")
        if not M * d - M < self.dimension <= M * d:
            raise RepconcError(f"{M} blocks of {d} dimensions do not fit vectors of {self.dimension} dimensions.")
        if self.map is not None and self.map.dimension != self.dimension:
            raise RepconcError(
                f"The map is for {self.map.dimension} dimensions and the vectors have {self.dimension} of them."
            )

    @property
    def blocks(self) -> int:
        """M, which is also the bytes of a code."""
        return int(self.codebooks.shape[0])

    @property
    def codewords(self) -> int:
        """K"""
        return int(self.codebooks.shape[1])

    @property
    def padding(self) -> int:
        """How many zeros stand behind a vector so that M divides its length."""
        return self.blocks * int(self.codebooks.shape[2]) - self.dimension

    def transform(self, vectors: np.ndarray) -> np.ndarray:
        """[N, D] -> [N, M, d]: mapped, padded and cut into blocks. Queries and documents alike."""
        vectors = np.atleast_2d(np.asarray(vectors, dtype=np.float32))
        if vectors.shape[1] != self.dimension:
            raise RepconcError(f"The vectors have {vectors.shape[1]} dimensions and the codec {self.dimension}.")
        if self.map is not None:
            vectors = self.map(vectors)
        if self.padding:
            vectors = np.pad(vectors, ((0, 0), (0, self.padding)))
        return vectors.reshape(len(vectors), self.blocks, -1)

    def encode(self, vectors: np.ndarray) -> np.ndarray:
        """[N, D] -> [N, M] uint8: the nearest codeword of each block; of two at the same distance, the lower number."""
        codes = np.empty((len(vectors), self.blocks), np.uint8)
        for start in range(0, len(vectors), VECTORS_AT_A_TIME):
            blocks = self.transform(vectors[start : start + VECTORS_AT_A_TIME])
            if not np.isfinite(blocks).all():
                raise RepconcError("A document vector holds NaN or an infinite value; it cannot be coded.")
            for m, (codebook, half_norms) in enumerate(zip(self.codebooks, self._half_norms(), strict=True)):
                # |x - c|^2 = |x|^2 - 2 (<x, c> - |c|^2 / 2), and |x|^2 is the same for every c.
                closeness = blocks[:, m] @ codebook.T - half_norms  # [n, K]
                codes[start : start + len(blocks), m] = closeness.argmax(axis=1)
        return codes

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """[N, M] -> [N, M * d]: the codewords side by side, in the space in which queries are scored."""
        return np.asarray(self.codebooks[np.arange(self.blocks), codes].reshape(len(codes), -1))

    def tables(self, queries: np.ndarray) -> np.ndarray:
        """[B, D] -> [B, M, K]: the inner product of each block of a query with each codeword."""
        return self.tables_of(self.transform(queries))

    def tables_of(self, blocks: np.ndarray) -> np.ndarray:
        """[B, M, d] -> [B, M, K]: the same for queries that were transformed already.

        Products are added up dimension after dimension, so that tables have the same bits alone and in a batch, with
        and without the native kernel.
        """
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

    def _half_norms(self) -> np.ndarray:
        return np.asarray((self.codebooks**2).sum(axis=2) / 2)  # [M, K]


def score(tables: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """[M, K] and [N, M] -> [N]: the float32 sum of table entries for m = 0..M-1 in that order, on every path.

    The order is fixed because float addition is not associative, and equal codes must get equal scores everywhere.
    """
    total = np.zeros(len(codes), np.float32)
    for m in range(codes.shape[1]):
        total += tables[m].astype(np.float32, copy=False)[codes[:, m]]
    return total


def to_bytes(coding: Codec, scoring: Codec) -> bytes:
    """Both codebooks of a model or an index: what documents are coded with, and what queries are scored with."""
    arrays: dict[str, np.ndarray] = {}
    for name, codec in (("coding", coding), ("scoring", scoring)):
        arrays |= {name: codec.codebooks} | {f"{name}.{part}": array for part, array in _arrays_of(codec.map).items()}
    return save(arrays)


def from_bytes(content: bytes, dimension: int, source: object) -> tuple[Codec, Codec]:
    """What `to_bytes` wrote; source: the file, to be named where it holds something else."""
    try:
        arrays = load(content)
        if unknown := arrays.keys() - KNOWN:
            raise RepconcError(f"{source} was written by another version: it holds {sorted(unknown)}; build it again.")
        coding, scoring = (Codec(arrays[name], dimension, _map_of(arrays, name)) for name in ("coding", "scoring"))
        return coding, scoring
    except (safetensors.SafetensorError, KeyError, ValueError) as error:
        raise RepconcError(f"{source} does not hold two codebooks: {first_line(error)}") from error


PARTS = ("linear", "inner", "outer", "unit")
KNOWN = {name for codec in ("coding", "scoring") for name in (codec, *(f"{codec}.{part}" for part in PARTS))}


def _arrays_of(mapping: VectorMap | None) -> dict[str, np.ndarray]:
    if mapping is None:
        return {}
    parts = {"linear": mapping.linear, "inner": mapping.inner, "outer": mapping.outer}
    unit = {"unit": np.ones(1, np.uint8)} if mapping.unit else {}
    return {name: np.ascontiguousarray(part) for name, part in parts.items() if part is not None} | unit


def _map_of(arrays: dict[str, np.ndarray], name: str) -> VectorMap | None:
    parts = {part: arrays[f"{name}.{part}"] for part in ("linear", "inner", "outer") if f"{name}.{part}" in arrays}
    return VectorMap(**parts, unit=f"{name}.unit" in arrays) if parts else None
