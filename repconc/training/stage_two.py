"""Stage 2: the query side learns to search the documents as they now are (paper, 3.6.2; JPQ and ADORE).

At every step the current queries search all documents; the top irrelevant ones are their negatives. Documents are
fixed: their codes where they are compressed (codebooks still learn), their vectors where they are not (ADORE).
"""

import torch
from torch import Tensor

from repconc.losses.distillation import distillation
from repconc.losses.lambdarank import lambdarank
from repconc.losses.ranking import ranking_of_scores
from repconc.models.dual import DualEncoder
from repconc.training.embedding import embed
from repconc.training.examples import Batch, Examples
from repconc.training.negatives import FixedDocuments, top_irrelevant
from repconc.training.ranks import Ranks
from repconc.training.teaching import Teacher


def search_and_rank(
    model: DualEncoder,
    examples: Examples,
    batch: Batch,
    documents: FixedDocuments,
    *,
    depth: int,
    scale: float,
    by_lambda: bool,
    ranks: Ranks,
    chunk: int,
    teacher: Teacher | None = None,
    taught: float = 0.0,
) -> dict[str, float]:
    """Add the gradient of this rank's share of the loss; gives the global loss.

    taught: the share of the loss that the teacher's scores of the same documents take over.
    """
    queries, push = embed(model, "query", examples.queries, batch.queries, chunk, batch.dropout)  # [B, D]
    # Where nobody judged, the teacher says of every document how right it is: only the positive is not searched again.
    judged = [examples.relevant[query] for query in batch.queries.tolist()]
    relevant = judged if examples.judged else list(batch.documents[:, None])
    negatives = top_irrelevant(queries, documents, relevant, depth)  # [B, n]
    positives = torch.from_numpy(batch.documents).to(negatives)
    candidates = torch.cat([positives[:, None], negatives], dim=1)  # [B, 1 + n]
    queries.requires_grad_()
    scores = scale * documents.scores(queries, candidates.clamp_min(0))
    loss = _loss(scores.masked_fill(candidates < 0, -torch.inf), by_lambda)
    if teacher is not None:
        wanted = teacher.of_candidates(batch, candidates.clamp_min(0))
        loss = torch.lerp(loss, distillation(scores, wanted, candidates < 0), taught)
    share = len(batch.queries) / ranks.total(len(batch.queries))
    (share * loss).backward()
    assert queries.grad is not None
    push(queries.grad)
    return {"ranking": ranks.total(share * float(loss.detach()))}


def _loss(scores: Tensor, by_lambda: bool) -> Tensor:
    """The positive stands in the first column."""
    first = torch.zeros(len(scores), dtype=torch.long, device=scores.device)
    if not by_lambda:
        return ranking_of_scores(scores, first)
    return lambdarank(scores, torch.nn.functional.one_hot(first, scores.shape[1]).bool())
