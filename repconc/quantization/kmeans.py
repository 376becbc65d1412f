"""What both warm-ups do with a sample of vectors: look at it, and move codewords to the means of their vectors."""

import numpy as np
import torch
from torch import Tensor

from repconc.errors import RepconcError
from repconc.quantization.sinkhorn import lowest

VECTORS_AT_A_TIME = 2048
"""Whose distances to all codewords stay in the cache: a step of k-means is bound by memory, not by arithmetic."""


def read_sample(vectors: np.ndarray, codewords: int) -> Tensor:
    """[N, D], enough of them and all finite."""
    x = torch.from_numpy(np.ascontiguousarray(vectors, dtype=np.float32))
    if not torch.isfinite(x).all():
        raise RepconcError("A document vector holds NaN or an infinite value; codebooks cannot be learned from it.")
    if codewords > len(x):
        raise RepconcError(
            f"There are {len(x)} vectors for {codewords} codewords; give more vectors or fewer codewords."
        )
    return x


def nearest(x: Tensor, codebook: Tensor) -> Tensor:
    """[N, d] and [K, d] -> [N]: the codeword of each vector."""
    norms = (codebook**2).sum(dim=1)
    parts = [lowest(torch.addmm(norms, part, codebook.T, alpha=-2)) for part in torch.split(x, VECTORS_AT_A_TIME)]
    return torch.cat(parts)


def move_to_means(x: Tensor, codebook: Tensor, generator: torch.Generator) -> Tensor:
    """One step of k-means: codes [N] for the old codewords [K, d], which then move, in place.

    A codeword that nobody uses moves to a random vector.
    """
    codes = nearest(x, codebook)
    means, used = means_of(x, codes, len(codebook))
    codebook[used] = means[used]
    codebook[~used] = x[torch.randint(len(x), (int((~used).sum()),), generator=generator)]
    return codes


def means_of(x: Tensor, codes: Tensor, codewords: int) -> tuple[Tensor, Tensor]:
    """[N, d] and [N] -> the means [K, d] of the vectors of each codeword, zero without any, and who has any [K]."""
    counts = torch.bincount(codes, minlength=codewords)
    sums = x.new_zeros(codewords, x.shape[1]).index_add_(0, codes, x)
    return sums / counts.clamp_min(1)[:, None], counts > 0
