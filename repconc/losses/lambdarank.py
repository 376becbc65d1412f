"""LambdaLoss for the reciprocal rank, for very small codes (paper, implementation details; Burges, 2010).

For each query and each pair of a relevant document i and another document j, the logistic loss of the wrong order is
weighed by what exchanging the two would change in the reciprocal rank, |1/r_i - 1/r_j|; ranks r come from the current
scores and carry no gradient.
"""

import torch
from torch import Tensor


def lambdarank(scores: Tensor, relevant: Tensor) -> Tensor:
    """scores [B, N], minus infinity for what must not count; relevant [B, N] bool. Mean over queries."""
    order = scores.argsort(dim=1, descending=True, stable=True)
    ranks = torch.empty_like(order).scatter_(
        1, order, torch.arange(1, scores.shape[1] + 1, device=scores.device).expand_as(order)
    )
    gain = 1 / ranks.float()  # [B, N]
    counted = scores.isfinite()
    rows, columns = (relevant & counted).nonzero(as_tuple=True)  # [P]: each relevant document of each query
    change = (gain[rows, columns, None] - gain[rows]).abs()  # [P, N]
    safe = scores.masked_fill(~counted, 0.0)
    losses = torch.nn.functional.softplus(safe[rows] - safe[rows, columns, None])
    return (losses * change * (~relevant & counted)[rows]).sum() / len(scores)
