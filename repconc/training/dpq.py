"""DPQ (Chen et al., 2020; Zhang et al., 2021), as the paper re-implements it for retrieval: stage 1 with less.

Encoders and codebooks learn by the ranking loss over quantized documents, with a straight-through gradient. Documents
get their nearest codewords without a constraint, and the squared distance between the two moves the codewords only.
"""

from torch import Tensor

from repconc.losses.clustering import clustering
from repconc.training.stage_one import StageOneLoss


class DifferentiableLoss(StageOneLoss):
    """The loss of DPQ."""

    constrained = False

    def clustered(self, documents: Tensor, decoded: Tensor) -> Tensor:
        return clustering(documents.detach(), decoded)
