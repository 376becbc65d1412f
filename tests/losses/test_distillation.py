"""Distillation against its definition."""

import math

import torch
from hypothesis import given
from hypothesis import strategies as st

from repconc.losses.distillation import distillation


@given(B=st.integers(1, 5), N=st.integers(1, 8), seed=st.integers(0, 99))
def test_it_is_the_divergence_of_two_distributions(B, N, seed):
    generator = torch.Generator().manual_seed(seed)
    scores, teacher = (5 * torch.randn(B, N, generator=generator, dtype=torch.float64) for _ in range(2))
    masked = torch.rand(B, N, generator=generator) < 0.3
    masked[:, 0] = False
    expected = 0.0
    for row in range(B):
        there = (~masked[row]).nonzero()[:, 0].tolist()
        p, q = ([math.exp(float(values[row, i])) for i in there] for values in (teacher, scores))
        expected += sum(a / sum(p) * math.log((a / sum(p)) / (b / sum(q))) for a, b in zip(p, q, strict=True)) / B
    assert torch.isclose(distillation(scores, teacher, masked), torch.tensor(expected, dtype=torch.float64), atol=1e-9)


def test_a_student_that_ranks_like_its_teacher_has_nothing_to_learn():
    teacher = torch.randn(4, 9, generator=torch.Generator().manual_seed(0))
    scores = (teacher + 3.0).requires_grad_()  # what is added to all scores of a query changes nothing
    masked = torch.zeros(9, dtype=torch.bool)
    masked[4] = True
    loss = distillation(scores, teacher, masked)
    loss.backward()
    assert abs(loss.item()) < 1e-6 and scores.grad.abs().max() < 1e-6
    assert torch.isfinite(scores.grad).all()


def test_gradients_are_the_difference_of_the_distributions():
    generator = torch.Generator().manual_seed(1)
    teacher, scores = (torch.randn(3, 7, generator=generator, dtype=torch.float64) for _ in range(2))
    scores.requires_grad_()
    distillation(scores, teacher).backward()
    assert torch.allclose(scores.grad, (scores.softmax(dim=1) - teacher.softmax(dim=1)) / 3)
