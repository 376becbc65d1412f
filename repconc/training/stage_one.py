"""Stage 1: encoders and codebooks learn together (paper, sections 3.2 to 3.4).

L = L_r + lambda L_m, over documents that are coded under the constraint of uniform use. Scores carry a scale s, so the
clustering loss carries it too: lambda keeps its meaning when vectors have length 1.
"""

import torch
from torch import Tensor

from repconc.losses.clustering import clustering
from repconc.losses.distillation import distillation
from repconc.losses.ranking import ranking_of_scores
from repconc.quantization.quantizer import Constraint, Quantizer
from repconc.training.ranks import Ranks
from repconc.training.statistics import use_of
from repconc.training.step import Rows


class StageOneLoss:
    """The loss of stage 1; it remembers the last batch's codes, so that their balance can be logged.

    Its parts are methods, because compared methods differ in one of them each (baselines/).
    """

    constrained = True
    """Whether codes are assigned under the constraint, where the recipe asks for it."""
    step = 0
    """How many steps of the phase came before; set by whoever runs them, for losses that change on the way."""

    def __init__(
        self,
        quantizer: Quantizer,
        constraint: Constraint | None,
        weight: float,
        scale: float,
        ranks: Ranks,
        taught: float = 0.0,
    ) -> None:
        """weight: lambda; taught: the share of the ranking loss that a teacher's scores take over."""
        self.quantizer, self.constraint = quantizer, constraint
        self.weight, self.scale, self.ranks, self.taught = weight, scale, ranks, taught

    def __call__(self, queries: Tensor, documents: Tensor, rows: Rows) -> dict[str, Tensor]:
        quantizer, own = self.quantizer, rows.own
        codes = self.ranks.gather(quantizer.assign(documents[own], self.constraint))  # [N, M] Sinkhorn over all ranks
        scores = self.scale * queries @ self.quantized(documents, codes).T  # [B, N]
        ranked = ranking_of_scores(scores, rows.positives, rows.masked)
        if rows.taught is not None:
            ranked = torch.lerp(ranked, distillation(scores, rows.taught, rows.repeated), self.taught)
        clustered = self.clustered(documents[own], quantizer.decode(codes[own]))
        self.last = documents.detach(), codes
        return {
            "ranking": rows.query_share * ranked,
            "clustering": rows.document_share * self.weight * self.scale * clustered,
        }

    def quantized(self, documents: Tensor, codes: Tensor) -> Tensor:
        """[N, D]: what queries are compared with."""
        return self.quantizer.straight_through(documents, codes)

    def clustered(self, documents: Tensor, decoded: Tensor) -> Tensor:
        """How far documents are from their codewords; both move."""
        return clustering(documents, decoded)

    def balance(self) -> dict[str, float]:
        """How evenly the last batch used the codewords: as it was coded, and as the nearest codewords would be."""
        documents, codes = self.last
        nearest = self.quantizer.assign(documents, None)
        K = self.quantizer.codebooks.shape[1]
        return {
            f"{name} ({how})": value
            for how, chosen in (("batch", codes), ("nearest", nearest))
            for name, value in use_of(chosen.cpu().numpy(), K).items()
        }
