"""The trainable product quantizer (paper, sections 3.1 and 3.2).

Sizes: N documents, B queries, D dimensions (already rotated), M blocks of d dimensions, K codewords a block.
"""

import torch
from torch import Tensor, nn

from repconc.quantization.quantizer import Constraint, Quantizer, squared_distances
from repconc.quantization.sinkhorn import ALONE, assign_uniformly, lowest


class ProductQuantizer(Quantizer):
    """Each codebook has a block of dimensions of its own: [M, K, d]."""

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

    def tables(self, queries: Tensor) -> Tensor:
        """[B, D] -> [B, M, K]"""
        return torch.einsum("bmd,mkd->bmk", self.split(queries), self.codebooks)
