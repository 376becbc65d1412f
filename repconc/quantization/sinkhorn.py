"""Constrained assignment: documents to codewords, each codeword in equal use (paper, section 3.4).

The batch's optimal transport problem, for one block of the vectors, with C[i, j] = |d_i - c_j|^2:

    min_P  sum_ij P_ij C_ij    subject to    sum_j P_ij = 1/N,    sum_i P_ij = 1/K

is solved with an entropic term eps (Cuturi, 2013): P_ij = u_i exp(-C_ij / eps) v_j, where u and v follow by scaling
rows and columns in turn. C is first mapped to [-1, 1] by its smallest and largest value over the whole batch, so that
eps has one meaning. The code of document i is argmax_j P_ij = argmin_j (C_ij - g_j) with g = eps log v: the nearest
codeword, once codewords in demand have been made dearer.

exp(-C / eps) spans e^667 at eps = 0.003, more than float32 holds. So potentials f and g are kept aside: the kernel is
exp(-(C - f - g) / eps), f and g start as row and then column minima, so that every row and every column keeps a 1, and
scalings that grow large are absorbed into f and g. (Row minima alone underflow when clusters collapse.) All that is
left of an iteration is two matrix-vector products over one block's kernel, which stays in the cache.

Several ranks hold the rows of one batch. Sums and extremes over documents are collectives, handed in as functions.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

ABSORB_EVERY = 10
LARGE = 1e12
"""A product of two scalings stays far below what float32 holds, and what the kernel dropped stays below 1e-6."""
TINY = 1e-30


class Collectives(NamedTuple):
    """Reductions over the ranks that share a batch; for one process they change nothing."""

    sum: Callable[[Tensor], Tensor] = lambda tensor: tensor
    minimum: Callable[[Tensor], Tensor] = lambda tensor: tensor


ALONE = Collectives()


def transport_potentials(
    costs: Tensor, epsilon: float = 0.003, iterations: int = 100, collectives: Collectives = ALONE
) -> tuple[Tensor, Tensor]:
    """The potentials f [..., N] and g [..., K] of the plan exp((f_i + g_j - C_ij) / eps), for C in [..., N, K].

    Rows sum to 1 and columns to N / K, N counted over all ranks; the last step scaled the columns.
    """
    rows = collectives.sum(torch.tensor(float(costs.shape[-2]), device=costs.device))
    per_codeword = float(rows) / costs.shape[-1]
    kernel = torch.empty_like(costs)  # the one large buffer: fresh memory costs more than the arithmetic on it
    start = _scale_columns(costs, epsilon, collectives, kernel) + epsilon * math.log(per_codeword)  # [..., K]
    f = torch.sub(costs, start[..., None, :], out=kernel).amin(dim=-1)  # [..., N]
    g = collectives.minimum(torch.sub(costs, f[..., None], out=kernel).amin(dim=-2))  # [..., K], never below the start
    _fill(kernel, costs, f, g, epsilon)
    u, v = torch.ones_like(f)[..., None], _exp((start - g) / epsilon)[..., None]  # [..., N, 1], [..., K, 1]
    for iteration in range(2, iterations + 1):
        u = (kernel @ v).clamp_min_(TINY).reciprocal_()
        column_sums = collectives.sum(kernel.transpose(-1, -2) @ u)
        v = column_sums.clamp_min_(TINY).reciprocal_().mul_(per_codeword)
        if iteration % ABSORB_EVERY == 0 and _is_large(u, v, collectives):
            f, g = _absorb(f, u, epsilon), _absorb(g, v, epsilon)
            _fill(kernel, costs, f, g, epsilon)
            u, v = torch.ones_like(u), torch.ones_like(v)
    return _absorb(f, u, epsilon), _absorb(g, v, epsilon)


def _scale_columns(costs: Tensor, epsilon: float, collectives: Collectives, buffer: Tensor) -> Tensor:
    """The first step, from u = 1, by logarithms: its scalings alone may span more than float32 holds."""
    lowest = collectives.minimum(costs.amin(dim=-2))
    weights = _exp(torch.sub(lowest[..., None, :], costs, out=buffer).div_(epsilon))
    return lowest - epsilon * collectives.sum(weights.sum(dim=-2)).log()


def assign_uniformly(
    costs: Tensor, epsilon: float = 0.003, iterations: int = 100, collectives: Collectives = ALONE
) -> Tensor:
    """[..., N, K] -> [..., N]: the codeword of each document under the constraint of equal use."""
    scaled = scale_costs(costs, collectives)
    _, g = transport_potentials(scaled, epsilon, iterations, collectives)
    return lowest(scaled.sub_(g[..., None, :]))


def lowest(costs: Tensor) -> Tensor:
    """[..., K] -> [...]: where the lowest cost is. On a CPU numpy finds it several times faster than torch."""
    if costs.device.type != "cpu":
        return costs.argmin(dim=-1)
    return torch.from_numpy(np.asarray(costs.detach().numpy().argmin(axis=-1)))


def scale_costs(costs: Tensor, collectives: Collectives = ALONE) -> Tensor:
    """Map the costs of each problem to [-1, 1] by its smallest and largest value over the whole batch."""
    extremes = costs.flatten(-2).aminmax(dim=-1)  # [...]
    low = collectives.minimum(extremes.min)[..., None, None]
    high = -collectives.minimum(-extremes.max)[..., None, None]
    return (costs - low).mul_(2 / (high - low).clamp_min(torch.finfo(costs.dtype).tiny)).sub_(1)


def _fill(kernel: Tensor, costs: Tensor, f: Tensor, g: Tensor, epsilon: float) -> None:
    """kernel = exp(-(C - f - g) / eps); what is too small to matter becomes zero."""
    _exp(torch.sub(f[..., None], costs, out=kernel).add_(g[..., None, :]).div_(epsilon))
    torch.threshold_(kernel, 2 * TINY, 0.0)


def _exp(exponents: Tensor) -> Tensor:
    """In place, and never a denormal number: they cost a CPU many times the time of others."""
    return exponents.clamp_min_(math.log(TINY)).exp_()


def _absorb(potential: Tensor, scaling: Tensor, epsilon: float) -> Tensor:
    return potential + epsilon * scaling[..., 0].log()


def _is_large(u: Tensor, v: Tensor, collectives: Collectives) -> bool:
    """Whether a scaling has left [1/LARGE, LARGE], on any rank."""
    extremes = torch.stack([u.amin(), v.amin(), (1 / u).amin(), (1 / v).amin()])
    return bool((collectives.minimum(extremes) < 1 / LARGE).any())
