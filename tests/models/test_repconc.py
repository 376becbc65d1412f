"""Model folders: whole, checked, loadable; the hub."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch

from repconc import Encoder, RepconcError, RepconcModel
from repconc.codec import Codec
from repconc.config import EncoderSettings
from repconc.models.dual import DualEncoder
from repconc.models.repconc import save_model
from tests.conftest import text
from tests.training.conftest import tiny_static  # noqa: F401 (a fixture)

ABOUT = {"method": "repconc", "dataset": "tiny", "recipe": {}, "figures": {"stage 1": {"MRR@10": 0.5}}}


@pytest.fixture
def folder(tiny_bert, tmp_path):
    encoder = Encoder(EncoderSettings(documents=str(tiny_bert), document_tokens=12, query_tokens=5), device="cpu")
    model = DualEncoder.of(encoder)
    model.rotate(np.linalg.qr(np.random.default_rng(0).normal(size=(32, 32)))[0])
    random = np.random.default_rng(1)
    coding, scoring = (Codec(random.normal(size=(4, 9, 8)).astype("f4"), 32) for _ in range(2))
    save_model(tmp_path / "model", model, coding, scoring, ABOUT | {"document_tokens": 12, "query_tokens": 5}, {})
    return tmp_path / "model"


def test_both_codebooks_and_the_limits_come_back(folder, tiny_bert):
    model = RepconcModel.load(folder)
    assert not np.array_equal(model.coding.codebooks, model.scoring.codebooks)
    assert model.encoder.settings.document_tokens == 12 and model.encoder.settings.query_tokens == 5
    limited = Encoder(EncoderSettings(documents=str(tiny_bert), document_tokens=12, query_tokens=5), device="cpu")
    long = " ".join(text(number) for number in range(5))
    for side in ("embed_documents", "embed_queries"):
        ours, plain = getattr(model.encoder, side)([long]), getattr(limited, side)([long])
        assert np.allclose(np.linalg.norm(ours), np.linalg.norm(plain), atol=1e-5)
        assert not np.allclose(ours, plain), "rotated"
    vectors = model.encoder.embed_documents([long, "river"])
    assert np.array_equal(model.encode_documents([long, "river"]), model.coding.encode(vectors))


def test_damage_is_noticed(folder):
    for name in ("quantizer.safetensors", "1_Dense/model.safetensors"):
        copy = folder.with_name("copy")
        shutil.copytree(folder, copy)
        content = bytearray((copy / name).read_bytes())
        content[-3] ^= 1
        (copy / name).write_bytes(content)
        with pytest.raises(RepconcError, match=r"damaged|not those that were saved"):
            RepconcModel.load(copy)
        shutil.rmtree(copy)
    (folder / "quantizer.safetensors").unlink()
    with pytest.raises(RepconcError, match="missing or damaged"):
        RepconcModel.load(folder)
    (folder / "repconc.json").unlink()
    with pytest.raises(RepconcError, match="no model of ours"):
        RepconcModel.load(folder)


def test_a_trained_encoder_is_not_told_apart_by_its_place(folder):
    moved = folder.rename(folder.with_name("moved"))
    RepconcModel.load(moved)


def test_push_and_pull(folder, tmp_path, monkeypatch):
    """The hub cannot be reached from a test: its client is replaced by a folder, our side of it runs."""
    import huggingface_hub

    hub = tmp_path / "hub"

    class Api:
        def __init__(self, token=None):
            self.token = token

        def create_repo(self, name, private, exist_ok):
            (hub / name).parent.mkdir(parents=True)

        def upload_folder(self, repo_id, folder_path):
            shutil.copytree(folder_path, hub / repo_id)
            return f"https://hub/{repo_id}"

    def snapshot_download(name):
        if not (hub / name).is_dir():
            raise OSError("404 Not Found")
        return str(hub / name)

    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    model = RepconcModel.load(folder)
    assert model.push_to_hub("team/tiny") == "https://hub/team/tiny"
    pulled = RepconcModel.load("team/tiny")
    assert np.array_equal(pulled.scoring.codebooks, model.scoring.codebooks)
    with pytest.raises(RepconcError, match="neither a folder nor a model on the hub: 404"):
        RepconcModel.load("team/nothing")


def test_frozen_layers_do_not_learn(tiny_bert):
    model = DualEncoder.of(Encoder(str(tiny_bert), device="cpu"))
    everything = len(model.trainable())
    model.freeze_layers(1)
    names = list(model.trainable())
    assert 0 < len(names) < everything
    assert not any("embeddings" in name or "layer.0." in name for name in names)
    with pytest.raises(RepconcError, match="only 2 layers"):
        model.freeze_layers(2)


HALF = """
import numpy as np, sys, torch
from repconc.models.dual import DualEncoder
from repconc.models.encoder import Encoder
from repconc.models.inputs import Texts
from repconc.training.embedding import embed, embed_all

encoder = Encoder(sys.argv[1], device="cpu")
inputs, numbers = Texts(encoder, "query", ["the river king", "a quiet stone", "king of stone"]), np.arange(3)
gradients, values = [], []
for half in (False, True):
    model = DualEncoder.of(encoder)
    model.learns_in_half = half
    model.zero_grad()
    vectors, push = embed(model, "query", inputs, numbers, 2)
    push(torch.linspace(-1, 1, vectors.numel()).reshape(vectors.shape))
    gradients.append(torch.cat([p.grad.flatten() for p in model.trainable().values() if p.grad is not None]))
    values.append((vectors, embed_all(model, "query", inputs, numbers, 2)))
assert values[1][0].dtype == gradients[1].dtype == torch.float32
assert torch.equal(values[0][1], values[1][1]), "codes and dev figures are exact always"
assert not torch.equal(values[0][0], values[1][0]) and torch.allclose(values[0][0], values[1][0], atol=0.02)
assert torch.cosine_similarity(*gradients, dim=0) > 0.99
"""


def test_half_precision_gives_almost_the_same_gradients(tiny_bert):
    cap = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}  # some machines promise AMX and do not have it
    subprocess.run([sys.executable, "-c", HALF, str(tiny_bert)], check=True, env=os.environ | cap)


def test_a_static_encoder_has_no_layers_to_freeze(tiny_static):  # noqa: F811
    with pytest.raises(RepconcError, match="no layers"):
        DualEncoder.of(Encoder(str(tiny_static), device="cpu")).freeze_layers(1)


def test_a_rotation_is_no_reason_to_doubt_the_length(tiny_bert):
    model = DualEncoder.of(Encoder(str(tiny_bert), device="cpu"))
    assert model.is_normalized
    model.rotate(np.eye(32))
    assert model.is_normalized
    assert torch.allclose(model.text[1].linear.weight, torch.eye(32))
