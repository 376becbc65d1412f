"""BPR (Yamada et al., 2021): signs of the encoder's dimensions, learned; always a 32nd of the vectors.

A document's signs are product codes whose codewords are the corners of a cube, eight dimensions a byte, so the same
scan scores them against whole queries. In training tanh stands in for the sign, steeper with every step:

    h = tanh(b x / r),  b = sqrt(g t + 1);    L = hinge(<h_q, h_d+> - <h_q, h_d->) + cross-entropy(<q, h_d>)

where r is how large entries are, so that b means the same for vectors of any length. The first term makes signs of
queries find candidates, the second ranks them by whole queries; here all documents are scored by the second. There is
nothing to warm up: its negatives are those that the untrained signs retrieve.
"""

import numpy as np
import torch
from torch import Tensor

from repconc.baselines.method import one_stage
from repconc.errors import RepconcError
from repconc.losses.ranking import ranking_of_scores
from repconc.quantization.product import ProductQuantizer
from repconc.training.loop import State
from repconc.training.ranks import Ranks
from repconc.training.recipe import Recipe
from repconc.training.stage_one import StageOneLoss
from repconc.training.step import Rows
from repconc.training.trainer import Trainer

NAME = "BPR"
GROWTH, MARGIN = 0.1, 2.0
"""g of the formula and the hinge's margin, both of the authors."""


def fixed(dimension: int) -> int:
    """Its bytes, whatever is asked for."""
    if dimension % 8:
        raise RepconcError(f"BPR packs eight dimensions into a byte; {dimension} are no multiple of eight.")
    return dimension // 8


class HashingLoss(StageOneLoss):
    """Both terms, over tanh of the vectors."""

    constrained = False

    def __call__(self, queries: Tensor, documents: Tensor, rows: Rows) -> dict[str, Tensor]:
        steep = steepness(self.step)
        hashed = (steep * documents / spread(documents, self.ranks)).tanh()  # [N, D]
        ranked = ranking_of_scores(
            self.scale * queries @ hashed.T / documents.shape[1] ** 0.5, rows.positives, rows.masked
        )
        agreement = (steep * queries / spread(queries, self.ranks)).tanh() @ hashed.T  # [B, N]
        right = agreement.gather(1, rows.positives[:, None])
        hinge = (MARGIN - right + agreement).relu().masked_fill(rows.masked, 0.0)
        candidates = hinge.mean()  # the positive's own column is masked
        self.last = documents.detach(), self.quantizer.assign(documents[rows.own], None)
        return {"ranking": rows.query_share * (ranked + candidates)}


def spread(vectors: Tensor, ranks: Ranks) -> float:
    """How large the entries of vectors [N, D] are, in the mean over all ranks."""
    lengths = ranks.total(float(vectors.detach().norm(dim=1).sum())) / ranks.total(len(vectors))
    return float(lengths / vectors.shape[1] ** 0.5)


def steepness(step: int) -> float:
    """b of the formula, at a step from 0 on: a run that was killed goes on as steep as it was."""
    return float((GROWTH * (step + 1) + 1) ** 0.5)


def corners(dimension: int) -> np.ndarray:
    """[D / 8, 256, 8]: all patterns of eight signs."""
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)  # [256, 8]
    return np.tile(2.0 * bits - 1.0, (fixed(dimension), 1, 1)).astype(np.float32)


def recipe(base: Recipe) -> Recipe:
    """Labels alone: no teacher, whose scores are those of vectors that BPR turns into signs."""
    longer = one_stage(base)
    return longer.model_copy(update={"stage_one": longer.stage_one.model_copy(update={"distillation": 0.0})})


def train(trainer: Trainer) -> list[State]:
    trainer.quantizer = ProductQuantizer(torch.from_numpy(corners(trainer.model.dimension)), trainer.model.dimension)
    trainer.quantizer.requires_grad_(False)
    state = trainer.stage_one(HashingLoss)
    trainer.code()
    return [state]
