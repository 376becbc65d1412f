"""Additive codes: the codec, its trainable twin and its warm-up, against brute force, faiss and gradients by hand."""

import itertools

import faiss
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from repconc.additive import AdditiveCodec, beam_search, code_by_beam, highest, search_products
from repconc.codec import half_norms_of, score
from repconc.errors import RepconcError
from repconc.kernel import kernel
from repconc.quantization.additive import AdditiveQuantizer
from repconc.quantization.opq import train_opq
from repconc.quantization.quantizer import Constraint
from repconc.quantization.residual import ROUNDS_BEAM, learn_together, train_residual
from repconc.quantization.structures import quantizer_of
from tests.quantization.gradients import gradients_of_a_step


def make(levels: int, codewords: int, dimension: int, seed: int = 0) -> AdditiveCodec:
    """Codebooks that shrink from level to level, as residuals do."""
    books = np.random.default_rng(seed).normal(size=(levels, codewords, dimension))
    return AdditiveCodec((books * 0.7 ** np.arange(levels)[:, None, None]).astype(np.float32), dimension)


def vectors(count: int, dimension: int, seed: int = 1) -> np.ndarray:
    """With dimensions that depend on each other."""
    random = np.random.default_rng(seed)
    return (random.normal(size=(count, 6)) @ random.normal(size=(6, dimension))).astype(np.float32)


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 6), st.integers(1, 256), st.integers(2, 40), st.integers(1, 9))
def test_the_twins_give_the_same_codes_vectors_and_scores(levels, codewords, dimension, count):
    codec, x = make(levels, codewords, dimension), vectors(count, dimension)
    quantizer = quantizer_of(codec, unit=False)
    codes = codec.encode(x)
    assert isinstance(quantizer, AdditiveQuantizer)
    np.testing.assert_array_equal(quantizer.assign(torch.from_numpy(x), None).numpy(), codes)
    decoded = codec.decode(codes)
    np.testing.assert_allclose(quantizer.decode(torch.from_numpy(codes).long()).detach().numpy(), decoded, atol=1e-5)
    tables = codec.tables(x)
    np.testing.assert_allclose(quantizer.tables(torch.from_numpy(x)).detach().numpy(), tables, atol=1e-2, rtol=1e-4)
    np.testing.assert_allclose(score(tables[0], codes), decoded @ x[0], atol=1e-2, rtol=1e-4)


def test_a_wide_beam_finds_the_best_code_of_all():
    codec, x = make(3, 5, 8), vectors(40, 8)
    every = np.array(list(itertools.product(range(5), repeat=3)), np.uint8)
    distances = ((x[:, None] - codec.decode(every)[None]) ** 2).sum(axis=2)
    np.testing.assert_array_equal(beam_search(x, codec.floats, codec.half_norms, 25), every[distances.argmin(axis=1)])


def test_a_wider_beam_codes_closer():
    x = np.random.default_rng(0).normal(size=(500, 12)).astype(np.float32)
    codec = train_residual(x, 6, 16)
    errors = [
        ((x - codec.decode(beam_search(x, codec.floats, codec.half_norms, beam))) ** 2).sum(axis=1).mean()
        for beam in (1, 2, 4, 16)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.97 * errors[0]


@pytest.mark.parametrize("beam", [1, 8])
def test_codes_are_those_of_faiss(beam):
    codec, x = make(4, 256, 16), vectors(300, 16)
    theirs = faiss.ResidualQuantizer(16, 4, 8)
    faiss.copy_array_to_vector(codec.floats.ravel(), theirs.codebooks)
    theirs.is_trained, theirs.max_beam_size = True, beam
    assert (beam_search(x, codec.floats, codec.half_norms, beam) == theirs.compute_codes(x)).all(
        axis=1
    ).mean() > 0.98  # near ties differ


@given(arrays(np.float32, st.tuples(st.integers(1, 5), st.integers(2, 80)), elements=st.integers(-9, 9)), st.data())
def test_the_highest_of_each_row_are_the_same_without_the_kernel(values, data):
    """Whole numbers, so that many are equal: of those the first counts."""
    count = data.draw(st.integers(1, values.shape[1]))
    expected = np.argsort(-values, axis=1, kind="stable")[:, :count]
    np.testing.assert_array_equal(highest(values, count), expected)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("repconc.additive.kernel", lambda: None)
        np.testing.assert_array_equal(highest(values, count), expected)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 6), st.integers(1, 256), st.integers(1, 40), st.integers(1, 9), st.integers(0, 99))
def test_a_search_by_products_finds_the_plain_result(levels, codewords, count, beam, seed):
    """Whole numbers, so that nothing is rounded and many partial codes are equally good."""
    dimension = 1 + seed % 9
    if kernel() is None:
        pytest.skip("the native kernel was not built")
    some = np.random.default_rng(seed)
    books = some.integers(-4, 5, size=(levels, codewords, dimension)).astype(np.float32)
    x = some.integers(-9, 10, size=(count, dimension)).astype(np.float32)
    half_norms = half_norms_of(books)
    expected = beam_search(x, books, half_norms, beam)
    np.testing.assert_array_equal(search_products(x, books, half_norms, beam), expected)


def test_many_vectors_are_coded_as_closely_as_few():
    x = vectors(3000, 48)
    codec = train_residual(x, 6, 64)
    many, few = codec.encode(x), np.concatenate([codec.encode(part) for part in np.array_split(x, 100)])
    assert (many == few).all(axis=1).mean() > 0.98  # near ties differ
    errors = [((x - codec.decode(codes)) ** 2).sum() for codes in (many, few)]
    assert errors[0] == pytest.approx(errors[1], rel=1e-4)


def test_wrong_partial_codes_are_refused():
    if kernel() is None:
        pytest.skip("the native kernel was not built")
    products, between = np.zeros((2, 4), np.float32), np.zeros((1, 4, 4), np.float32)
    codes, gained = np.zeros((2, 3, 1), np.uint8), np.zeros((2, 3), np.float32)
    lengthen = kernel().lengthen
    assert lengthen(products, between, codes, gained, 12)[0].shape == (2, 12, 2)
    for wrong in (
        (products[:1], between, codes, gained, 1),
        (products, between, codes, gained[:, :1].copy(), 1),
        (products, between[:0], codes, gained, 1),
        (products, between, codes + np.uint8(4), gained, 1),
        (products, between, codes, gained, 13),
        (products, between, codes, gained, 0),
    ):
        with pytest.raises(ValueError, match=r"\.$"):
            lengthen(*wrong)


def test_every_level_uses_its_codewords_equally():
    x = torch.from_numpy(vectors(1024, 12))
    quantizer = quantizer_of(make(4, 32, 12), unit=False)
    for codes in quantizer.assign(x, Constraint(epsilon=0.003)).T:
        counts = torch.bincount(codes, minlength=32)
        assert counts.min() >= 16
        assert counts.max() <= 64
    nearest = quantizer.assign(x, None)
    assert max(int(torch.bincount(codes, minlength=32).max()) for codes in nearest.T) > 64


def test_the_gradients_are_those_of_the_paper():
    """Straight through to the documents; to a codeword the sum over the documents that it is a part of."""
    quantizer = quantizer_of(make(4, 5, 8), unit=False)
    codes, gradient = gradients_of_a_step(quantizer, torch.randn(12, 8))
    expected = torch.zeros_like(quantizer.codebooks)
    for document, code in enumerate(codes):
        expected[torch.arange(4), code] += gradient[document]
    torch.testing.assert_close(quantizer.codebooks.grad, expected)


def test_lengths_that_are_given_back_are_in_the_gradient():
    """Of d / |d|, with respect to d: what is across d, divided by its length."""
    quantizer = quantizer_of(make(3, 5, 8), unit=True)
    documents = torch.nn.functional.normalize(torch.randn(12, 8), dim=1).requires_grad_()
    codes = quantizer.assign(documents, None)
    quantized, wanted = quantizer.straight_through(documents, codes), torch.randn(12, 8)
    torch.testing.assert_close(quantized.norm(dim=1), torch.ones(12))
    (quantized * wanted).sum().backward()
    torch.testing.assert_close(documents.grad, wanted)
    decoded = quantizer.decode(codes).detach()
    across = wanted - (wanted * quantized).sum(dim=1, keepdim=True).detach() * quantized.detach()
    expected = torch.zeros_like(quantizer.codebooks)
    for document, code in enumerate(codes):
        expected[torch.arange(3), code] += across[document] / decoded[document].norm()
    torch.testing.assert_close(quantizer.codebooks.grad, expected)


def test_the_warm_up_uses_all_codewords_where_vectors_look_alike_in_all_directions():
    """As residuals do after a few levels; k-means from random vectors leaves most of its codewords with one vector."""
    x = np.random.default_rng(0).normal(size=(8000, 64)).astype(np.float32)
    unseen = np.random.default_rng(1).normal(size=(2000, 64)).astype(np.float32)
    ours, theirs = train_residual(x, 4, 256), faiss.ResidualQuantizer(64, 4, 8)
    theirs.max_beam_size = 8
    theirs.train(x)
    codes = beam_search(unseen, ours.floats, ours.half_norms, 8)
    of_ours = ((unseen - ours.decode(codes)) ** 2).sum()
    assert of_ours < 1.02 * ((unseen - theirs.decode(theirs.compute_codes(unseen))) ** 2).sum()
    assert max(np.bincount(level, minlength=256).max() for level in codes.T) < 6 * 2000 / 256
    assert np.mean([len(set(level.tolist())) for level in codes.T]) > 0.95 * 256


def test_levels_that_learn_together_code_closer_also_what_they_have_not_seen():
    """Where directions depend on each other, as they do in embeddings."""
    x = vectors(8000, 24) + np.random.default_rng(0).normal(size=(8000, 24)).astype(np.float32)
    seen, unseen = x[:6000], x[6000:]
    alone, together = (train_residual(seen, 4, 64, rounds=rounds) for rounds in (0, 10))
    for some, share in ((seen, 0.97), (unseen, 1.0)):
        errors = [((some - codec.decode(codec.encode(some))) ** 2).sum() for codec in (alone, together)]
        assert errors[1] < share * errors[0]


def test_many_rounds_do_no_harm_where_codewords_are_few():
    """Levels that were shaken as a whole would wander apart, and fit no search from level to level."""
    x = np.random.default_rng(0).normal(size=(1500, 16)).astype(np.float32)
    few, many = (train_residual(x, 16, 4, rounds=rounds) for rounds in (0, 50))
    errors = [((x - codec.decode(codec.encode(x))) ** 2).sum() for codec in (few, many)]
    assert errors[1] < 0.95 * errors[0]
    assert np.abs(many.floats.mean(axis=1)[1:]).max() < 0.5


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_sample_with_a_broken_vector_is_refused(value):
    x = vectors(100, 6)
    x[3, 2] = value
    with pytest.raises(RepconcError, match="NaN or an infinite value"):
        train_residual(x, 2, 8)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 4), st.integers(1, 16), st.integers(1, 8), st.integers(0, 1000))
def test_a_round_never_moves_codewords_away_from_the_vectors_that_use_them(levels, codewords, dimension, seed):
    x = torch.from_numpy(vectors(50, dimension, seed))
    codec = make(levels, codewords, dimension, seed)
    codebooks = torch.from_numpy(codec.floats)
    codes = code_by_beam(x.numpy(), codec.floats, codec.half_norms, ROUNDS_BEAM)

    def error() -> float:
        decoded = sum(codebooks[m][codes[:, m].astype(np.int64)] for m in range(levels))
        return float(((x - decoded) ** 2).sum())

    before = error()
    learn_together(x, codebooks)
    assert error() <= before * (1 + 1e-5) + 1e-5


def test_the_progress_of_the_warm_up_reaches_its_end():
    seen = []
    train_residual(vectors(100, 6), 3, 8, rounds=2, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(done, 5) for done in range(1, 6)]


def test_the_warm_up_is_closer_than_opq_at_the_same_bytes():
    x = vectors(2000, 24)
    additive, product = train_residual(x, 4, 32), train_opq(x, 4, 32, turns=20)
    of_product = ((product.transform(x) - product.decode(product.encode(x))) ** 2).sum()
    assert ((x - additive.decode(additive.encode(x))) ** 2).sum() < 0.7 * of_product


def test_the_same_seed_gives_the_same_codebooks():
    x = vectors(600, 10)
    one, again, other = (train_residual(x, 3, 16, seed=seed).floats for seed in (0, 0, 1))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize(
    ("books", "dimension", "words"),
    [
        (np.full((2, 4, 6), 1e60), 6, "NaN or infinite"),
        (np.full((2, 4, 6), np.finfo(np.float32).max), 6, "from 0 to 2.7e"),
        (np.ones((0, 4, 6), np.float32), 6, "0 levels"),
        (np.full((2, 4, 6), np.nan, np.float32), 6, "NaN or infinite"),
        (np.ones((2, 4, 6), np.float32), 5, "do not fit"),
        (np.ones((2, 300, 6), np.float32), 6, "1 to 256"),
    ],
    ids=["infinite", "large", "no levels", "nan", "dimension", "codewords"],
)
def test_what_is_no_codec(books, dimension, words):
    with pytest.raises(RepconcError, match=words):
        AdditiveCodec(books, dimension)


def test_too_few_vectors_for_a_warm_up():
    with pytest.raises(RepconcError, match="10 vectors for 16 codewords"):
        train_residual(vectors(10, 4), 2, 16)
