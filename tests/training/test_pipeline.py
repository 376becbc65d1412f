"""The whole pipeline on a tiny set: what it leaves, how it resumes, what it refuses."""

import json
import time
from multiprocessing import get_context

import numpy as np
import pytest
from safetensors.numpy import load_file
from sentence_transformers import SentenceTransformer

from repconc import Encoder, RepconcError, RepconcModel, load_dataset, make_recipe, train
from repconc.additive import AdditiveCodec
from repconc.training.pipeline import training_folder
from repconc.training.trainer import Trainer

# Dev queries of so small a set say little; the training queries choose the checkpoint, so that each phase moves it.
FAST = {
    "validation_split": "train",
    "pieces": 0.5,
    "dense": [{"epochs": 2, "batch": 16, "depth": 20, "evaluations": 2, "encoder_rate": 0.05}],
    "quantizer": {"bytes": 4, "codewords": 16, "turns": 5},
    "stage_one": {"epochs": 3, "batch": 24, "depth": 20, "evaluations": 2, "encoder_rate": 0.05},
    "stage_two": {"epochs": 2, "batch": 16, "depth": 20, "evaluations": 2, "codebook_rate": 0.01},
}


def recipe(encoder, **changes):
    return make_recipe(FAST | {"encoder": {"documents": str(encoder)}} | changes)


@pytest.mark.parametrize("method", ["repconc", "jpq", "dpq", "opq", "pq", "dense"])
def test_a_model_is_made_and_loads_without_us(method, tiny_static, labelled, tmp_path):
    dataset = load_dataset(labelled)
    model = train(dataset, tmp_path / "model", recipe(tiny_static, method=method))
    assert not training_folder(tmp_path / "model").exists()
    plain = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    texts = ["the river of gold", "king and queen"]
    assert np.array_equal(plain.encode_document(texts), model.encoder.embed_documents(texts))
    assert np.array_equal(plain.encode_query(texts), model.encoder.embed_queries(texts))
    if method == "dense":
        with pytest.raises(RepconcError, match="uncompressed"):
            model.encode_documents(texts)
        return
    codes = model.encode_documents(texts)
    assert codes.shape == (2, 4) and codes.dtype == np.uint8
    moved = not np.array_equal(model.coding.codebooks, model.scoring.codebooks)
    assert moved == (method in {"repconc", "jpq"}), "only stage 2 moves the scoring codebooks"
    card = (tmp_path / "model" / "README.md").read_text()
    assert "4 bytes a document, 16x less" in card and "collision" in card


def test_a_model_with_additive_codes(tiny_static, labelled, tmp_path):
    values = {"quantizer": FAST["quantizer"] | {"codes": "additive", "beam": 3}}
    model = train(load_dataset(labelled), tmp_path / "model", recipe(tiny_static, **values))
    loaded, texts = RepconcModel.load(tmp_path / "model"), ["the river of gold", "king and queen"]
    assert isinstance(loaded.scoring, AdditiveCodec)
    assert loaded.coding.beam == 3
    assert np.array_equal(loaded.encode_documents(texts), model.encode_documents(texts))
    assert "additive-quantization" in (tmp_path / "model" / "README.md").read_text()
    with pytest.raises(RepconcError, match="opq and pq make product codes"):
        train(load_dataset(labelled), tmp_path / "other", recipe(tiny_static, method="opq", **values))


def test_a_saved_model_is_an_encoder_to_train_on(tiny_static, labelled, tmp_path):
    dataset = load_dataset(labelled)
    dense = train(dataset, tmp_path / "dense", recipe(tiny_static, method="dense"))
    model = train(dataset, tmp_path / "model", recipe(tmp_path / "dense", dense=[], method="opq"))
    documents = [document.full_text for document in dataset.documents]
    before, after = dense.encoder.embed_documents(documents), model.encoder.embed_documents(documents)
    assert np.allclose(before @ before.T, after @ after.T, atol=1e-5), "a rotation keeps inner products"


def test_heads_learn_behind_a_frozen_encoder(tiny_bert, labelled, tmp_path):
    dataset = load_dataset(labelled)
    model = train(
        dataset,
        tmp_path / "model",
        recipe(tiny_bert, train="heads", dense=[FAST["dense"][0] | {"encoder_rate": 0.003}]),
    )
    saved = SentenceTransformer(str(tmp_path / "model"), device="cpu")
    frozen = Encoder(str(tiny_bert)).side("document")
    inside = saved[0].sub_modules["document"]
    for name, weight in frozen[0].state_dict().items():
        assert np.array_equal(weight, inside[0].state_dict()[name])
    heads = [saved[0].sub_modules[side][3].linear.weight.detach().numpy() for side in ("query", "document")]
    assert all(np.abs(head - np.eye(32)).max() > 1e-3 for head in heads)
    assert not np.array_equal(*heads), "one map on each side"
    size = sum(file.stat().st_size for file in (tmp_path / "model").rglob("*.safetensors"))
    once = sum(file.stat().st_size for file in tiny_bert.rglob("*.safetensors"))
    assert size < 2 * once, "the frozen encoder is saved once"
    assert model.manifest.bytes == 4


EVERY_KIND = {
    "train": "heads",
    "stage_one": FAST["stage_one"] | {"distillation": 0.5},
    "stage_two": FAST["stage_two"] | {"distillation": 1.0},
    "dense": [
        {"negatives": "in-batch", "epochs": 1, "batch": 16},
        {"negatives": "refreshed", "epochs": 2, "batch": 16, "depth": 20, "refresh": 3},
        {"negatives": "dynamic", "epochs": 2, "batch": 16, "depth": 20},
    ],
}


@pytest.mark.parametrize(
    ("changes", "phases"),
    [
        ({}, ["dense-1", "stage-1", "codes", "stage-2", "stage-2"]),
        (EVERY_KIND, ["dense-2", "dense-3", "codes"]),
        ({"quantizer": FAST["quantizer"] | {"codes": "additive"}}, ["warmup", "stage-1", "stage-2"]),
    ],
    ids=["static negatives", "heads and every kind of negatives", "additive codes"],
)
def test_killed_at_random_points_it_ends_with_the_same_model(
    changes, phases, tiny_static, labelled, tmp_path, monkeypatch
):
    """Real processes, really killed; forked, so that they start at once."""
    monkeypatch.setattr(Trainer, "save_every", 0.0)
    dataset, values = load_dataset(labelled), FAST | changes | {"encoder": {"documents": str(tiny_static)}}
    unbroken = train(dataset, tmp_path / "unbroken", make_recipe(values))
    folder, kills = training_folder(tmp_path / "killed"), 0
    random = np.random.default_rng(0)

    def start():
        process = get_context("fork").Process(target=train, args=(dataset, tmp_path / "killed", make_recipe(values)))
        process.start()
        return process

    (tmp_path / ".killed.0123456789ab.partial").mkdir()  # what a kill in the middle of saving leaves
    for name in phases:
        process = start()
        while process.is_alive() and not (folder / f"{name}.safetensors").exists():
            time.sleep(0.001)
        time.sleep(random.uniform(0, 0.03))
        kills += process.is_alive()
        process.kill()
        process.join()
    if not (tmp_path / "killed").exists():
        last = start()
        last.join()
        assert last.exitcode == 0
    assert kills >= 2
    assert not list(tmp_path.glob(".*.partial"))
    files = sorted(path.relative_to(tmp_path / "unbroken") for path in (tmp_path / "unbroken").rglob("*.safetensors"))
    for file in files:
        one, other = load_file(tmp_path / "unbroken" / file), load_file(tmp_path / "killed" / file)
        assert all(np.array_equal(one[name], other[name]) for name in one), file
    assert RepconcModel.load(tmp_path / "killed").manifest.figures == unbroken.manifest.figures


class TestBadInput:
    def test_fewer_documents_than_codewords(self, tiny_static, labelled, tmp_path):
        big = recipe(tiny_static, quantizer={"bytes": 4, "codewords": 256})
        with pytest.raises(RepconcError, match="240 documents for 256 codewords"):
            train(load_dataset(labelled), tmp_path / "model", big)
        assert not list(tmp_path.glob("model*"))

    def test_a_batch_with_fewer_documents_than_codewords(self, tiny_static, labelled, tmp_path):
        small = recipe(tiny_static, stage_one={"batch": 4, "hard": 1})
        with pytest.raises(RepconcError, match="4 documents for 16 codewords"):
            train(load_dataset(labelled), tmp_path / "model", small)
        assert not list(tmp_path.glob("model*"))

    def test_more_bytes_than_dimensions(self, tiny_static, labelled, tmp_path):
        with pytest.raises(RepconcError, match="16 dimensions cannot be cut into 17 blocks"):
            train(
                load_dataset(labelled),
                tmp_path / "model",
                recipe(tiny_static, quantizer={"bytes": 17, "codewords": 16}),
            )
        assert not list(tmp_path.glob("model*"))

    def test_one_level_of_additive_codes(self, tiny_static, labelled, tmp_path):
        one = recipe(tiny_static, quantizer={"codes": "additive", "bytes": 1, "codewords": 16})
        with pytest.raises(RepconcError, match="a product code of one block"):
            train(load_dataset(labelled), tmp_path / "model", one)
        assert not list(tmp_path.glob("model*"))

    def test_no_training_split(self, tiny_static, beir, tmp_path):
        with pytest.raises(RepconcError, match="no split 'train'"):
            train(load_dataset(beir()), tmp_path / "model", recipe(tiny_static))
        assert not training_folder(tmp_path / "model").exists()

    def test_another_recipe_does_not_go_on(self, tiny_static, labelled, tmp_path):
        with pytest.raises(RepconcError, match="not a number"):
            train(load_dataset(labelled), tmp_path / "model", recipe(tiny_static, scale=1e38))
        with pytest.raises(RepconcError, match="another recipe"):
            train(load_dataset(labelled), tmp_path / "model", recipe(tiny_static))

    def test_nan(self, tiny_static, labelled, tmp_path):
        wild = recipe(tiny_static, scale=1e38)
        with pytest.raises(RepconcError, match=r"not a number at step \d+ of dense-1"):
            train(load_dataset(labelled), tmp_path / "model", wild)
        assert not (tmp_path / "model").exists()

    def test_a_model_that_is_there(self, tiny_static, labelled, tmp_path):
        (tmp_path / "model").mkdir()
        (tmp_path / "model" / "precious.txt").write_text("mine")
        with pytest.raises(RepconcError, match="there already"):
            train(load_dataset(labelled), tmp_path / "model", recipe(tiny_static))
        assert (tmp_path / "model" / "precious.txt").read_text() == "mine"


def test_the_command_line_trains_and_measures(tiny_static, labelled, tmp_path, monkeypatch, request):
    from typer.testing import CliRunner

    from repconc.cli.main import app

    monkeypatch.chdir(tmp_path)
    path = tmp_path / "recipe.toml"
    path.write_text(
        'validation_split = "train"\nquantizer = {codewords = 16, turns = 5}\ndense = [{epochs = 1, batch = 16}]\n'
        "stage_one = {epochs = 1, batch = 16}\nstage_two = {epochs = 1, batch = 16}\n"
    )
    command = [
        "train",
        str(labelled),
        "-o",
        "model",
        "--recipe",
        str(path),
        "--encoder",
        str(tiny_static),
        "--bytes",
        "5",
    ]
    refused = CliRunner().invoke(app, [*command, "--bytes", "99"])
    assert "99 blocks" in str(refused.exception) and {file.name for file in tmp_path.iterdir()} == {
        "labelled",
        "recipe.toml",
    }
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert "stage-2 3/3  ranking" in result.stderr and "dev MRR@10" in result.stderr
    assert result.stdout.strip() == "model"
    assert (tmp_path / "model" / "report.png").read_bytes().startswith(b"\x89PNG")
    command[3] = "again"
    request.getfixturevalue("low_bounds")
    result = CliRunner().invoke(app, [*command, "--json"])
    again = json.loads(result.stdout)
    assert again["model"] == "again" and 0 < again["figures"]["stage 2"]["MRR@10"] <= 1
    assert again["codes"] == "additive" and "240 documents are enough for additive codes" in result.stderr
    measured = CliRunner().invoke(app, ["eval", "model", str(labelled), "--json"])
    assert 0 < json.loads(measured.stdout)["measures"]["MRR@10"] <= 1
    nothing = CliRunner().invoke(app, ["train", str(labelled), "-o", "new", "--resume"])
    assert "no interrupted training" in str(nothing.exception)
