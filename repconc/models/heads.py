"""Maps for vectors that are given: the heads of a text model without the text model in front of them.

While they learn they are the two sides of a `DualEncoder`, so that the same phases train them. Afterwards they are
plain matrices, which have taken the warm-up's rotation into themselves:

    unit(x W) R = unit(x (W R))        because a rotation keeps lengths
"""

from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize
from torch import Tensor, nn

from repconc.maps import VectorMap
from repconc.models.dual import SIDES, DualEncoder, head, route
from repconc.models.encoder import Side


class Residual(nn.Module):
    """A linear map with a hidden layer beside it, which starts as nothing: y = x W + relu(x A) B."""

    def __init__(self, linear: Any, dimension: int, hidden: int) -> None:
        super().__init__()
        self.linear: Any = linear
        self.inner = nn.Linear(dimension, hidden, bias=False)
        self.outer = nn.Linear(hidden, dimension, bias=False)
        nn.init.zeros_(self.outer.weight)

    def forward(self, features: dict[str, Tensor]) -> dict[str, Tensor]:
        x = features["sentence_embedding"]
        y: Tensor = self.linear(features)["sentence_embedding"]
        return {"sentence_embedding": y + self.outer(torch.relu(self.inner(x)))}

    def get_embedding_dimension(self) -> int:
        return int(self.outer.out_features)


def make_heads(dimension: int, *, unit: bool, hidden: int = 0, document_map: bool = True, seed: int = 0) -> DualEncoder:
    """A map on each side, the identity at first. unit: vectors have length 1 before and after it.

    Without a document map the documents' own stays the identity.
    """
    sides: dict[Side, list[nn.Module]] = {}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for side in SIDES:
            linear, *rest = head(dimension, [Normalize()] if unit else [])
            learns = side == "query" or document_map
            first = Residual(linear, dimension, hidden) if hidden and learns else linear
            sides[side] = [first.requires_grad_(learns), *rest]
    text = SentenceTransformer(modules=[route(sides)], similarity_fn_name="dot")
    return DualEncoder(text)


@torch.no_grad()
def to_map(model: DualEncoder, side: Side) -> VectorMap:
    """What a side has learned, together with the rotation behind it."""
    modules: list[Any] = model.side(side)
    first, last = modules[0], modules[-1]
    turned = len(modules) > 1 and hasattr(last, "linear")
    rotation = last.linear.weight.T.cpu().double() if turned else torch.eye(model.dimension, dtype=torch.float64)

    def fold(weight: Tensor) -> np.ndarray:
        """[in, D], then the rotation."""
        return np.ascontiguousarray((weight.cpu().double().T @ rotation).float().numpy())

    if not isinstance(first, Residual):
        return VectorMap(fold(first.linear.weight), unit=model.is_normalized)
    inner = np.ascontiguousarray(first.inner.weight.cpu().T.numpy())
    return VectorMap(fold(first.linear.linear.weight), inner, fold(first.outer.weight), unit=model.is_normalized)
