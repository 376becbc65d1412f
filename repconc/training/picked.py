"""Inner products of each query with documents of its own.

Taken together the picked vectors are [B, n, D], hundreds of megabytes that are written once and read once; what the
system does to hand out such memory takes longer than the products. So one query comes after the other, and all of them
copy their documents to the same place [n, D].

Sizes: B queries, N documents, D dimensions, n documents for each query.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class _PickedProducts(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, queries: Tensor, vectors: Tensor, numbers: Tensor) -> Tensor:
        ctx.save_for_backward(vectors, numbers)
        products = queries.new_empty(numbers.shape)
        for row, query, picked in zip(products, queries, _picked(vectors, numbers), strict=True):
            torch.mv(picked, query, out=row)
        return products

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        vectors, numbers = ctx.saved_tensors
        of_queries = vectors.new_empty(len(numbers), vectors.shape[1])
        for row, gradient, picked in zip(of_queries, gradients[0], _picked(vectors, numbers), strict=True):
            torch.mv(picked.T, gradient, out=row)
        return of_queries, None, None


def picked_products(queries: Tensor, vectors: Tensor, numbers: Tensor) -> Tensor:
    """[B, D], [N, D] and [B, n] -> [B, n]; queries alone receive gradients."""
    products: Tensor = _PickedProducts.apply(queries, vectors, numbers)  # type: ignore[no-untyped-call]
    return products


def _picked(vectors: Tensor, numbers: Tensor) -> Iterator[Tensor]:
    """The vectors [n, D] of one row of numbers [B, n] after the other, each in the place of the one before."""
    place = vectors.new_empty(numbers.shape[1], vectors.shape[1])
    for row in numbers:
        yield torch.index_select(vectors, 0, row, out=place)
