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

from repconc.additive import AdditiveCodec, next_level
from repconc.quantization.kmeans import VECTORS_AT_A_TIME, move_to_means, read_sample

Report = Callable[[int, int], None]
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
    x = read_sample(vectors, codewords)
    N, D = x.shape
    generator = torch.Generator().manual_seed(seed)
    chosen = x[torch.randperm(N, generator=generator)[:LEVEL_SAMPLE]].numpy()
    codebooks = torch.empty(levels, codewords, D)
    residuals, gained = chosen[:, None], np.zeros((len(chosen), 1), np.float32)  # [n, b, D], [n, b]
    total = levels + turns
    for level in range(levels):
        codebooks[level] = _kmeans(torch.from_numpy(residuals.reshape(-1, D)), codewords, generator)
        codebook = codebooks[level].numpy()
        residuals, gained, _, _ = next_level(residuals, gained, codebook, (codebook**2).sum(axis=1) / 2, BEAM)
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
    """[K, D]"""
    codebook = x[torch.randperm(len(x), generator=generator)[:codewords]].clone()
    for _ in range(TURNS_OF_KMEANS):
        move_to_means(x, codebook, generator)
    return codebook
