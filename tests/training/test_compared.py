"""Compared methods that are trained: what each moves, and what it leaves alone."""

import contextlib
import copy

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from repconc.baselines import bpr, distill_vq, mopq
from repconc.baselines.registry import methods
from repconc.quantization.product import ProductQuantizer
from repconc.training.dpq import DifferentiableLoss
from repconc.training.ranks import Ranks
from repconc.training.recipe import Quantizer, Recipe, StageOne, StageTwo
from repconc.training.trainer import Trainer

RECIPE = Recipe(
    quantizer=Quantizer(bytes=4, codewords=16, turns=5),
    stage_one=StageOne(epochs=4, batch=16, depth=20, evaluations=2, encoder_rate=0.02, codebook_rate=0.01),
    stage_two=StageTwo(epochs=4, batch=16, depth=20, evaluations=2, encoder_rate=0.01, codebook_rate=0.01),
)
TRAINED = {name: method for name, method in methods().items() if hasattr(method, "train")}
FIXED_DOCUMENTS = {"OPQ", "JPQ", "Distill-VQ"}


@pytest.mark.parametrize("name", TRAINED)
def test_it_learns_and_codes_all_documents(name, static, tmp_path):
    model, examples = static
    method = TRAINED[name]
    trainer = Trainer(model, examples, method.recipe(RECIPE) if hasattr(method, "recipe") else RECIPE, tmp_path)
    trainer.warm_up()
    before = trainer.corpus.vectors(trainer.corpus.everything)
    weights = model.text[0].sub_modules["document"][0].embedding.weight.detach().clone().numpy()
    states = method.train(trainer)
    if name in FIXED_DOCUMENTS:
        assert torch.equal(before, trainer.corpus.vectors(trainer.corpus.everything))
    else:  # those of the last step, which need not be the best on dev
        last = load_file(tmp_path / "stage-1.safetensors")["weights/query.0.embedding.weight"]
        assert not np.array_equal(last, weights), "both sides share the encoder, and it learns"
    blocks = bpr.fixed(model.dimension) if name == "BPR" else 4
    assert trainer.codes.shape == (len(examples.document_ids), blocks)
    for state in states:
        losses = [line["ranking"] for line in state.history if "ranking" in line]
        assert min(losses) < losses[0]


def test_choosing_by_chance_has_the_value_of_the_nearest_and_the_gradient_of_all():
    torch.manual_seed(0)
    quantizer = ProductQuantizer(torch.randn(2, 8, 3), 6)
    loss = mopq.MatchingLoss(quantizer, None, 0.0, 1.0, Ranks())
    documents = torch.randn(5, 6, requires_grad=True)
    codes = quantizer.assign(documents.detach(), None)
    quantized = loss.quantized(documents, codes)
    torch.testing.assert_close(quantized, quantizer.decode(codes))
    quantized.square().sum().backward()
    assert documents.grad.abs().sum() > 0
    assert (quantizer.codebooks.grad.abs().sum(dim=2) > 0).all(), "codewords that nobody took move too"


def test_the_squared_error_of_dpq_moves_codewords_only():
    torch.manual_seed(0)
    quantizer = ProductQuantizer(torch.randn(2, 8, 3), 6)
    loss = DifferentiableLoss(quantizer, None, 1.0, 1.0, Ranks())
    documents = torch.randn(5, 6, requires_grad=True)
    codes = quantizer.assign(documents.detach(), None)
    loss.clustered(documents, quantizer.decode(codes)).backward()
    assert documents.grad is None
    assert quantizer.codebooks.grad.abs().sum() > 0


def test_how_long_vectors_are_does_not_change_what_tanh_sees():
    torch.manual_seed(0)
    vectors = torch.nn.functional.normalize(torch.randn(40, 16), dim=1)
    for length in (1.0, 30.0):
        torch.testing.assert_close(length * vectors / bpr.spread(length * vectors, Ranks()), 4 * vectors)


def test_a_teacher_says_how_right_retrieved_documents_are_also_where_labels_do_not():
    alone = RECIPE.model_copy(update={"stage_one": RECIPE.stage_one.model_copy(update={"hard": 0})})
    assert distill_vq.recipe(alone).stage_one.hard == 1
    assert distill_vq.recipe(RECIPE).stage_one.hard == RECIPE.stage_one.hard


def test_signs_are_the_nearest_corners_of_a_cube():
    vectors = torch.from_numpy(np.random.default_rng(0).normal(size=(50, 16)).astype(np.float32))
    quantizer = ProductQuantizer(torch.from_numpy(bpr.corners(16)), 16)
    decoded = quantizer.decode(quantizer.assign(vectors, None))
    torch.testing.assert_close(decoded, torch.where(vectors >= 0, 1.0, -1.0))


class Killed(Exception):  # noqa: N818 (it stands for a signal)
    pass


def test_a_killed_run_goes_on_as_steep_as_it_was(static, tmp_path, monkeypatch):
    model, examples = static
    whole, steps = bpr.HashingLoss.__call__, []

    def watched(self, queries, documents, rows):
        if len(steps) == 5:
            steps.append(None)
            raise Killed
        steps.append(bpr.steepness(self.step))
        return whole(self, queries, documents, rows)

    monkeypatch.setattr(bpr.HashingLoss, "__call__", watched)
    for _ in range(2):
        trainer = Trainer(copy.deepcopy(model), examples, bpr.recipe(RECIPE), tmp_path)
        trainer.save_every = 0.0
        with contextlib.suppress(Killed):
            bpr.train(trainer)
    steps.remove(None)
    assert steps == [bpr.steepness(step) for step in range(len(steps))] and len(steps) > 6
    assert steps[0] == pytest.approx(1.1**0.5)


def test_methods_of_one_stage_have_the_epochs_of_two():
    for name, method in TRAINED.items():
        if hasattr(method, "recipe") and not name.startswith("RepCONC"):
            changed = method.recipe(RECIPE)
            assert changed.stage_one.epochs == changed.stage_two.epochs == 8, name
            assert changed.stage_one.evaluations == 4, name
