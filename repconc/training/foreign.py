"""Stage 1's loss for those who train with the trainer of sentence-transformers.

Columns are query, positive and any number of negatives; the rotation must already stand behind the encoders. Mind what
that trainer does not do with parameters of a loss: the codebooks are not saved in its checkpoints, not synchronised
between processes and not clipped. Our own loop does all three. Texts come without numbers there, so that false
negatives and copies cannot be masked either: choose its sampler without duplicates. Codebooks of additive codes want an
M-th of the rate (`Quantizer.share`), which only who makes the optimizer can give them.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from repconc.losses.clustering import clustering
from repconc.losses.ranking import ranking
from repconc.quantization.quantizer import Constraint, Quantizer


class StageOneForTrainer(nn.Module):
    """Ranking over quantized documents, clustering, constraint."""

    def __init__(
        self,
        model: nn.Module,
        quantizer: Quantizer,
        *,
        weight: float,
        scale: float,
        constraint: Constraint | None,
    ) -> None:
        super().__init__()
        self.model, self.quantizer = model, quantizer
        self.weight, self.scale, self.constraint = weight, scale, constraint

    def forward(self, columns: Iterable[dict[str, Tensor]], labels: Tensor | None = None) -> Tensor:
        queries, *rest = [self.model(features)["sentence_embedding"] for features in columns]
        documents = torch.cat(rest)  # [N, D], positives first
        codes = self.quantizer.assign(documents, self.constraint)
        quantized = self.quantizer.straight_through(documents, codes)
        positives = torch.arange(len(queries), device=queries.device)
        clustered = clustering(documents, self.quantizer.decode(codes))
        return ranking(queries, quantized, positives, None, self.scale) + self.weight * self.scale * clustered

    def get_config_dict(self) -> dict[str, Any]:
        """What the trainer writes into its model card."""
        return {"weight": self.weight, "scale": self.scale, "constraint": self.constraint is not None}
