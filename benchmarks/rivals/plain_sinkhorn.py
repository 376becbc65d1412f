"""Constrained assignment in the plain formulation: broadcast distances, float64 exp, alternating normalisation."""

import torch
from torch import Tensor


def assign_plainly(documents: Tensor, codebooks: Tensor, epsilon: float, iterations: int) -> Tensor:
    """[N, D] and [M, K, d] -> [N, M]."""
    M, K, d = codebooks.shape
    blocks = documents.reshape(-1, M, d).transpose(0, 1)  # [M, N, d]
    costs = ((blocks[:, :, None] - codebooks[:, None]) ** 2).sum(dim=-1)  # [M, N, K]
    low, high = costs.amin(dim=(1, 2), keepdim=True), costs.amax(dim=(1, 2), keepdim=True)
    scaled = (costs - low) / (high - low) * 2 - 1
    plan = torch.exp(-scaled.double() / epsilon)
    N = plan.shape[1]
    for _ in range(iterations):
        plan /= plan.sum(dim=1, keepdim=True)
        plan *= N / K
        plan /= plan.sum(dim=2, keepdim=True)
    return plan.argmax(dim=2).T
