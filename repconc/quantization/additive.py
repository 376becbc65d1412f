"""The trainable additive quantizer: a document is the sum of M whole codewords, found level by level.

Level m codes what the levels before it have left. Under the constraint that residual's distances to codebook m go
through the same Sinkhorn as a block's do. What comes out are prices, which make codewords in demand dearer; the beam
search, which finds the codes, pays them at every level.

Sizes: N documents, B queries, D dimensions, M levels, K codewords a level.
"""

import numpy as np
import torch
from torch import Tensor, nn

from repconc.additive import beam_search, half_norms_of
from repconc.quantization.quantizer import Constraint, Quantizer, squared_distances
from repconc.quantization.sinkhorn import uniform_prices

TRAINING_BEAM = 4
"""Partial codes that are kept under the constraint, where every batch is coded anew."""


class AdditiveQuantizer(Quantizer):
    """Codebooks of whole vectors: [M, K, D]."""

    def __init__(self, codebooks: Tensor, dimension: int, unit: bool = False) -> None:
        """unit: whether the vectors have length 1."""
        super().__init__(codebooks, dimension)
        self.unit = unit
        self.share = 1 / len(codebooks)  # all codewords of a document move by the same step, and their sum by M of them

    @torch.no_grad()
    def assign(self, documents: Tensor, constraint: Constraint | None) -> Tensor:
        """[N, D] -> [N, M]: by a beam search, as documents are coded later; with a constraint under its prices."""
        if constraint is None:
            codes = self.to_codec().encode(documents.float().cpu().numpy())
            return torch.from_numpy(codes).to(documents.device).long()
        codebooks = self.codebooks.detach().float()

        def prices(level: int, residuals: np.ndarray) -> np.ndarray:
            left = torch.from_numpy(residuals).to(codebooks.device)
            costs = squared_distances(left[None], codebooks[level][None])[0]  # [N, K]
            return uniform_prices(costs, *constraint).cpu().numpy() / 2

        books = codebooks.cpu().numpy()
        codes = beam_search(documents.float().cpu().numpy(), books, half_norms_of(books), TRAINING_BEAM, prices)
        return torch.from_numpy(codes).to(documents.device).long()

    def decode(self, codes: Tensor) -> Tensor:
        """[N, M] -> [N, D]: the sum of the codewords, without forming [N, M, D]."""
        M, K, D = self.codebooks.shape
        rows = codes + K * torch.arange(M, device=codes.device)
        return nn.functional.embedding_bag(rows, self.codebooks.reshape(M * K, D), mode="sum")

    def tables(self, queries: Tensor) -> Tensor:
        """[B, D] -> [B, M, K]"""
        return torch.einsum("bd,mkd->bmk", queries, self.codebooks)
