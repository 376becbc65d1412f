"""Residual quantization, the warm-up of additive codes (Chen et al., 2010; beam search: Babenko and Lempitsky, 2014).

Level by level: k-means on what the levels before have left of the vectors. Of each vector not one residual goes on but
those of its best few partial codes, as in coding, so that a level learns from what it will be given. Afterwards, by
turns, vectors are coded and all codebooks are solved for together: with codes fixed, the best codewords are those of a
linear least-squares problem,

    min_c  sum_x | x - sum_m c[m, j_m(x)] |^2.

Sizes: N vectors, D dimensions, M levels, K codewords a level, b partial codes.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from repconc.additive import AdditiveCodec
from repconc.errors import RepconcError
from repconc.quantization.sinkhorn import lowest

Report = Callable[[int, int], None]
VECTORS_AT_A_TIME = 2048
LEVEL_SAMPLE = 16384
"""Vectors that a level's k-means sees, each with the residuals of its partial codes."""
BEAM = 4
TURNS_OF_KMEANS = 10
PULL = 1e-3
"""Of a codeword towards zero in the least squares, in documents a codeword: without it, unused ones are undefined."""


def train_residual(
    vectors: np.ndarray,
    levels: int,
    codewords: int = 256,
    *,
    turns: int = 3,
    seed: int = 0,
    progress: Report | None = None,
) -> AdditiveCodec:
    """Codebooks learned from a sample of vectors [N, D]."""
    x = torch.from_numpy(np.ascontiguousarray(vectors, dtype=np.float32))
    N, D = x.shape
    if codewords > N:
        raise RepconcError(f"There are {N} vectors for {codewords} codewords; give more vectors or fewer codewords.")
    generator = torch.Generator().manual_seed(seed)
    chosen = x[torch.randperm(N, generator=generator)[:LEVEL_SAMPLE]]
    codebooks = torch.empty(levels, codewords, D)
    residuals, gained = chosen[:, None], torch.zeros(len(chosen), 1)  # [n, b, D], [n, b]
    total = levels + turns
    for level in range(levels):
        codebooks[level] = _kmeans(residuals.reshape(-1, D), codewords, generator)
        residuals, gained = _go_on(residuals, gained, codebooks[level])
        if progress:
            progress(level + 1, total)
    for turn in range(turns):
        codes = torch.from_numpy(AdditiveCodec(codebooks.numpy(), D).encode(x.numpy())).long()
        codebooks = least_squares(x, codes, codewords)
        if progress:
            progress(levels + turn + 1, total)
    return AdditiveCodec(codebooks.numpy(), D)


def least_squares(x: Tensor, codes: Tensor, codewords: int) -> Tensor:
    """[M, K, D]: the codebooks that decode codes [N, M] closest to x [N, D]."""
    M, K = codes.shape[1], codewords
    rows = codes + K * torch.arange(M)  # [N, M]: the codewords that a vector uses
    sums = torch.zeros(M * K, x.shape[1])  # of the vectors that use a codeword
    together = torch.zeros(M * K, M * K)  # how often two codewords are used by one vector
    for part, own in zip(torch.split(rows, VECTORS_AT_A_TIME), torch.split(x, VECTORS_AT_A_TIME), strict=True):
        for column in part.T:
            sums.index_add_(0, column, own)
            pairs = (column[:, None] * (M * K) + part).flatten()
            together.view(-1).index_add_(0, pairs, torch.ones(len(pairs)))
    together.diagonal().add_(PULL * len(codes) / K)
    return torch.cholesky_solve(sums, torch.linalg.cholesky(together)).reshape(M, K, -1)


def _kmeans(x: Tensor, codewords: int, generator: torch.Generator) -> Tensor:
    """[K, D]: a codeword that nobody uses moves to a random vector."""
    codebook = x[torch.randperm(len(x), generator=generator)[:codewords]].clone()
    for _ in range(TURNS_OF_KMEANS):
        codes = torch.cat([_nearest(part, codebook) for part in torch.split(x, VECTORS_AT_A_TIME)])
        counts = torch.bincount(codes, minlength=codewords)
        sums = torch.zeros_like(codebook).index_add_(0, codes, x)
        used = counts > 0
        codebook[used] = sums[used] / counts[used, None]
        codebook[~used] = x[torch.randint(len(x), (int((~used).sum()),), generator=generator)]
    return codebook


def _nearest(x: Tensor, codebook: Tensor) -> Tensor:
    return lowest(torch.addmm((codebook**2).sum(dim=1), x, codebook.T, alpha=-2))


def _go_on(residuals: Tensor, gained: Tensor, codebook: Tensor) -> tuple[Tensor, Tensor]:
    """One level of the beam search: [n, b, D] and [n, b] for the best partial codes of each vector."""
    n, _, D = residuals.shape
    closeness = torch.addmm(-(codebook**2).sum(dim=1) / 2, residuals.reshape(-1, D), codebook.T)
    total = (closeness.reshape(n, -1, len(codebook)) + gained[..., None]).reshape(n, -1)  # [n, b * K]
    gained, best = total.topk(min(BEAM, total.shape[1]), dim=1)
    parents, words = best // len(codebook), best % len(codebook)
    return residuals[torch.arange(n)[:, None], parents] - codebook[words], gained
