"""Run by `torchrun` in test_ranks.py: the gradients of one step of each phase, as this rank ends up with them."""

import sys

import numpy as np
import torch
from safetensors.torch import save_file

from repconc.models.dual import DualEncoder
from repconc.models.encoder import Encoder
from repconc.quantization.additive import AdditiveQuantizer
from repconc.quantization.product import ProductQuantizer
from repconc.quantization.quantizer import Constraint, Quantizer
from repconc.training.dense import dense_loss
from repconc.training.examples import Batches
from repconc.training.negatives import FixedCodes
from repconc.training.ranks import Ranks
from repconc.training.stage_one import StageOneLoss
from repconc.training.stage_two import search_and_rank
from repconc.training.step import contrast, own_part
from repconc.training.teaching import Teacher
from tests.training.conftest import examples_of


def main(output: str, *folders: str) -> None:
    for number, folder in enumerate(folders):
        write_gradients(folder, f"{output}/{number}")


def write_gradients(folder: str, output: str) -> None:
    ranks = Ranks()
    encoder = Encoder(folder, device="cpu")
    examples = examples_of(encoder)
    model = DualEncoder.of(encoder)
    generator = torch.Generator().manual_seed(0)
    quantizer = ProductQuantizer(torch.randn(4, 8, model.dimension // 4, generator=generator) / 4, model.dimension)
    negatives = np.arange(80).reshape(40, 2) + 120
    # 54 pairs in batches of 27: two ranks hold 14 and 13 queries, 14 and 13 negatives.
    batch = own_part(Batches(examples, 27, 1, seed=0).at(0, negatives, hard=1), ranks)
    tensors: dict[str, torch.Tensor] = {}

    def collect(phase: str, parts: dict[str, float], quantizer: Quantizer = quantizer) -> None:
        sides = ["query"] if phase.startswith("stage 2") else ["query", "document"]
        parameters = model.trainable(sides) | ({} if phase == "dense" else {"codebooks": quantizer.codebooks})
        ranks.sum_gradients(parameters.values())
        for name, parameter in parameters.items():
            if parameter.grad is not None:  # a pooler that nobody reads has none
                tensors[f"{phase}/{name}"] = parameter.grad.clone()
                parameter.grad = None
        for name, value in parts.items():
            tensors[f"{phase}/loss/{name}"] = torch.tensor(value, dtype=torch.float64)

    collect("dense", contrast(model, examples, batch, dense_loss(20.0), ranks, chunk=5))
    for name, iterations in (("constrained", 30), ("nearest", 0)):
        constraint = Constraint(0.02, iterations, ranks.collectives) if iterations else None
        loss = StageOneLoss(quantizer, constraint, 0.2, 20.0, ranks)
        collect(name, contrast(model, examples, batch, loss, ranks, chunk=5))
    whole = AdditiveQuantizer(torch.randn(3, 8, model.dimension, generator=generator) / 8, model.dimension)
    loss = StageOneLoss(whole, Constraint(0.02, 30, ranks.collectives), 0.2, 20.0, ranks)
    collect("additive", contrast(model, examples, batch, loss, ranks, chunk=5), whole)
    taught = Teacher(DualEncoder.of(encoder, shared=False), examples, 10.0, ranks, chunk=5)
    loss = StageOneLoss(quantizer, None, 0.2, 20.0, ranks, taught=0.7)
    collect("taught", contrast(model, examples, batch, loss, ranks, 5, taught))
    codes = torch.randint(8, (240, 4), generator=generator).to(torch.uint8)
    model.separate_queries()
    for by_lambda in (False, True):
        options = {"depth": 10, "scale": 20.0, "by_lambda": by_lambda, "ranks": ranks, "chunk": 5}
        queries = batch._replace(documents=batch.documents[: len(batch.queries)])
        parts = search_and_rank(model, examples, queries, FixedCodes(quantizer, codes), **options)
        collect(f"stage 2, lambda {by_lambda}", parts)
    options = {"depth": 10, "scale": 20.0, "by_lambda": False, "ranks": ranks, "chunk": 5}
    parts = search_and_rank(
        model, examples, queries, FixedCodes(quantizer, codes), **options, teacher=taught, taught=0.7
    )
    collect("stage 2, taught", parts)
    save_file(tensors, f"{output}-{ranks.count}-{ranks.number}.safetensors")


if __name__ == "__main__":
    main(*sys.argv[1:])
