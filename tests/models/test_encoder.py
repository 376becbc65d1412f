"""Encoders: any folder, pairs, prompts, lengths; and a fingerprint that knows them apart."""

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Router

from repconc.config import EncoderSettings
from repconc.errors import RepconcError
from repconc.models.encoder import Encoder
from tests.conftest import WORDS, plain_bert, text

TEXTS = [text(number) for number in range(30)]


def settings(folder, **more) -> EncoderSettings:
    return EncoderSettings(documents=str(folder), **more)


def test_documents_and_queries_are_those_of_sentence_transformers(tiny_bert):
    encoder = Encoder(str(tiny_bert))
    expected = SentenceTransformer(str(tiny_bert)).encode(TEXTS)
    assert encoder.dimension == 32
    np.testing.assert_allclose(encoder.embed_documents(TEXTS, batch_size=7), expected, atol=1e-6)
    np.testing.assert_allclose(encoder.embed_queries(TEXTS), expected, atol=1e-6)
    assert encoder.embed_documents(TEXTS).dtype == np.float32
    assert encoder.embed_documents([]).shape == (0, 32)


def test_a_plain_hugging_face_encoder_takes_a_pooling(tmp_path):
    import torch
    from transformers import AutoModel, AutoTokenizer

    folder = plain_bert(tmp_path / "plain")
    vector = Encoder(settings(folder, pooling="cls")).embed_documents(["the king"])[0]
    with torch.inference_mode():
        inputs = AutoTokenizer.from_pretrained(folder)("the king", return_tensors="pt")
        expected = AutoModel.from_pretrained(folder)(**inputs).last_hidden_state[0, 0]
    np.testing.assert_allclose(vector, expected.numpy(), atol=1e-5)
    unit = Encoder(settings(folder, pooling="mean", normalize=True)).embed_documents(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, atol=1e-5)


def test_prompts_stand_before_the_text_of_their_side(tiny_bert):
    prompted = Encoder(settings(tiny_bert, query_prompt="king ", document_prompt="queen "))
    bare = Encoder(str(tiny_bert))
    np.testing.assert_allclose(prompted.embed_queries(["the"]), bare.embed_queries(["king the"]), atol=1e-6)
    np.testing.assert_allclose(prompted.embed_documents(["the"]), bare.embed_documents(["queen the"]), atol=1e-6)


def test_each_side_has_its_own_longest_text(tiny_bert):
    short = Encoder(settings(tiny_bert, document_tokens=6, query_tokens=4))
    bare = Encoder(str(tiny_bert))
    np.testing.assert_allclose(
        short.embed_documents(["the king of the castle in the north"]),
        bare.embed_documents(["the king of the"]),
        atol=1e-6,
    )
    np.testing.assert_allclose(
        short.embed_queries(["the king of the castle"]), bare.embed_queries(["the king"]), atol=1e-6
    )


def test_a_static_encoder_obeys_the_longest_text_too(static_folder):
    short = Encoder(settings(static_folder, document_tokens=3))
    bare = Encoder(str(static_folder))
    np.testing.assert_array_equal(short.embed_documents(["the king of the"]), bare.embed_documents(["the king of"]))
    np.testing.assert_array_equal(short.embed_queries(["the king of the"]), bare.embed_queries(["the king of the"]))


def test_a_text_longer_than_the_encoder_has_places_for_is_refused(tiny_bert):
    with pytest.raises(RepconcError, match="A document of 400 tokens is longer than the 128"):
        Encoder(settings(tiny_bert, document_tokens=400))


def test_an_unknown_device_is_one_sentence(tiny_bert):
    with pytest.raises(RepconcError, match="cannot be loaded"):
        Encoder(str(tiny_bert), device="gpu")


def test_two_encoders_serve_the_two_sides(tiny_bert, static_folder):
    pair = Encoder(settings(tiny_bert, queries=str(static_folder)))
    np.testing.assert_allclose(pair.embed_queries(TEXTS), Encoder(str(static_folder)).embed_queries(TEXTS), atol=1e-6)
    np.testing.assert_allclose(pair.embed_documents(TEXTS), Encoder(str(tiny_bert)).embed_documents(TEXTS), atol=1e-6)


def test_a_router_keeps_its_two_routes(tiny_bert, static_folder, tmp_path):
    bert, static = SentenceTransformer(str(tiny_bert)), SentenceTransformer(str(static_folder))
    router = Router.for_query_document(query_modules=list(static), document_modules=list(bert))
    SentenceTransformer(modules=[router]).save(str(tmp_path / "routed"), create_model_card=False)
    routed = Encoder(settings(tmp_path / "routed", document_tokens=6))
    np.testing.assert_allclose(routed.embed_queries(TEXTS), Encoder(str(static_folder)).embed_queries(TEXTS), atol=1e-6)
    expected = Encoder(settings(tiny_bert, document_tokens=6)).embed_documents(TEXTS)
    np.testing.assert_allclose(routed.embed_documents(TEXTS), expected, atol=1e-6)


def test_sides_of_different_dimension_are_refused(tiny_bert, other_dimension):
    with pytest.raises(RepconcError, match="16 dimensions and the document encoder 32"):
        Encoder(settings(tiny_bert, queries=str(other_dimension)))


def test_the_fingerprint_knows_weights_tokenizer_and_settings_but_not_the_path(tiny_bert, tmp_path):
    import shutil

    first = Encoder(str(tiny_bert)).fingerprint()
    shutil.copytree(tiny_bert, tmp_path / "copy")
    assert Encoder(str(tmp_path / "copy")).fingerprint() == first
    assert Encoder(settings(tiny_bert, document_tokens=9)).fingerprint() != first
    model = SentenceTransformer(str(tiny_bert))
    next(model.parameters()).data[0, 0] += 1
    model.save(str(tmp_path / "altered"), create_model_card=False)
    assert Encoder(str(tmp_path / "altered")).fingerprint() != first
    shutil.copytree(tiny_bert, tmp_path / "pooled")
    pooling = tmp_path / "pooled" / "1_Pooling" / "config.json"
    pooling.write_text(pooling.read_text().replace('"mean"', '"cls"'))
    assert Encoder(str(tmp_path / "pooled")).fingerprint() != first
    vocabulary = (tmp_path / "copy" / "tokenizer.json").read_text()
    (tmp_path / "copy" / "tokenizer.json").write_text(vocabulary.replace(f'"{WORDS[5]}"', '"zebra"', 1))
    assert Encoder(str(tmp_path / "copy")).fingerprint() != first


def test_the_fingerprint_is_the_same_after_use(tiny_bert):
    encoder = Encoder(str(tiny_bert))
    before = encoder.fingerprint()
    encoder.embed_documents(TEXTS)
    assert encoder.fingerprint() == before


def test_an_encoder_of_half_precision_works_on_a_cpu(tiny_bert, tmp_path):
    import torch

    SentenceTransformer(str(tiny_bert)).to(torch.bfloat16).save(str(tmp_path / "half"), create_model_card=False)
    encoder = Encoder(str(tmp_path / "half"), device="cpu")
    assert len(encoder.fingerprint()) == 64
    np.testing.assert_allclose(encoder.embed_queries(TEXTS), Encoder(str(tiny_bert)).embed_queries(TEXTS), atol=0.05)


def test_the_pooling_is_for_plain_encoders_only(tiny_bert, tmp_path):
    pair = Encoder(settings(plain_bert(tmp_path / "plain"), pooling="cls", queries=str(tiny_bert)))
    np.testing.assert_allclose(pair.embed_queries(TEXTS), Encoder(str(tiny_bert)).embed_queries(TEXTS), atol=1e-6)


@pytest.mark.parametrize("name", ["./nowhere", "/nowhere/at/all"])
def test_an_encoder_that_is_not_there_is_one_sentence(name):
    with pytest.raises(RepconcError, match=f"The encoder '{name}' is not there"):
        Encoder(name)


def test_a_folder_that_is_no_encoder_is_one_sentence(tmp_path):
    (tmp_path / "modules.json").write_text("{")
    with pytest.raises(RepconcError, match="cannot be loaded"):
        Encoder(str(tmp_path))


def test_code_in_the_folder_of_an_encoder_is_not_run(tmp_path, monkeypatch):
    """A Hugging Face folder may name a class of its own; answering yes to everything must not run it."""
    import io
    import json
    import sys

    folder = plain_bert(tmp_path / "plain")
    configuration = json.loads((folder / "config.json").read_text())
    configuration |= {"auto_map": {"AutoModel": "evil.Evil", "AutoConfig": "evil.Config"}, "model_type": "evil"}
    (folder / "config.json").write_text(json.dumps(configuration))
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n" * 9))
    with pytest.raises(RepconcError, match="cannot be loaded"):
        Encoder(settings(folder, pooling="mean"))
    assert not (tmp_path / "ran").exists()
