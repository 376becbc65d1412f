"""MoPQ (Xiao et al., 2021): the matching loss, which asks of codewords to rank well and not to lie close.

Every codeword of a block could be a document's, the nearer the likelier; the probabilities carry the gradient, the
nearest the value. (The paper draws the choice by Gumbel noise; the temperature t here is the mean squared distance of
the nearest.)

    p_k = softmax_k(-|x - c_k|^2 / t),    chosen = onehot(argmax p) + (p - p.detach()),    quantized = chosen C

There is no clustering loss and no constraint. Contrastive samples from all ranks, its second idea, are ours anyway.
"""

import torch
from torch import Tensor

from repconc.baselines.method import one_stage
from repconc.quantization.product import ProductQuantizer
from repconc.quantization.quantizer import squared_distances
from repconc.training.loop import State
from repconc.training.stage_one import StageOneLoss
from repconc.training.trainer import Trainer

NAME = "MoPQ"
recipe = one_stage


class MatchingLoss(StageOneLoss):
    """The ranking loss, whose gradient knows of the codewords that a document nearly took."""

    constrained = False

    def quantized(self, documents: Tensor, codes: Tensor) -> Tensor:
        assert isinstance(self.quantizer, ProductQuantizer)
        codebooks = self.quantizer.codebooks  # [M, K, d]
        distances = squared_distances(self.quantizer.split(documents).transpose(0, 1), codebooks)  # [M, N, K]
        # The nearest is about e times as likely as one twice as far.
        temperature = distances.detach().amin(dim=2).mean()
        likely = (-distances / temperature).softmax(dim=2)
        chosen = torch.nn.functional.one_hot(codes.T, codebooks.shape[1]) + (likely - likely.detach())
        blocks = torch.bmm(chosen, codebooks).transpose(0, 1)  # [N, M, d]
        return blocks.reshape(len(documents), -1)[:, : self.quantizer.dimension]

    def clustered(self, documents: Tensor, decoded: Tensor) -> Tensor:
        return documents.new_zeros(())


def train(trainer: Trainer) -> list[State]:
    state = trainer.stage_one(MatchingLoss)
    trainer.code()
    return [state]
