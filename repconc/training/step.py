"""One step of contrastive training, on any number of ranks: dense training and stage 1 differ in the loss alone.

Each rank embeds its own texts. Documents of all ranks are negatives for all queries, so document vectors are gathered
before the loss, and the gradients that other ranks have for our documents are added to ours after it. The loss of a
rank is its share of the global mean: (mean over its rows) * (its rows / all rows).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from repconc.losses.ranking import mask_of, repeated
from repconc.models.dual import DualEncoder
from repconc.training.embedding import embed
from repconc.training.examples import Batch, Examples
from repconc.training.ranks import Ranks
from repconc.training.teaching import Teacher


class Rows(NamedTuple):
    """Which rows of the global batch are whose."""

    positives: Tensor  # [B]: for each query of this rank, the row of its positive among all documents
    masked: Tensor  # [B, N]: documents that must not count against a query
    own: slice  # this rank's documents among all
    query_share: float
    document_share: float
    repeated: Tensor  # [N]: every copy of a document but the first
    taught: Tensor | None = None  # [B, N]: the teacher's scores


LossOf = Callable[[Tensor, Tensor, Rows], dict[str, Tensor]]
"""Queries of this rank [B, D], documents of all ranks [N, D] -> the parts of the loss; their sum is minimised."""


def own_part(batch: Batch, ranks: Ranks) -> Batch:
    """This rank's part of a batch: its queries, their positives and its share of the hard negatives."""
    B = len(batch.queries)
    documents = [ranks.share_of(batch.documents[:B]), ranks.share_of(batch.documents[B:])]
    return Batch(ranks.share_of(batch.queries), np.concatenate(documents), batch.dropout)


def contrast(
    model: DualEncoder,
    examples: Examples,
    batch: Batch,
    loss_of: LossOf,
    ranks: Ranks,
    chunk: int,
    teacher: Teacher | None = None,
) -> dict[str, float]:
    """Add the gradient of this rank's share of the loss to all parameters; gives the global parts of the loss."""
    queries, push_queries = embed(model, "query", examples.queries, batch.queries, chunk, batch.dropout)
    documents, push_documents = embed(model, "document", examples.documents, batch.documents, chunk, batch.dropout)
    rows = _rows(examples, batch, ranks, documents.device)
    if teacher is not None:
        rows = rows._replace(taught=teacher.of_batch(batch))
    queries.requires_grad_()
    everyone = ranks.gather(documents).requires_grad_()
    parts = loss_of(queries, everyone, rows)
    torch.stack(list(parts.values())).sum().backward()
    assert queries.grad is not None
    assert everyone.grad is not None
    push_queries(queries.grad)
    push_documents(ranks.sum(everyone.grad)[rows.own])
    return {name: ranks.total(float(part.detach())) for name, part in parts.items()}


def _rows(examples: Examples, batch: Batch, ranks: Ranks, device: torch.device) -> Rows:
    own = ranks.own_rows(len(batch.documents))
    document_ids = ranks.gather(torch.from_numpy(batch.documents).to(device))
    relevant = [torch.from_numpy(examples.relevant[query]).to(device) for query in batch.queries.tolist()]
    return Rows(
        positives=torch.arange(len(batch.queries), device=device) + own.start,
        masked=mask_of(document_ids, relevant),
        own=own,
        query_share=len(batch.queries) / ranks.total(len(batch.queries)),
        document_share=len(batch.documents) / len(document_ids),
        repeated=repeated(document_ids),
    )
