"""Training reads the texts that `encode` reads: same tokens, same prompts, same cut."""

import numpy as np
import pytest

from repconc.config import EncoderSettings
from repconc.models.dual import DualEncoder
from repconc.models.encoder import Encoder
from repconc.models.inputs import CachedVectors, Texts
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
