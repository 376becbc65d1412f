"""Embed a batch of any size in the memory of a chunk (cached gradients; Gao et al., 2021).

The loss sees all vectors of the batch at once, as leaves. Its gradient with respect to them is then pushed through the
encoder chunk by chunk, each chunk's graph being built again. What the chunks are changes neither loss nor gradient.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from repconc.models.dual import DualEncoder
from repconc.models.encoder import Side
from repconc.models.inputs import Dropout, Inputs

Push = Callable[[Tensor], None]


def embed(
    model: DualEncoder, side: Side, inputs: Inputs, numbers: np.ndarray, chunk: int, dropout: Dropout | None = None
) -> tuple[Tensor, Push]:
    """Vectors [n, D] without a graph, and the function that hands their gradient to the encoder."""

    def forward(places: np.ndarray) -> Tensor:
        return model.embed(side, inputs.features(numbers[places], model.device, dropout), half=model.learns_in_half)

    if len(numbers) <= chunk:
        vectors = forward(np.arange(len(numbers)))
        return vectors.detach(), vectors.backward if vectors.requires_grad else _nothing_learns
    chunks = list(_chunks(inputs.lengths[numbers], chunk))

    def push(gradient: Tensor) -> None:
        for places in chunks:
            forward(places).backward(gradient[torch.from_numpy(places).to(gradient.device)])

    return _without_graph(forward, chunks, model), push


def _nothing_learns(gradient: Tensor) -> None:
    """The side is frozen as a whole."""


def embed_all(model: DualEncoder, side: Side, inputs: Inputs, numbers: np.ndarray, chunk: int) -> Tensor:
    """Vectors of many texts [n, D], without a graph; always as exact as a saved model will compute them."""
    chunks = list(_chunks(inputs.lengths[numbers], chunk))
    return _without_graph(
        lambda places: model.embed(side, inputs.features(numbers[places], model.device)), chunks, model
    )


@torch.no_grad()
def _without_graph(forward: Callable[[np.ndarray], Tensor], chunks: list[np.ndarray], model: DualEncoder) -> Tensor:
    vectors = torch.empty(sum(map(len, chunks)), model.dimension, device=model.device)
    for places in chunks:
        vectors[torch.from_numpy(places).to(model.device)] = forward(places).float()
    return vectors


def _chunks(lengths: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """Places in chunks of `size`, the longest first, so that little of a chunk is padding."""
    order = np.argsort(-lengths, kind="stable")
    for start in range(0, len(order), size):
        yield order[start : start + size]
