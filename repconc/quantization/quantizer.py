"""What every trainable quantizer is: the twin of a `Codec` while it learns (paper, sections 3.1 and 3.2).

Sizes: N documents, B queries, D dimensions, M codebooks of K codewords.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from repconc.additive import BEAM, make_codec
from repconc.codec import Codec
from repconc.quantization.sinkhorn import ALONE, Collectives

SAMPLE = 1 << 16
"""Codes that lengths are learned from, at most."""


class Constraint(NamedTuple):
    """The uniform-clustering constraint and how exactly it is solved."""

    epsilon: float = 0.003
    iterations: int = 100
    collectives: Collectives = ALONE


class Quantizer(nn.Module, ABC):
    """M codebooks that receive gradients."""

    share = 1.0
    """Of the rate that codebooks learn with."""
    unit = False
    """Whether what it decodes is given the length 1 back, class by class (lengths.py)."""
    beam = BEAM
    """Partial codes that are kept, where codes are additive."""

    def __init__(self, codebooks: Tensor, dimension: int) -> None:
        super().__init__()
        self.codebooks = nn.Parameter(codebooks.clone())  # [M, K, d]
        self.dimension = dimension

    @abstractmethod
    def assign(self, documents: Tensor, constraint: Constraint | None) -> Tensor:
        """[N, D] -> [N, M]: codes; with a constraint, all codewords of a codebook in equal use over the batch."""

    @abstractmethod
    def decode(self, codes: Tensor) -> Tensor:
        """[N, M] -> [N, D]"""

    @abstractmethod
    def tables(self, queries: Tensor) -> Tensor:
        """[B, D] -> [B, M, K]: what each codeword adds to a query's scores."""

    def to_codec(self) -> Codec:
        return make_codec(self.codebooks.detach().cpu().numpy().copy(), self.dimension, beam=self.beam)

    def to_coding(self, codes: np.ndarray) -> Codec:
        """The same, with what it knows of lengths from codes [N, M] of documents."""
        codec = self.to_codec()
        if not self.unit:
            return codec
        return codec.with_lengths(codes[:: -(-len(codes) // SAMPLE)])

    def straight_through(self, documents: Tensor, codes: Tensor) -> Tensor:
        """The decoded documents in value; in the gradient both the documents and their codewords.

        The parentheses make the second term exactly zero, so that the value is the decoded one to the bit and
        documents with equal codes get equal scores.
        """
        decoded = self.decode(codes)
        if self.unit:
            decoded = nn.functional.normalize(decoded, dim=1)
        return decoded + (documents - documents.detach())


def squared_distances(blocks: Tensor, codebooks: Tensor) -> Tensor:
    """[m, N, d] and [m, K, d] -> [m, N, K], by |x|^2 - 2 <x, c> + |c|^2: no [m, N, K, d] is ever formed."""
    norms = (codebooks**2).sum(dim=-1)[:, None, :]  # [m, 1, K]
    distances = torch.baddbmm(norms, blocks, codebooks.transpose(1, 2), alpha=-2)
    return distances.add_((blocks**2).sum(dim=-1, keepdim=True)).clamp_min_(0)
