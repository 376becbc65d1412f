"""The trainable quantizer and its numpy twin, and the paper's gradient policy against gradients derived by hand."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from repconc.codec import Codec, score
from repconc.errors import RepconcError
from repconc.maps import VectorMap
from repconc.quantization.product import ProductQuantizer
from repconc.quantization.quantizer import Constraint, squared_distances
from tests.quantization.gradients import gradients_of_a_step


def make(
    documents: int, dimension: int, blocks: int, codewords: int, seed: int = 0
) -> tuple[ProductQuantizer, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    codebooks = torch.randn(blocks, codewords, -(-dimension // blocks), generator=generator)
    return ProductQuantizer(codebooks, dimension), torch.randn(documents, dimension, generator=generator)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 20), st.integers(1, 30), st.data())
def test_the_twins_give_the_same_codes_vectors_and_scores(documents, dimension, data):
    blocks = data.draw(
        st.sampled_from([m for m in range(1, dimension + 1) if dimension > (m - 1) * -(-dimension // m)])
    )
    codewords = data.draw(st.integers(1, 256))
    quantizer, x = make(documents, dimension, blocks, codewords, seed=dimension)
    codec = quantizer.to_codec()
    codes = quantizer.assign(x, None)
    differing = codec.encode(x.numpy()) != codes.numpy()
    distances = squared_distances(quantizer.split(x).transpose(0, 1), quantizer.codebooks.detach()).transpose(0, 1)
    nearest = distances.topk(min(2, codewords), dim=-1, largest=False).values  # [N, M, 2]
    assert not differing[(nearest[..., -1] - nearest[..., 0]).numpy() > 1e-5].any(), "only a tie may go either way"
    decoded = quantizer.decode(codes).detach().numpy()
    np.testing.assert_array_equal(codec.decode(codes.numpy())[:, :dimension], decoded)
    query = torch.randn(dimension)
    scores = score(codec.tables(query.numpy())[0], codes.numpy().astype(np.uint8))
    padded = codec.transform(query.numpy()).reshape(-1)
    np.testing.assert_allclose(scores, codec.decode(codes.numpy()) @ padded, atol=1e-4)


def test_codes_are_those_of_faiss():
    import faiss

    quantizer, x = make(500, 32, 8, 256)
    reference = faiss.ProductQuantizer(32, 8, 8)
    centroids = np.ascontiguousarray(quantizer.codebooks.detach().numpy())
    faiss.copy_array_to_vector(centroids.ravel(), reference.centroids)
    np.testing.assert_array_equal(quantizer.to_codec().encode(x.numpy()), reference.compute_codes(x.numpy()))


def test_a_rotation_of_the_codec_is_applied_to_documents_and_queries():
    generator = np.random.default_rng(0)
    rotation = np.linalg.qr(generator.normal(size=(6, 6)))[0].astype(np.float32)
    codebooks = generator.normal(size=(3, 9, 2)).astype(np.float32)
    x = generator.normal(size=(20, 6)).astype(np.float32)
    codec, bare = Codec(codebooks, 6, VectorMap(rotation)), Codec(codebooks, 6)
    np.testing.assert_array_equal(codec.encode(x), bare.encode(x @ rotation))
    np.testing.assert_allclose(codec.tables(x), bare.tables(x @ rotation), atol=1e-6)


def test_padding_is_counted():
    codec = make(1, 30, 8, 4)[0].to_codec()
    assert (codec.blocks, codec.padding) == (8, 2)


def test_distances_are_the_plain_ones():
    blocks, codebooks = torch.randn(3, 10, 5), torch.randn(3, 7, 5)
    expected = ((blocks[:, :, None] - codebooks[:, None]) ** 2).sum(dim=-1)
    torch.testing.assert_close(squared_distances(blocks, codebooks), expected)


def test_the_value_is_the_decoded_one_to_the_bit():
    quantizer, x = make(300, 32, 8, 16)
    x *= 1e3
    codes = quantizer.assign(x, None)
    assert torch.equal(quantizer.straight_through(x, codes), quantizer.decode(codes))


def test_the_gradients_are_those_of_the_paper():
    """dL/dd = dLr/d(d^) + lambda dLm/dd; dL/dc = the sum of dL/d(d^) over the documents that use c (eq. 9, 10)."""
    quantizer, documents = make(12, 8, 4, 5)
    codes, gradient = gradients_of_a_step(quantizer, documents)
    expected = torch.zeros_like(quantizer.codebooks)
    whole = gradient.reshape(12, 4, 2)
    for document in range(12):
        for block in range(4):
            expected[block, codes[document, block]] += whole[document, block]
    torch.testing.assert_close(quantizer.codebooks.grad, expected)


def test_the_constraint_sees_the_whole_batch_and_balances_its_codes():
    quantizer, x = make(512, 16, 4, 16)
    x += 1.0  # off the codebooks' centre: some codewords are nearest to almost nothing
    free = quantizer.assign(x, None)
    constrained = quantizer.assign(x, Constraint())
    for block in range(4):
        spread = [torch.bincount(codes[:, block], minlength=16).float().std() for codes in (free, constrained)]
        assert spread[1] < 0.3 * spread[0]


@pytest.mark.parametrize(
    ("codebooks", "dimension", "sentence"),
    [
        (np.zeros((2, 257, 2), np.float32), 4, "257 codewords"),
        (np.zeros((2, 4, 2), np.float32), 5, "2 blocks of 2 dimensions do not fit vectors of 5"),
        (np.zeros((4, 4, 2), np.float32), 4, "do not fit vectors of 4"),
    ],
)
def test_codebooks_that_do_not_fit_are_refused(codebooks, dimension, sentence):
    with pytest.raises(RepconcError, match=sentence):
        Codec(codebooks, dimension)


def test_vectors_of_another_dimension_are_refused():
    with pytest.raises(RepconcError, match="7 dimensions and the codec 8"):
        make(1, 8, 4, 5)[0].to_codec().encode(np.zeros((1, 7)))
