"""Dense training: two text encoders without a quantizer, by the ranking loss alone."""

from torch import Tensor

from repconc.losses.ranking import ranking
from repconc.training.step import LossOf, Rows


def dense_loss(scale: float) -> LossOf:
    def loss_of(queries: Tensor, documents: Tensor, rows: Rows) -> dict[str, Tensor]:
        return {"ranking": rows.query_share * ranking(queries, documents, rows.positives, rows.masked, scale)}

    return loss_of
