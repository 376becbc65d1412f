"""The ranking loss over (quantized) documents: softmax cross-entropy of the positive (paper, equation 6).

Sizes: B queries, N documents of the whole batch (positives and hard negatives of all queries).
"""

import torch
from torch import Tensor


def ranking(
    queries: Tensor, documents: Tensor, positives: Tensor, masked: Tensor | None = None, scale: float = 1.0
) -> Tensor:
    """Mean over queries of -log softmax of the positive's score among all documents that are not masked.

    queries [B, D], documents [N, D], positives [B] (each query's row in documents), masked [B, N] (see below).
    """
    return ranking_of_scores(scale * queries @ documents.T, positives, masked)


def ranking_of_scores(scores: Tensor, positives: Tensor, masked: Tensor | None = None) -> Tensor:
    """The same from scores [B, N]. The positive itself is never masked."""
    if masked is not None:
        own = torch.zeros_like(masked).scatter_(1, positives[:, None], True)
        scores = scores.masked_fill(masked & ~own, -torch.inf)
    return torch.nn.functional.cross_entropy(scores, positives)


def mask_of(document_ids: Tensor, relevant: list[Tensor]) -> Tensor:
    """[B, N]: True where a document must not count against a query.

    That is every other document relevant to it, and every second copy of a document: a document that is in the batch
    twice, as the positive of one query and the negative of another, must count once. document_ids: [N] numbers;
    relevant: for each query the numbers of its relevant documents, its positive among them.
    """
    device = document_ids.device
    known, column = document_ids.unique(return_inverse=True)  # [U] sorted, [N]
    owners = torch.repeat_interleave(
        torch.arange(len(relevant), device=device), torch.tensor([len(ids) for ids in relevant], device=device)
    )
    wanted = torch.cat(relevant)
    place = torch.searchsorted(known, wanted).clamp_max(len(known) - 1)
    here = known[place] == wanted
    is_relevant = torch.zeros(len(relevant), len(known), dtype=torch.bool, device=device)
    is_relevant[owners[here], place[here]] = True  # [B, U]
    # A copy of the positive is relevant and so masked; the positive itself is never masked by the loss.
    return is_relevant[:, column] | repeated(document_ids)


def repeated(document_ids: Tensor) -> Tensor:
    """[N]: True for every copy of a document but the first."""
    order = document_ids.argsort(stable=True)  # copies side by side, the first one first
    copies = torch.zeros(len(document_ids), dtype=torch.bool, device=document_ids.device)
    copies[order[1:]] = document_ids[order[1:]] == document_ids[order[:-1]]
    return copies
