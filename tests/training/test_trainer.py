"""The phases one by one: what each trains, what it leaves alone, what it writes."""

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

from repconc.training import trainer as module
from repconc.training.recipe import DensePhase, Quantizer, Recipe, StageOne, StageTwo, paper_weight
from repconc.training.trainer import Trainer

RECIPE = Recipe(
    quantizer=Quantizer(bytes=5, codewords=16, turns=5),
    stage_one=StageOne(epochs=2, batch=16, depth=20, evaluations=2, encoder_rate=0.02),
    stage_two=StageTwo(epochs=2, batch=16, depth=20, evaluations=2, codebook_rate=0.01, encoder_rate=0.01),
)


def parameters(model, side):
    return [parameter.detach().clone() for parameter in model.text[0].sub_modules[side].parameters()]


def moved(before, after):
    return any(not torch.equal(one, other) for one, other in zip(before, after, strict=True))


@pytest.mark.parametrize("negatives", ["in-batch", "static", "refreshed", "dynamic"])
def test_dense_training_with_each_kind_of_negatives(static, tmp_path, negatives):
    model, examples = static
    trainer = Trainer(model, examples, RECIPE, tmp_path)
    before = {side: parameters(model, side) for side in ("query", "document")}
    phase = DensePhase(negatives=negatives, epochs=4, batch=16, depth=20, refresh=4, encoder_rate=0.02)
    state = trainer.dense(phase, "dense-1")
    losses = [line["ranking"] for line in state.history if "ranking" in line]
    assert losses[-1] < losses[0]
    trained = load_file(tmp_path / "dense-1.safetensors")
    assert not np.array_equal(trained["weights/query.0.embedding.weight"], before["query"][0].numpy())
    if negatives == "dynamic":
        assert not moved(before["document"], parameters(model, "document")), "the document index is fixed"
    files = sorted(path.name for path in tmp_path.glob("*negatives*"))
    assert len(files) == {"in-batch": 0, "static": 1, "refreshed": 4, "dynamic": 0}[negatives]


def test_negatives_are_irrelevant_and_what_the_model_retrieves(static, tmp_path):
    model, examples = static
    trainer = Trainer(model, examples, RECIPE, tmp_path)
    mined = trainer._mine(10, tmp_path / "n.safetensors")
    queries = trainer.corpus.queries(examples.queries, np.arange(40)).numpy()
    documents = trainer.corpus.vectors(trainer.corpus.everything).numpy()
    for number, (row, known) in enumerate(zip(mined, examples.relevant, strict=True)):
        order = [n for n in np.argsort(-(documents @ queries[number]), kind="stable") if n not in known][:10]
        scores = documents @ queries[number]
        assert np.allclose(scores[row], scores[order], atol=1e-6)
        assert not set(row) & set(known)


def test_stage_two_leaves_documents_rotation_and_codes_alone(static, tmp_path):
    model, examples = static
    trainer = Trainer(model, examples, RECIPE, tmp_path)
    trainer.warm_up()
    trainer.stage_one()
    use = trainer.code()
    assert {"entropy", "largest", "unused", "collision", "twins"} == use.keys()
    documents, rotation = parameters(model, "document"), model.text[1].linear.weight.detach().clone()
    codes, coding = trainer.codes.copy(), trainer.coding.codebooks.copy()
    state = trainer.stage_two()
    assert not moved(documents, parameters(model, "document"))
    assert torch.equal(rotation, model.text[1].linear.weight)
    assert torch.allclose(rotation @ rotation.T, torch.eye(16), atol=1e-5)
    assert np.array_equal(codes, trainer.codes) and np.array_equal(coding, trainer.coding.codebooks)
    trained = load_file(tmp_path / "stage-2.safetensors")
    assert not np.array_equal(trained["weights/query.0.embedding.weight"], documents[0].numpy()), "queries moved"
    assert not np.array_equal(trained["weights/codebooks"], coding), "codebooks moved"
    last = [line for line in state.history if "ranking" in line][-1]
    assert "clustering" not in last, "stage 2 has the ranking loss alone"


def test_stage_one_logs_the_balance_with_and_without_the_constraint(static, tmp_path):
    model, examples = static
    trainer = Trainer(model, examples, RECIPE, tmp_path)
    trainer.warm_up()
    history = trainer.stage_one().history
    measured = next(line for line in reversed(history) if "entropy (batch)" in line)
    assert measured["entropy (batch)"] >= measured["entropy (nearest)"]
    assert {"largest (batch)", "unused (batch)", "largest (nearest)", "unused (nearest)"} <= measured.keys()
    assert all(np.isfinite(line["clustering"]) for line in history if "clustering" in line)


@pytest.mark.parametrize(
    ("blocks", "loss", "expected"), [(4, None, True), (5, None, False), (5, "lambda", True), (4, "softmax", False)]
)
def test_lambda_loss_for_four_bytes_or_less(static, tmp_path, monkeypatch, blocks, loss, expected):
    model, examples = static
    seen = []
    original = module.search_and_rank
    monkeypatch.setattr(
        module, "search_and_rank", lambda *a, **options: seen.append(options["by_lambda"]) or original(*a, **options)
    )
    quantizer = RECIPE.quantizer.model_copy(update={"bytes": blocks})
    stage_two = RECIPE.stage_two.model_copy(update={"loss": loss})
    trainer = Trainer(
        model, examples, RECIPE.model_copy(update={"quantizer": quantizer, "stage_two": stage_two}), tmp_path
    )
    trainer.warm_up()
    trainer.code()
    trainer.stage_two()
    assert set(seen) == {expected}


def test_the_papers_lambda_by_size():
    expected = {1: 0.3, 4: 0.3, 6: 0.2, 8: 0.2, 12: 0.1, 16: 0.07, 20: 0.05, 24: 0.05, 48: 0.05, 96: 0.05}
    assert {M: paper_weight(M) for M in expected} == expected


def test_scale_follows_the_length_of_vectors(static, tmp_path):
    model, examples = static
    assert Trainer(model, examples, Recipe(), tmp_path).scale == 20.0
    assert Trainer(model, examples, Recipe(scale=3.0), tmp_path).scale == 3.0
