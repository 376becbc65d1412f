"""The clustering loss: how far documents lie from their codewords (paper, equation 7)."""

from torch import Tensor


def clustering(documents: Tensor, decoded: Tensor) -> Tensor:
    """The squared distance, summed over dimensions and averaged once over all documents of the batch."""
    return ((documents - decoded) ** 2).sum(dim=-1).mean()
