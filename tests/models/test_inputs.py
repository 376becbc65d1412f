"""Training reads the texts that `encode` reads: same tokens, same prompts, same cut."""

import numpy as np
import pytest

from repconc.config import EncoderSettings
from repconc.models.dual import DualEncoder
from repconc.models.encoder import Encoder
from repconc.models.inputs import CachedVectors, Dropout, Texts
from tests.conftest import text
from tests.training.conftest import tiny_static  # noqa: F401 (a fixture)

TEXTS = [text(number) for number in range(30)] + ["", "  spaces  around  ", "unknownword river"]


@pytest.mark.parametrize("folder", ["tiny_static", "tiny_bert"])
@pytest.mark.parametrize(
    "options",
    [{}, {"document_prompt": "the king of ", "query_prompt": "a "}, {"document_tokens": 6, "query_tokens": 4}],
    ids=["plain", "prompts", "limits"],
)
def test_vectors_are_those_of_encode(folder, options, request):
    encoder = Encoder(EncoderSettings(documents=str(request.getfixturevalue(folder)), **options), device="cpu")
    model = DualEncoder.of(encoder)
    numbers = np.random.default_rng(0).permutation(len(TEXTS))
    for side, embed in (("document", encoder.embed_documents), ("query", encoder.embed_queries)):
        inputs = Texts(encoder, side, TEXTS)
        vectors = model.embed(side, inputs.features(numbers, model.device)).detach().numpy()
        assert np.allclose(vectors, embed(TEXTS)[numbers], atol=1e-6)
    assert len(inputs) == len(TEXTS)


def test_cached_vectors_come_from_their_shard():
    vectors = np.arange(60, dtype=np.float32).reshape(20, 3)
    cached = CachedVectors([vectors[:7], vectors[7:8], vectors[8:]])
    numbers = np.array([19, 0, 7, 7, 6, 8])
    assert len(cached) == 20
    assert np.array_equal(cached.features(numbers, "cpu")["sentence_embedding"], vectors[numbers])
    thinned = cached.features(numbers, "cpu", Dropout(0.5, key=3))["sentence_embedding"].numpy()
    assert set(np.unique(thinned[vectors[numbers] > 0] / vectors[numbers][vectors[numbers] > 0])) == {0, 2}
    assert np.array_equal(thinned[2], thinned[3]), "the same text"


@pytest.mark.parametrize("folder", ["tiny_static", "tiny_bert"])
def test_dropout_leaves_out_its_share_and_depends_on_text_and_key_alone(folder, request):
    encoder = Encoder(str(request.getfixturevalue(folder)), device="cpu")
    inputs = Texts(encoder, "document", [" ".join(["river"] * 40 + ["king"] * number) for number in range(40)])

    def lengths(numbers, dropout):
        features = inputs.features(np.array(numbers), "cpu", dropout)
        if "attention_mask" in features:
            return features["attention_mask"].sum(dim=1).tolist()
        return np.diff([*features["offsets"].tolist(), len(features["input_ids"])]).tolist()

    everyone = list(range(40))
    dropped = lengths(everyone, Dropout(0.3, key=5))
    assert 1 - sum(dropped) / sum(lengths(everyone, None)) == pytest.approx(0.3, abs=0.04)
    assert lengths([7, 3], Dropout(0.3, key=5)) == [dropped[7], dropped[3]], "not on the batch"
    assert lengths(everyone, Dropout(0.3, key=6)) != dropped
    if folder == "tiny_bert":
        ids = inputs.features(np.arange(40), "cpu", Dropout(0.99, key=1))["input_ids"]
        assert set(ids[:, 0].tolist()) == {2} and (ids == 3).sum() == 40, "the marks at both ends stay"
