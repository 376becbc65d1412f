"""Additive codes as plain arrays: a vector is the sum of M whole codewords, found level by level (Chen et al., 2010).

Search needs one thing of a code: that the score is a sum of table entries. With codewords in blocks of their own, that
is product quantization; with whole ones,

    <q, c[0, j_0] + ... + c[M-1, j_(M-1)]>  =  sum over m of t[m, j_m],    t[m, j] = <q, c[m, j]>.

Codes, scan and kernel are the same. Codebooks are M times as large, so a dimension is kept in a byte: a codeword is a
scale times whole numbers of -127 to 127. (A dimension a hundred times as large as all others leaves them few steps.)
While tables are made, a query is whole numbers too, of two bytes; sums of their products are exact in any order, and so
the same on every machine, alone and in a batch.

Sizes: N vectors, B queries, D dimensions, M levels, K codewords a level, b partial codes.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from repconc.codec import Codec, half_norms_of
from repconc.errors import RepconcError
from repconc.kernel import kernel, row_width

VECTORS_AT_A_TIME = 512
"""Their products with a level's codewords stay in the cache."""
BEAM, WIDEST_BEAM = 8, 256
"""Partial codes that are kept from level to level, by default and at most. More of them code slower and closer."""


LARGEST_SCALE = np.finfo(np.float32).max / 128
"""With it every codeword is a finite float."""


@dataclass(frozen=True)
class AdditiveCodec(Codec):
    """Codebooks of whole vectors [M, K, D], a byte a dimension, and the map before them; floats are rounded to that."""

    beam: int = BEAM
    scales: np.ndarray = field(default_factory=lambda: np.empty((0, 0), np.float32))  # [M, K] float32
    in_blocks: ClassVar[bool] = False
    at_a_time: ClassVar[int] = 1 << 15  # so that products of codewords with each other are made for many vectors

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.beam <= WIDEST_BEAM:
            raise RepconcError(f"A beam of {self.beam} partial codes; give 1 to {WIDEST_BEAM}.")
        if self.codebooks.dtype != np.int8:
            rounded, scales = to_levels(self.codebooks)
            object.__setattr__(self, "codebooks", rounded)
            object.__setattr__(self, "scales", scales)
        for name in ("codebooks", "scales"):  # as the kernel reads them and files hold them
            object.__setattr__(self, name, np.require(getattr(self, name), requirements=["C", "A"]))
        fitting = self.scales.shape == self.codebooks.shape[:2] and self.scales.dtype == np.float32
        if not fitting or not ((self.scales >= 0) & (self.scales <= LARGEST_SCALE)).all():
            raise RepconcError(f"Additive codebooks need a scale for each codeword, from 0 to {LARGEST_SCALE:.2g}.")

    def _check_shape(self) -> None:
        if not self.blocks or self.codebooks.shape[2] != self.dimension:
            shape = f"{self.blocks} levels of codewords of {self.codebooks.shape[2]} dimensions"
            raise RepconcError(f"{shape} do not fit vectors of {self.dimension} dimensions.")

    @property
    def structure(self) -> str:
        return f"additive, beam {self.beam}"

    @property
    def width(self) -> int:
        """The dimensions of decoded vectors."""
        return self.dimension

    @property
    def nbytes(self) -> int:
        return super().nbytes + self.scales.nbytes

    def _nearest(self, transformed: np.ndarray) -> np.ndarray:
        """[n, D] -> [n, M]: of each vector the best code that a beam search finds."""
        return code_by_beam(transformed, self.floats, self.half_norms, self.beam)

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """[N, M] -> [N, D]: the sum of the codewords."""
        total = np.zeros((len(codes), self.dimension), np.float32)
        for m in range(self.blocks):
            total += self.codebooks[m][codes[:, m]] * self.scales[m][codes[:, m], None]
        return total

    def tables_of(self, transformed: np.ndarray) -> np.ndarray:
        """[B, D] -> [B, M, K]: sums of products of whole numbers, times what one of them stands for."""
        if transformed.shape[1] != self.dimension:  # zeros behind the dimensions would hide it
            raise RepconcError(f"The vectors have {transformed.shape[1]} dimensions and the codec {self.dimension}.")
        native = kernel()
        if native is not None:
            return np.asarray(native.additive_tables(self.rows, self.scales, np.ascontiguousarray(transformed)))
        whole, units = to_whole(transformed)
        sums = np.stack([whole @ codebook.T.astype(np.float64) for codebook in self.codebooks], axis=1)  # exact
        with np.errstate(over="ignore", invalid="ignore"):  # who searches looks at the result
            return np.asarray(sums * units[:, None, None] * self.scales, dtype=np.float32)

    @cached_property
    def rows(self) -> np.ndarray:
        """The codebooks as the kernel reads them, [M, K, a multiple of 128]: zeros behind D, or the same array."""
        missing = row_width(self.dimension) - self.dimension
        return np.pad(self.codebooks, ((0, 0), (0, 0), (0, missing))) if missing else self.codebooks

    @property
    def copied(self) -> int:
        width = row_width(self.dimension)
        return self.blocks * self.codewords * width if width > self.dimension else 0

    @property
    def floats(self) -> np.ndarray:
        """[M, K, D] float32: four times the memory of the codebooks, so nobody keeps them."""
        return np.asarray(self.codebooks * self.scales[..., None])

    @cached_property
    def half_norms(self) -> np.ndarray:
        """|c|^2 / 2 of every codeword: [M, K]"""
        return half_norms_of(self.floats)


def to_levels(codebooks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[M, K, D] -> whole numbers of -127 to 127 [M, K, D] int8, and what one of them stands for [M, K] float32."""
    with np.errstate(over="ignore"):
        floats = np.asarray(codebooks, np.float32)
    if not np.isfinite(floats).all():
        raise RepconcError("The codebooks hold NaN or infinite values.")
    scales = np.maximum(np.abs(floats).max(axis=2) / np.float32(127), np.finfo(np.float32).tiny)
    return np.ascontiguousarray(np.rint(floats / scales[..., None]), dtype=np.int8), np.ascontiguousarray(scales)


def to_whole(queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[B, D] -> whole numbers [B, D], and what one of them stands for [B], in float64; as native/whole.hpp has it."""
    largest = np.abs(queries).max(axis=1).astype(np.float64)
    scales = np.where(np.isfinite(largest), largest, np.nan) / min(32767, (2**31 - 1) // (128 * queries.shape[1]))
    with np.errstate(invalid="ignore", divide="ignore"):
        units = np.nan_to_num(queries / scales[:, None])
    return np.trunc(units + np.copysign(0.5, units)), scales


def make_codec(codebooks: np.ndarray, dimension: int, beam: int = BEAM) -> Codec:
    """The codec that floats of this shape belong to; one codebook is the same in both structures. beam: of additive."""
    if len(codebooks) > 1 and codebooks.shape[2] == dimension:
        return AdditiveCodec(codebooks, dimension, beam=beam)
    return Codec(codebooks.astype(np.float32, copy=False), dimension)


def with_beam(codec: Codec, beam: int) -> AdditiveCodec:
    """The same, with so many partial codes while documents are coded."""
    if not isinstance(codec, AdditiveCodec):
        raise RepconcError("Product codes are found block by block, without a beam; leave it out.")
    return replace(codec, beam=beam)


def code_by_beam(vectors: np.ndarray, codebooks: np.ndarray, half_norms: np.ndarray, beam: int) -> np.ndarray:
    """[n, D], [M, K, D] and [M, K] -> [n, M] uint8: a beam search, in the form that multiplies less."""
    M, K, _ = codebooks.shape
    if kernel() is not None and len(vectors) * (beam - 1) > M * K / 2:
        return search_products(vectors, codebooks, half_norms, beam)
    codes = np.empty((len(vectors), M), np.uint8)
    for part in parts_of(vectors):
        codes[part] = beam_search(vectors[part], codebooks, half_norms, beam)
    return codes


def search_products(vectors: np.ndarray, codebooks: np.ndarray, half_norms: np.ndarray, beam: int) -> np.ndarray:
    """The same search for many vectors: products of residuals with a codeword c come from those that are there already,

        <x - c_0 - ... - c_(m-1), c>  =  <x, c> - <c_0, c> - ... - <c_(m-1), c>,

    so that a vector is multiplied once, and not once for each of its partial codes. (faiss: beam search by tables.)
    Near ties may end differently; vectors that lie a thousand times their spread from zero lose by the rounding.
    """
    n, (M, K, D), native = len(vectors), codebooks.shape, kernel()
    codes, gained = np.empty((n, 1, 0), np.uint8), np.zeros((n, 1), np.float32)  # [n, b, m], [n, b]
    for m, (codebook, norms) in enumerate(zip(codebooks, half_norms, strict=True)):
        between = (codebooks[:m].reshape(-1, D) @ codebook.T).reshape(m, K, K)
        kept = min(beam, codes.shape[1] * K) if m < M - 1 else 1
        longer, gains = np.empty((n, kept, m + 1), np.uint8), np.empty((n, kept), np.float32)
        for part in parts_of(vectors):
            products = vectors[part] @ codebook.T - norms  # [n, K]
            longer[part], gains[part] = native.lengthen(products, between, codes[part], gained[part], kept)
        codes, gained = longer, gains
    return np.asarray(codes[:, 0])


def parts_of(vectors: np.ndarray) -> Iterator[slice]:
    return (slice(start, start + VECTORS_AT_A_TIME) for start in range(0, len(vectors), VECTORS_AT_A_TIME))


def beam_search(vectors: np.ndarray, codebooks: np.ndarray, half_norms: np.ndarray, beam: int) -> np.ndarray:
    """[n, D], [M, K, D] and [M, K] -> [n, M] uint8. A beam of one takes the nearest codeword at each level."""
    rows = np.arange(len(vectors))[:, None]
    residuals, gained = vectors[:, None], np.zeros((len(vectors), 1), np.float32)  # [n, b, D], [n, b]
    codes = np.empty((len(vectors), 1, 0), np.uint8)  # [n, b, m]
    last = len(codebooks) - 1
    for m, (codebook, norms) in enumerate(zip(codebooks, half_norms, strict=True)):
        residuals, gained, parents, words = next_level(residuals, gained, codebook, norms, beam if m < last else 1)
        codes = np.concatenate([codes[rows, parents], words[..., None].astype(np.uint8)], axis=2)
    return np.asarray(codes[:, 0])


def next_level(
    residuals: np.ndarray, gained: np.ndarray, codebook: np.ndarray, half_norms: np.ndarray, beam: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """One level of the beam search: the best partial codes that are one codeword longer.

    What is kept of a vector are its residuals r [n, b, D], one for each partial code, and half of how much closer to
    zero than the vector they are [n, b]: |r - c|^2 = |r|^2 - 2 (<r, c> - |c|^2 / 2). With them come the partial codes
    that they go on from [n, b], and the codewords that were added [n, b].
    """
    n, _, D = residuals.shape
    K = len(codebook)
    closeness = residuals.reshape(-1, D) @ codebook.T - half_norms
    total = (closeness.reshape(n, -1, K) + gained[..., None]).reshape(n, -1)  # [n, b * K]
    best = highest(total, min(beam, total.shape[1]))
    parents, words = np.divmod(best, K)
    residuals = residuals[np.arange(n)[:, None], parents] - codebook[words]
    return residuals, np.take_along_axis(total, best, axis=1), parents, words


def highest(values: np.ndarray, count: int) -> np.ndarray:
    """[n, v] -> [n, count]: where the highest values of each row are, the highest first; of equal ones the first."""
    native = kernel()
    if count == 1:
        return np.asarray(values.argmax(axis=1)[:, None])
    if native is not None:
        return np.asarray(native.highest(values, count))
    return np.argsort(-values, axis=1, kind="stable")[:, :count]
