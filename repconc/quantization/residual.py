"""Residual quantization, the warm-up of additive codes (Chen et al., 2010).

Level by level: k-means on what the levels before have left of the vectors. After the first levels residuals look alike
in all directions, and there k-means from random vectors fails: a few codewords near the middle take almost everything,
and the rest keep the one vector that they began with. So a level's codewords grow dimension by dimension (Liu et al.,
2015): k-means first sees a few principal components of the residuals, then more and more of them.

Sizes: N vectors, D dimensions, K codewords a level.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from repconc.additive import AdditiveCodec
from repconc.quantization.kmeans import move_to_means, nearest, read_sample

Report = Callable[[int, int], None]
FEWEST_DIMENSIONS, WIDTHS = 4, 10
"""How many components k-means sees first, and how many times until it sees all."""
TURNS = 5
"""Of k-means at each width."""


def train_residual(
    vectors: np.ndarray, levels: int, codewords: int = 256, *, seed: int = 0, progress: Report | None = None
) -> AdditiveCodec:
    """Codebooks learned from a sample of vectors [N, D]."""
    residuals = read_sample(vectors, codewords).clone()
    generator = torch.Generator().manual_seed(seed)
    codebooks = []
    for level in range(levels):
        codebook = growing_kmeans(residuals, codewords, generator)
        residuals -= codebook[nearest(residuals, codebook)]
        codebooks.append(codebook.numpy())
        if progress:
            progress(level + 1, levels)
    return AdditiveCodec(np.stack(codebooks), residuals.shape[1])


def growing_kmeans(x: Tensor, codewords: int, generator: torch.Generator) -> Tensor:
    """[N, D] -> codewords [K, D]"""
    _, components = torch.linalg.eigh(x.T @ x)
    components = components.flip(dims=[1])  # [D, D], those with the most variance first
    turned = x @ components
    widths = _widths(x.shape[1])
    codebook = turned[torch.randperm(len(x), generator=generator)[:codewords], : widths[0]]
    for width in widths:
        codebook = nn.functional.pad(codebook, (0, width - codebook.shape[1]))
        seen = turned[:, :width].contiguous()
        for _ in range(TURNS):
            move_to_means(seen, codebook, generator)
    return torch.mm(codebook, components.T)


def _widths(dimensions: int) -> list[int]:
    """From the fewest to all dimensions, each about as many times as many as the one before."""
    fewest = min(FEWEST_DIMENSIONS, dimensions)
    return sorted({round(fewest * (dimensions / fewest) ** (step / (WIDTHS - 1))) for step in range(WIDTHS)})
