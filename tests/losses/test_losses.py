"""The losses against their definitions."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from repconc.losses.clustering import clustering
from repconc.losses.lambdarank import lambdarank
from repconc.losses.ranking import mask_of, ranking, ranking_of_scores


def test_ranking_is_the_softmax_of_the_positive():
    queries, documents = torch.randn(3, 4), torch.randn(5, 4)
    positives = torch.tensor([4, 0, 2])
    scores = 3 * queries @ documents.T
    expected = -sum(scores[row].softmax(0)[positive].log() for row, positive in enumerate(positives)) / 3
    torch.testing.assert_close(ranking(queries, documents, positives, scale=3), expected)


def test_masked_documents_do_not_count_and_the_positive_always_does():
    scores, positives = torch.randn(2, 4), torch.tensor([0, 1])
    masked = torch.tensor([[True, False, True, False], [False, True, False, True]])
    expected = (-scores[0, [0, 1, 3]].log_softmax(0)[0] - scores[1, [0, 1, 2]].log_softmax(0)[1]) / 2
    torch.testing.assert_close(ranking_of_scores(scores, positives, masked), expected)


def test_the_mask_hides_other_relevant_documents_and_second_copies():
    ids = torch.tensor([7, 8, 7, 9, 8, 5])
    masked = mask_of(ids, [torch.tensor([7, 9]), torch.tensor([5])])
    assert masked.tolist() == [
        [True, False, True, True, True, False],  # 7 and 9 are relevant; the second 8 is a copy
        [False, False, True, False, True, True],
    ]


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 5), min_size=2, max_size=12), st.data())
def test_under_the_mask_every_irrelevant_document_counts_exactly_once(ids, data):
    ids = torch.tensor(ids)
    positive = data.draw(st.integers(0, len(ids) - 1))
    masked = mask_of(ids, [ids[positive : positive + 1]])[0]
    counted = [int(id) for row, id in enumerate(ids) if row == positive or not masked[row]]
    assert sorted(counted) == sorted(set(ids.tolist()))


def test_clustering_is_summed_over_dimensions_and_averaged_over_documents():
    documents, decoded = torch.zeros(4, 3), torch.full((4, 3), 2.0)
    assert clustering(documents, decoded) == 12


def test_lambdarank_weighs_a_pair_by_the_change_in_reciprocal_rank():
    scores = torch.tensor([[3.0, 2.0, 1.0]], requires_grad=True)
    relevant = torch.tensor([[False, False, True]])
    first = torch.nn.functional.softplus(torch.tensor(2.0)) * (1 - 1 / 3)
    second = torch.nn.functional.softplus(torch.tensor(1.0)) * (1 / 2 - 1 / 3)
    loss = lambdarank(scores, relevant)
    torch.testing.assert_close(loss, first + second)
    loss.backward()
    assert scores.grad[0, 2] < 0 < scores.grad[0, 1] < scores.grad[0, 0]


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 5), st.integers(1, 8), st.integers(0, 1000))
def test_lambdarank_is_the_sum_over_all_pairs(queries, documents, seed):
    """As the formula says it, over [B, N, N]; with none, some or all documents relevant or masked."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(queries, documents, generator=generator).double()
    scores[torch.rand(queries, documents, generator=generator) < 0.2] = -torch.inf
    relevant = torch.rand(queries, documents, generator=generator) < 0.4
    one, other = scores.clone().requires_grad_(), scores.clone().requires_grad_()
    loss = lambdarank(one, relevant)
    ranks = 1 + (other.detach()[:, None, :] > other.detach()[:, :, None]).sum(dim=2)  # only masked ones are equal
    counted = other.isfinite()
    pairs = (relevant & counted)[:, :, None] & (~relevant & counted)[:, None, :]
    weights = (1 / ranks[:, :, None] - 1 / ranks[:, None, :]).abs()
    safe = other.masked_fill(~counted, 0.0)
    wrong = torch.nn.functional.softplus(safe[:, None, :] - safe[:, :, None])
    expected = (pairs * weights * wrong).sum() / queries
    torch.testing.assert_close(loss, expected, rtol=1e-5, atol=1e-7)
    loss.backward()
    expected.backward()
    torch.testing.assert_close(one.grad, other.grad, rtol=1e-5, atol=1e-7)


def test_lambdarank_leaves_out_what_is_masked():
    scores = torch.tensor([[-torch.inf, 2.0, 1.0]], requires_grad=True)
    relevant = torch.tensor([[False, False, True]])
    loss = lambdarank(scores, relevant)
    torch.testing.assert_close(loss, torch.nn.functional.softplus(torch.tensor(1.0)) / 2)
    loss.backward()
    assert scores.grad.isfinite().all()
