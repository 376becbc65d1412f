"""Residual quantization, the warm-up of additive codes (Chen et al., 2010).

Level by level: k-means on what the levels before have left of the vectors. After the first levels residuals look alike
in all directions, and there k-means from random vectors fails: a few codewords near the middle take almost everything,
and the rest keep the one vector that they began with. So a level's codewords grow dimension by dimension (Liu et al.,
2015): k-means first sees a few principal components of the residuals, then more and more of them.

A level that was learned first knows nothing of those behind it. So in the end all are learned together, by turns: code
the vectors with all levels, then move the codewords of one level after the other to the means of what all other levels
leave of their vectors. That finds the next best place and stays there, as k-means does. So before each round codewords
are shaken, less and less (Martinez et al., LSQ++, 2018): what was learned survives, what was chance is tried anew.

Sizes: N vectors, D dimensions, M levels, K codewords a level.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from repconc.additive import AdditiveCodec, code_by_beam
from repconc.codec import half_norms_of
from repconc.quantization.kmeans import means_of, move_to_means, nearest, read_sample

Report = Callable[[int, int], None]
FEWEST_DIMENSIONS, WIDTHS = 4, 10
"""How many components k-means sees first, and how many times until it sees all."""
TURNS = 5
"""Of k-means at each width."""
ROUNDS, ROUNDS_BEAM = 50, 4
"""Of learning all levels together, and how many partial codes are kept meanwhile."""
SHAKEN = 0.5
"""How far codewords are moved before the first round, all levels together, beside what they leave of a vector."""


def train_residual(
    vectors: np.ndarray,
    levels: int,
    codewords: int = 256,
    *,
    rounds: int = ROUNDS,
    shaken: float = SHAKEN,
    seed: int = 0,
    progress: Report | None = None,
) -> AdditiveCodec:
    """Codebooks learned from a sample of vectors [N, D].

    rounds: in which all levels learn together, once each has been learned by itself; shaken: before each of them.
    """
    x = read_sample(vectors, codewords)
    residuals, generator = x.clone(), torch.Generator().manual_seed(seed)
    codebooks, total = [], levels + rounds
    for level in range(levels):
        codebooks.append(growing_kmeans(residuals, codewords, generator))
        residuals -= codebooks[-1][nearest(residuals, codebooks[-1])]
        if progress:
            progress(level + 1, total)
    together = torch.stack(codebooks)  # [M, K, D]
    farthest = shaken * (residuals**2).mean(dim=0).sqrt() / levels**0.5  # [D]
    del residuals
    for turn in range(rounds):
        cooling = (1 - (turn + 1) / rounds) ** 0.5  # the last round is left alone
        noise = torch.randn(together.shape, generator=generator)
        together += cooling * farthest * (noise - noise.mean(dim=1, keepdim=True))  # no level moves as a whole
        learn_together(x, together)
        if progress:
            progress(levels + turn + 1, total)
    return AdditiveCodec(together.numpy(), x.shape[1])


def learn_together(x: Tensor, codebooks: Tensor) -> None:
    """One round over all levels: vectors [N, D] are coded, then codewords [M, K, D] move, in place."""
    books = codebooks.numpy()
    codes = torch.from_numpy(code_by_beam(x.numpy(), books, half_norms_of(books), ROUNDS_BEAM)).long()  # [N, M]
    residuals, place = x.clone(), torch.empty_like(x)
    for codebook, chosen in zip(codebooks, codes.T, strict=True):
        residuals -= torch.index_select(codebook, 0, chosen, out=place)
    for codebook, chosen in zip(codebooks, codes.T, strict=True):
        # What all others leave of a vector is its codeword and its residual: the codeword moves by their mean.
        means, _ = means_of(residuals, chosen, len(codebook))
        codebook += means
        residuals -= torch.index_select(means, 0, chosen, out=place)


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
