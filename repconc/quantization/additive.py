"""The trainable additive quantizer: a document is the sum of M whole codewords, found level by level.

Level m codes what the levels before it have left. Under the constraint that residual's distances to codebook m go
through the same Sinkhorn as a block's do, so that every level uses its codewords equally.

Sizes: N documents, B queries, D dimensions, M levels, K codewords a level.
"""

import torch
from torch import Tensor, nn

from repconc.additive import BEAM
from repconc.quantization.quantizer import Constraint, Quantizer, squared_distances
from repconc.quantization.sinkhorn import assign_uniformly


class AdditiveQuantizer(Quantizer):
    """Codebooks of whole vectors: [M, K, D]."""

    def __init__(self, codebooks: Tensor, dimension: int, unit: bool = False, beam: int = BEAM) -> None:
        """unit: whether the vectors have length 1; beam: partial codes that are kept where nothing is constrained."""
        super().__init__(codebooks, dimension)
        self.unit, self.beam = unit, beam
        self.share = 1 / len(codebooks)  # all codewords of a document move by the same step, and their sum by M of them

    @torch.no_grad()
    def assign(self, documents: Tensor, constraint: Constraint | None) -> Tensor:
        """[N, D] -> [N, M]: without a constraint as documents are coded later, by a beam search."""
        if constraint is None:
            codes = self.to_codec().encode(documents.float().cpu().numpy())
            return torch.from_numpy(codes).to(documents.device).long()
        residuals, levels = documents, []
        for codebook in self.codebooks:
            costs = squared_distances(residuals[None], codebook[None])[0]  # [N, K]
            levels.append(assign_uniformly(costs, constraint.epsilon, constraint.iterations, constraint.collectives))
            residuals = residuals - codebook[levels[-1]]
        return torch.stack(levels, dim=1)

    def decode(self, codes: Tensor) -> Tensor:
        """[N, M] -> [N, D]: the sum of the codewords, without forming [N, M, D]."""
        M, K, D = self.codebooks.shape
        rows = codes + K * torch.arange(M, device=codes.device)
        return nn.functional.embedding_bag(rows, self.codebooks.reshape(M * K, D), mode="sum")

    def tables(self, queries: Tensor) -> Tensor:
        """[B, D] -> [B, M, K]"""
        return torch.einsum("bd,mkd->bmk", queries, self.codebooks)
