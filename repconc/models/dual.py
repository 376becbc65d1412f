"""Two text encoders in one sentence-transformers model: a router with a query and a document side.

What both sides share stands behind the router; for a compressed model that is the rotation, a `Dense` of the library's
own without bias. So a saved model loads with `SentenceTransformer(path)` alone. The two sides may be one and the same
encoder (they are until a stage trains the query side only); modules that are shared are saved once.
"""

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Router
from torch import Tensor, nn

from repconc.errors import RepconcError
from repconc.models.encoder import Encoder, Side

Features = dict[str, Any]
SIDES: tuple[Side, Side] = ("query", "document")


class DualEncoder(nn.Module):
    """The two sides while they learn. `trunk` modules at the head of each side are frozen and their vectors cached."""

    learns_in_half = False  # whether training steps use bfloat16

    def __init__(self, text: SentenceTransformer, trunk: dict[Side, int] | None = None) -> None:
        super().__init__()
        self.text = text.float().eval()  # no dropout: a step is a pure function of weights and batch
        self.trunk = trunk or dict.fromkeys(SIDES, 0)

    @classmethod
    def of(cls, encoder: Encoder, *, shared: bool = True, heads: bool = False) -> "DualEncoder":
        """Take over an encoder. Not `shared`: each side gets weights of its own.

        `heads`: the encoder is frozen and a linear map behind it learns, one on each side.
        """
        sides = {side: list(_modules_of(encoder.side(side), side)) for side in SIDES}
        if not _is_normalized(sides["document"]) and encoder.settings.normalize:
            sides = {side: [*modules, Normalize()] for side, modules in sides.items()}
        trunk = None
        if heads:
            trunk = {side: len(modules) for side, modules in sides.items()}
            sides = {side: [*modules, *head(encoder.dimension, modules)] for side, modules in sides.items()}
        elif not shared:
            sides["query"] = copy.deepcopy(sides["query"])
        text = SentenceTransformer(
            modules=[route(sides)], device=str(encoder.device), prompts=encoder.prompts, similarity_fn_name="dot"
        )
        return cls(text, trunk)

    @property
    def dimension(self) -> int:
        return int(self.text.get_embedding_dimension() or 0)

    @property
    def device(self) -> torch.device:
        return torch.device(self.text.device)

    @property
    def is_normalized(self) -> bool:
        return _is_normalized(self.side("document"))

    @property
    def has_layers(self) -> bool:
        """Whether a transformer learns, whose activations fill the memory."""
        return self.trunk["document"] == 0 and hasattr(self._router.sub_modules["document"][0], "auto_model")

    def embed(self, side: Side, features: Features, *, half: bool = False) -> Tensor:
        """Features of texts, or of the trunk's vectors, to vectors [n, D].

        half: the transformer's products in bfloat16, half the memory and, on many cards, twice the speed. Pooling,
        heads and rotation stay in float32, as do the weights.
        """
        first, *rest = self.side(side)[self.trunk[side] :]
        with torch.autocast(self.device.type, torch.bfloat16, enabled=half and self.has_layers):
            features = first(features)
        for module in rest:
            features = module({name: _whole(value) for name, value in features.items()})
        vectors: Tensor = features["sentence_embedding"]
        return vectors

    def trainable(self, sides: Sequence[Side] = SIDES) -> dict[str, nn.Parameter]:
        """The parameters that learn, by name, each once: those behind the trunk, without the rotation."""
        modules = {side: nn.Sequential(*self._router.sub_modules[side][self.trunk[side] :]) for side in sides}
        named = {
            f"{side}.{name}": parameter
            for side, sequence in modules.items()
            for name, parameter in sequence.named_parameters(remove_duplicate=False)
        }
        seen: dict[int, str] = {}
        for name, parameter in named.items():
            seen.setdefault(id(parameter), name)
        return {name: named[name] for name in seen.values() if named[name].requires_grad}

    def rotate(self, rotation: np.ndarray) -> None:
        """Put a fixed rotation behind both sides; vectors are then x @ rotation."""
        D = self.dimension
        weight = torch.from_numpy(np.ascontiguousarray(rotation.T, dtype=np.float32))
        dense = Dense(D, D, bias=False, activation_function=nn.Identity(), init_weight=weight)
        self.text.append(dense.to(self.device).requires_grad_(False))

    def separate_queries(self) -> None:
        """Give the query side weights of its own, where it still shares those of the documents."""
        sides = {side: list(self._router.sub_modules[side]) for side in SIDES}
        queries, trunk = sides["query"], self.trunk["query"]
        sides["query"] = [*queries[:trunk], *copy.deepcopy(queries[trunk:])]
        self.text[0] = route(sides)

    def freeze_layers(self, count: int) -> None:
        """Freeze the embeddings and the first `count` layers of the transformers: less to compute, less to forget."""
        for side in SIDES:
            model: Any = getattr(self._router.sub_modules[side][0], "auto_model", None)
            layers = getattr(getattr(model, "encoder", None), "layer", None)
            if layers is None or count >= len(layers):
                known = "no layers that we know of" if layers is None else f"only {len(layers)} layers"
                raise RepconcError(f"frozen_layers is {count} and this encoder has {known}: nothing would learn.")
            for part in [model.embeddings, *layers[:count]]:
                part.requires_grad_(False)

    @property
    def _router(self) -> Any:
        return self.text[0]

    def side(self, side: Side) -> list[nn.Module]:
        return _modules_of(self.text, side)


def _modules_of(text: SentenceTransformer, side: Side) -> list[nn.Module]:
    """A side's modules in order, through a router where there is one."""
    if isinstance(text[0], Router):
        return [*text[0].sub_modules[side], *list(text)[1:]]
    return list(text)


def route(sides: dict[Side, list[nn.Module]]) -> Router:
    return Router.for_query_document(query_modules=sides["query"], document_modules=sides["document"])


def head(dimension: int, modules: list[nn.Module]) -> list[nn.Module]:
    """A linear map that starts as the identity; its vectors have length 1 where those before it have."""
    linear = Dense(
        dimension, dimension, bias=False, activation_function=nn.Identity(), init_weight=torch.eye(dimension)
    )
    return [linear, Normalize()] if _is_normalized(modules) else [linear]


def _whole(value: Any) -> Any:
    return value.float() if isinstance(value, Tensor) and value.dtype == torch.bfloat16 else value


def _is_normalized(modules: list[nn.Module]) -> bool:
    """Whether vectors leave these modules with length 1; a rotation keeps it."""
    kinds = [module for module in modules if not (isinstance(module, Dense) and not module.linear.weight.requires_grad)]
    return bool(kinds) and isinstance(kinds[-1], Normalize)
