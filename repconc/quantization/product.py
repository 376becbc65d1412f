"""The trainable product quantizer: the twin of `Codec` while it learns (paper, sections 3.1 and 3.2).

Sizes: N documents, D dimensions (already rotated), M blocks of d dimensions, K codewords a block.
"""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from repconc.codec import Codec
from repconc.quantization.sinkhorn import ALONE, Collectives, assign_uniformly, lowest


class Constraint(NamedTuple):
    """The uniform-clustering constraint and how exactly it is solved."""

    epsilon: float = 0.003
    iterations: int = 100
    collectives: Collectives = ALONE


class ProductQuantizer(nn.Module):
    """M codebooks that receive gradients."""

    def __init__(self, codebooks: Tensor, dimension: int) -> None:
        super().__init__()
        self.codebooks = nn.Parameter(codebooks.clone())  # [M, K, d]
        self.dimension = dimension

    @classmethod
    def from_codec(cls, codec: Codec) -> "ProductQuantizer":
        """The rotation, if the codec has one, belongs to the text model and is not taken over."""
        return cls(torch.from_numpy(np.array(codec.codebooks, dtype=np.float32)), codec.dimension)

    def to_codec(self) -> Codec:
        return Codec(self.codebooks.detach().cpu().numpy().copy(), self.dimension)

    def split(self, documents: Tensor) -> Tensor:
        """[N, D] -> [N, M, d], padded with zeros where M does not divide D."""
        M, _, d = self.codebooks.shape
        padded = nn.functional.pad(documents, (0, M * d - self.dimension))
        return padded.reshape(-1, M, d)

    @torch.no_grad()
    def assign(self, documents: Tensor, constraint: Constraint | None) -> Tensor:
        """[N, D] -> [N, M]: the codeword of each block; with a constraint, all codewords in equal use over the batch.

        One block at a time, so that its costs stay in the cache and memory does not grow with M. Across ranks all
        blocks go together, because a collective costs more than a cache miss.
        """
        blocks = self.split(documents).transpose(0, 1)  # [M, N, d]
        alone = constraint is None or constraint.collectives is ALONE
        together = 1 if alone and blocks.device.type == "cpu" else len(blocks)
        codes = [
            self._assign(block, codebook, constraint)
            for block, codebook in zip(
                torch.split(blocks, together), torch.split(self.codebooks, together), strict=True
            )
        ]
        return torch.cat(codes).T  # [N, M]

    @staticmethod
    def _assign(blocks: Tensor, codebooks: Tensor, constraint: Constraint | None) -> Tensor:
        """[m, N, d] and [m, K, d] -> [m, N]."""
        costs = squared_distances(blocks, codebooks)
        if constraint is None:
            return lowest(costs)
        costs = costs.squeeze(0)  # matrix-vector products of one problem are faster without a leading dimension
        codes = assign_uniformly(costs, constraint.epsilon, constraint.iterations, constraint.collectives)
        return codes.reshape(len(blocks), -1)

    def decode(self, codes: Tensor) -> Tensor:
        """[N, M] -> [N, D]: the codewords side by side, without the padding."""
        M = len(self.codebooks)
        chosen = self.codebooks[torch.arange(M, device=codes.device), codes]  # [N, M, d]
        return chosen.reshape(len(codes), -1)[:, : self.dimension]

    def straight_through(self, documents: Tensor, codes: Tensor) -> Tensor:
        """The decoded documents in value; in the gradient both the documents and their codewords.

        The parentheses make the second term exactly zero, so that the value is the decoded one to the bit and
        documents with equal codes get equal scores.
        """
        return self.decode(codes) + (documents - documents.detach())


def squared_distances(blocks: Tensor, codebooks: Tensor) -> Tensor:
    """[m, N, d] and [m, K, d] -> [m, N, K], by |x|^2 - 2 <x, c> + |c|^2: no [m, N, K, d] is ever formed."""
    norms = (codebooks**2).sum(dim=-1)[:, None, :]  # [m, 1, K]
    distances = torch.baddbmm(norms, blocks, codebooks.transpose(1, 2), alpha=-2)
    return distances.add_((blocks**2).sum(dim=-1, keepdim=True)).clamp_min_(0)
