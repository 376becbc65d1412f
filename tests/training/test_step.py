"""A step's gradients: the same for every chunk size, and by hand what the design's five lines say."""

import numpy as np
import pytest
import torch

from repconc.losses.clustering import clustering
from repconc.losses.ranking import mask_of, ranking
from repconc.quantization.product import ProductQuantizer
from repconc.quantization.quantizer import Constraint
from repconc.training.dense import dense_loss
from repconc.training.examples import Batches
from repconc.training.negatives import FixedCodes, FixedVectors
from repconc.training.ranks import Ranks
from repconc.training.stage_one import StageOneLoss
from repconc.training.stage_two import search_and_rank
from repconc.training.step import contrast

CONSTRAINT = Constraint(0.05, 20)


def quantizer_for(model, K=8, M=4):
    generator = torch.Generator().manual_seed(0)
    d = -(-model.dimension // M)
    return ProductQuantizer(torch.randn(M, K, d, generator=generator) / model.dimension**0.5, model.dimension)


def batch_of(examples):
    negatives = np.array([[(7 * query + 3) % 240, (11 * query + 5) % 240] for query in range(40)])
    return Batches(examples, 20, 1, seed=0).at(0, negatives, hard=2)


def gradients(model, quantizer):
    parameters = model.trainable() | {"codebooks": quantizer.codebooks}
    found = {name: p.grad.clone() for name, p in parameters.items() if p.grad is not None}
    for parameter in parameters.values():
        parameter.grad = None
    return found


def equal(one, other, atol=1e-6):
    assert one.keys() == other.keys()
    for name in one:
        assert torch.allclose(one[name], other[name], atol=atol, rtol=1e-4), name


@pytest.mark.parametrize("constraint", [CONSTRAINT, None])
def test_stage_one_is_the_same_for_every_chunk_size(bert, constraint):
    model, examples = bert
    quantizer = quantizer_for(model)
    loss = StageOneLoss(quantizer, constraint, weight=0.2, scale=20.0, ranks=Ranks())
    results = []
    for chunk in (1 << 30, 64, 7, 1):
        parts = contrast(model, examples, batch_of(examples), loss, Ranks(), chunk)
        results.append((parts, gradients(model, quantizer)))
    for parts, found in results[1:]:
        assert parts == pytest.approx(results[0][0], rel=1e-5)
        equal(found, results[0][1])


@pytest.mark.parametrize("by_lambda", [False, True])
def test_stage_two_is_the_same_for_every_chunk_size(bert, by_lambda):
    model, examples = bert
    model.separate_queries()
    quantizer = quantizer_for(model)
    codes = torch.randint(8, (240, 4), generator=torch.Generator().manual_seed(1)).to(torch.uint8)
    batch = Batches(examples, 20, 1, seed=0).at(0)
    results = []
    for chunk in (1 << 30, 6, 1):
        options = {"depth": 10, "scale": 20.0, "by_lambda": by_lambda, "ranks": Ranks(), "chunk": chunk}
        parts = search_and_rank(model, examples, batch, FixedCodes(quantizer, codes), **options)
        results.append((parts, gradients(model, quantizer)))
    for parts, found in results[1:]:
        assert parts == pytest.approx(results[0][0], rel=1e-5)
        equal(found, results[0][1])
    assert all(not name.startswith("document") for name in results[0][1]), "documents are fixed"


def test_stage_one_reads_like_the_design(static):
    """The plain formulation with autograd through everything gives the same gradient as the cached one."""
    model, examples = static
    quantizer, batch = quantizer_for(model), batch_of(examples)
    loss = StageOneLoss(quantizer, CONSTRAINT, weight=0.2, scale=20.0, ranks=Ranks())
    contrast(model, examples, batch, loss, Ranks(), chunk=16)
    cached = gradients(model, quantizer)

    queries = model.embed("query", examples.queries.features(batch.queries, model.device))
    documents = model.embed("document", examples.documents.features(batch.documents, model.device))
    codes = quantizer.assign(documents, CONSTRAINT)
    quantized = quantizer.straight_through(documents, codes)
    relevant = [torch.from_numpy(examples.relevant[query]) for query in batch.queries]
    masked = mask_of(torch.from_numpy(batch.documents), relevant)
    ranked = ranking(queries, quantized, torch.arange(len(batch.queries)), masked, 20.0)
    (ranked + 0.2 * 20.0 * clustering(documents, quantizer.decode(codes))).backward()
    equal(cached, gradients(model, quantizer))


def test_a_shared_encoder_learns_from_both_sides(static):
    model, examples = static
    contrast(model, examples, batch_of(examples), dense_loss(20.0), Ranks(), chunk=1 << 30)
    assert list(model.trainable()) == ["query.0.embedding.weight"]
    model.separate_queries()
    assert list(model.trainable()) == ["query.0.embedding.weight", "document.0.embedding.weight"]
    assert list(model.trainable(["query"])) == ["query.0.embedding.weight"]


def test_scores_of_fixed_codes_are_those_of_decoded_vectors(static):
    model, _ = static
    quantizer = quantizer_for(model, M=3)  # 16 dimensions in 3 blocks: padded
    generator = torch.Generator().manual_seed(2)
    codes = torch.randint(8, (50, 3), generator=generator).to(torch.uint8)
    queries = torch.randn(5, 16, generator=generator)
    candidates = torch.randint(50, (5, 9), generator=generator)
    decoded = FixedVectors(lambda: quantizer.decode(codes.long()))
    expected = decoded.scores(queries, candidates)
    assert torch.allclose(FixedCodes(quantizer, codes).scores(queries, candidates), expected, atol=1e-5)
