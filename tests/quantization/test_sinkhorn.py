"""Constrained assignment against the mathematics: POT's solvers, the linear program, the marginals, the edges."""

from itertools import pairwise

import numpy as np
import ot
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from repconc.quantization.sinkhorn import Collectives, assign_uniformly, scale_costs, transport_potentials


def problem(rows: int, columns: int, seed: int = 0, dimensions: int = 4) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    points = torch.randn(rows, dimensions, generator=generator)
    return torch.cdist(points, torch.randn(columns, dimensions, generator=generator)) ** 2


def plan_of(costs: torch.Tensor, epsilon: float, iterations: int) -> torch.Tensor:
    f, g = transport_potentials(costs, epsilon, iterations)
    return ((f[:, None].double() + g.double() - costs.double()) / epsilon).exp()


@pytest.mark.parametrize("epsilon", [0.5, 0.05, 0.01])
@pytest.mark.parametrize("shape", [(64, 16), (50, 16), (20, 7)])
def test_the_plan_is_that_of_pots_stabilised_solver(shape, epsilon):
    costs = scale_costs(problem(*shape))
    rows, columns = shape
    expected = ot.bregman.sinkhorn_stabilized(
        np.full(rows, 1 / rows),
        np.full(columns, 1 / columns),
        costs.double().numpy(),
        epsilon,
        numItermax=20_000,
        stopThr=1e-12,
    )
    plan = plan_of(costs, epsilon, 20_000).numpy() / rows
    np.testing.assert_allclose(plan, expected, atol=2e-5 / rows)


def test_its_cost_tends_to_that_of_the_linear_program():
    costs = scale_costs(problem(96, 16))
    exact = ot.emd2(np.full(96, 1 / 96), np.full(16, 1 / 16), costs.double().numpy())
    excess = [
        float((plan_of(costs, epsilon, 20_000) / 96 * costs.double()).sum()) - exact
        for epsilon in (0.3, 0.1, 0.03, 0.01)
    ]
    assert all(larger > smaller for larger, smaller in pairwise(excess))
    assert 0 <= excess[-1] < 0.005


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 40), st.integers(1, 12), st.integers(0, 1000), st.sampled_from([1e-3, 1.0, 1e3]))
def test_marginals_hold(rows, columns, seed, spread):
    costs = scale_costs(problem(rows, columns, seed) * spread)
    plan = plan_of(costs, 0.1, 2000)
    torch.testing.assert_close(plan.sum(dim=0), torch.full((columns,), rows / columns).double(), rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(plan.sum(dim=1), torch.ones(rows).double(), rtol=1e-2, atol=1e-3)


def use_of(codes: torch.Tensor, codewords: int) -> torch.Tensor:
    return torch.bincount(codes, minlength=codewords)


def test_hard_codes_are_in_far_more_equal_use_than_the_nearest_codewords():
    costs = problem(2048, 64, dimensions=8)
    nearest, constrained = use_of(costs.argmin(dim=1), 64), use_of(assign_uniformly(costs), 64)
    assert constrained.float().std() < 0.25 * nearest.float().std()
    assert constrained.min() > 0.6 * 2048 / 64


@pytest.mark.parametrize(
    "costs",
    [
        torch.zeros(32, 8),
        problem(1, 8).expand(32, 8),
        torch.cat([problem(31, 8), torch.full((1, 8), 1e6)]),
        problem(32, 8) + torch.arange(8) * 100.0,
        problem(5, 8),
        problem(32, 1),
        problem(257, 16),
    ],
    ids=[
        "all equal",
        "duplicates",
        "outlier",
        "collapsed",
        "fewer documents than codewords",
        "one codeword",
        "257 of 16",
    ],
)
def test_degenerate_problems_stay_finite(costs):
    for epsilon in (0.1, 0.003):
        f, g = transport_potentials(scale_costs(costs), epsilon)
        assert f.isfinite().all()
        assert g.isfinite().all()
        codes = assign_uniformly(costs, epsilon)
        assert codes.min() >= 0
        assert codes.max() < costs.shape[1]


def test_a_collapsed_codebook_is_spread_over_the_batch():
    """All documents nearest to one codeword by far: row shifts alone would underflow here."""
    costs = problem(64, 4)
    costs[:, 1:] += 50
    assert (costs.argmin(dim=1) == 0).all()
    use = use_of(assign_uniformly(costs, iterations=1000), 4)
    assert use.min() >= 8


def test_problems_solved_together_are_solved_as_each_alone():
    costs = torch.stack([problem(100, 16, seed) for seed in range(5)])
    together = assign_uniformly(costs)
    for codes, cost in zip(together, costs, strict=True):
        assert torch.equal(codes, assign_uniformly(cost))


def test_rows_on_two_ranks_are_solved_as_one_batch():
    """Two threads stand for two ranks; the collectives meet at a barrier, as those of a process group would."""
    import threading

    costs = problem(101, 16)
    parts = [costs[:60], costs[60:]]
    barrier, box = threading.Barrier(2), [None, None]

    def reduce(rank, operation):
        def call(tensor):
            box[rank] = tensor
            barrier.wait()
            result = operation(box[0], box[1])
            barrier.wait()
            return result

        return call

    codes = [None, None]

    def work(rank):
        collectives = Collectives(reduce(rank, torch.add), reduce(rank, torch.minimum))
        codes[rank] = assign_uniformly(parts[rank], collectives=collectives)

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert torch.equal(torch.cat(codes), assign_uniformly(costs))


def test_assignment_does_not_depend_on_the_scale_or_offset_of_the_costs():
    costs = problem(200, 16)
    assert torch.equal(assign_uniformly(costs), assign_uniformly(costs * 64))
