"""Optimized product quantization, the warm-up (Ge et al., 2013; paper, section 3.6.1).

Find a rotation R and codebooks c so that the coded vectors lie close to the rotated ones,

    min_{R, c}  sum_x | x R - decode(encode(x R)) |^2,    R orthonormal,

by turns: with R fixed, a step of k-means in each block; with the codes fixed, R = U V^T from the singular value
decomposition of X^T Y, where Y holds the decoded vectors (the orthogonal Procrustes problem). R starts from the
principal directions, dealt out so that every block gets the same product of variances.

Sizes: N vectors, D dimensions, M blocks of d dimensions, K codewords a block.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from repconc.codec import Codec
from repconc.errors import RepconcError
from repconc.maps import VectorMap
from repconc.quantization.kmeans import move_to_means, read_sample

Report = Callable[[int, int], None]


def train_opq(
    vectors: np.ndarray,
    blocks: int,
    codewords: int = 256,
    *,
    rotate: bool = True,
    turns: int = 50,
    final: int = 25,
    seed: int = 0,
    progress: Report | None = None,
) -> Codec:
    """A codec with its rotation, learned from a sample of vectors [N, D]; `rotate=False` gives plain PQ."""
    x = read_sample(vectors, codewords)
    N, D = x.shape
    if not 1 <= blocks <= D:
        raise RepconcError(f"Vectors of {D} dimensions cannot be cut into {blocks} blocks.")
    generator = torch.Generator().manual_seed(seed)
    rotation = balanced_rotation(x, blocks) if rotate else torch.eye(D)
    rotated = _split(x @ rotation, blocks)  # [M, N, d]
    codebooks = rotated[:, torch.randperm(N, generator=generator)[:codewords]].clone()  # [M, K, d]
    total = final + (turns if rotate else 0)
    for turn in range(total):
        codes = torch.stack(
            [move_to_means(*block, generator) for block in zip(rotated, codebooks, strict=True)]
        )  # [M, N]
        if rotate and turn < turns:
            u, _, vt = torch.linalg.svd(x.T @ _decode(codebooks, codes)[:, :D])
            rotation = u @ vt
            rotated = _split(x @ rotation, blocks)
        if progress:
            progress(turn + 1, total)
    return Codec(codebooks.numpy(), D, VectorMap(rotation.numpy()) if rotate else None)


def balanced_rotation(x: Tensor, blocks: int) -> Tensor:
    """[D, D]: principal directions, the strongest first, each given to the open block of smallest product so far."""
    D = x.shape[1]
    centred = (x - x.mean(dim=0)).double()
    variances, directions = torch.linalg.eigh(centred.T @ centred / len(x))
    size = -(-D // blocks)
    room = [min(size, D - start) for start in range(0, D, size)]  # the last block may hold padding
    members: list[list[int]] = [[] for _ in room]
    products = [0.0] * len(room)  # logarithms
    for index in range(D - 1, -1, -1):
        open_blocks = [block for block in range(len(room)) if len(members[block]) < room[block]]
        block = min(open_blocks, key=lambda block: products[block])
        members[block].append(index)
        products[block] += float(variances[index].clamp_min(1e-12).log())
    order = [index for block in members for index in block]
    rotation: Tensor = directions[:, order].float()
    return rotation


def _decode(codebooks: Tensor, codes: Tensor) -> Tensor:
    """[M, N] -> [N, M * d]."""
    return torch.cat([codebook[row] for codebook, row in zip(codebooks, codes, strict=True)], dim=1)


def _split(vectors: Tensor, blocks: int) -> Tensor:
    """[N, D] -> [M, N, d], padded with zeros."""
    size = -(-vectors.shape[1] // blocks)
    padded = torch.nn.functional.pad(vectors, (0, blocks * size - vectors.shape[1]))
    return padded.reshape(len(vectors), blocks, size).transpose(0, 1).contiguous()
