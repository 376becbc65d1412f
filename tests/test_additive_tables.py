"""Codewords in a byte a dimension: what rounding costs, and tables that are the same to the bit on every path."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repconc.additive import AdditiveCodec, code_by_beam
from repconc.codec import half_norms_of
from repconc.errors import RepconcError
from repconc.kernel import ROW, kernel
from repconc.quantization.residual import train_residual
from tests.quantization.test_additive import make, vectors


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 5), st.integers(1, 256), st.integers(1, 100), st.integers(1, 19), st.integers(-140, 120))
def test_tables_have_the_same_bits_alone_in_a_batch_and_without_the_kernel(levels, codewords, dimension, count, size):
    if kernel() is None:
        pytest.skip("the native kernel was not built")
    codec, x = make(levels, codewords, dimension), vectors(count, dimension) * np.float32(2.0) ** size
    native = codec.tables(x)
    assert np.isfinite(native).all()
    np.testing.assert_array_equal(np.concatenate([codec.tables(row) for row in x]), native)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("repconc.additive.kernel", lambda: None)
        np.testing.assert_array_equal(codec.tables(x), native)


@pytest.mark.parametrize("dimension", [512, 513, 768, 1025])
def test_the_largest_sums_fit_and_have_the_same_bits(dimension):
    """All that is multiplied as large as it can be, where as many products of that size as there are would not fit."""
    books = np.ones((2, 3, dimension), np.float32)
    books[:, 1], books[0, 2, ::2] = -1, 0.3
    queries = np.stack([np.ones(dimension), -np.ones(dimension), np.linspace(-1, 1, dimension)]).astype(np.float32)
    codec = AdditiveCodec(books, dimension)
    tables = codec.tables(queries)
    np.testing.assert_allclose(tables[0, :, 0], dimension, rtol=1e-6)
    np.testing.assert_allclose(tables, np.einsum("bd,mkd->bmk", queries, codec.floats), rtol=1e-3, atol=1e-2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("repconc.additive.kernel", lambda: None)
        np.testing.assert_array_equal(codec.tables(queries), tables)


def test_a_byte_a_dimension_costs_next_to_nothing():
    """Beside what codes lose anyway: less than a thousandth of the squared error, also where it is small."""
    x = vectors(2000, 48) + 0.3 * np.random.default_rng(0).normal(size=(2000, 48)).astype(np.float32)
    books = train_residual(x, 8, 64).floats + 1e-3 * np.random.default_rng(1).normal(size=(8, 64, 48))  # of any floats
    books = books.astype(np.float32)
    codec = AdditiveCodec(books, 48)
    errors = []
    for own in (books, codec.floats):
        codes = code_by_beam(x, own, half_norms_of(own), 8)
        errors.append(((x - sum(own[m][codes[:, m]] for m in range(8))) ** 2).sum())
    assert not np.array_equal(books, codec.floats)
    assert errors[1] == pytest.approx(errors[0], rel=1e-3)


def test_memory_is_a_byte_a_dimension_and_a_scale_a_codeword():
    assert make(3, 7, 9).nbytes == 3 * 7 * (9 + 4)


@pytest.mark.parametrize("dimension", [9, 128, 384])
def test_memory_holds_no_more_than_is_counted(dimension):
    if kernel() is None:
        pytest.skip("the native kernel was not built")
    codec = make(3, 7, dimension)
    vectors = np.ones((2, dimension), np.float32)
    codec.encode(vectors)
    codec.tables(vectors)
    kept = {id(value): value.nbytes for value in vars(codec).values() if isinstance(value, np.ndarray)}
    assert sum(kept.values()) == codec.nbytes + codec.copied + codec.half_norms.nbytes
    assert ROW == kernel().LEVEL_ROW


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 4), st.integers(1, 256), st.integers(1, 60), st.integers(-120, 60), st.integers(0, 999))
def test_codewords_and_queries_are_rounded_by_half_a_unit_at_most(levels, codewords, dimension, exponent, seed):
    """So that a table entry is off by no more than both roundings can make it."""
    random = np.random.default_rng(seed)
    books = (random.standard_cauchy(size=(levels, codewords, dimension)) * 2.0**exponent).astype(np.float32)
    books[0, 0] = 0
    queries = random.standard_cauchy(size=(3, dimension)).astype(np.float32)
    codec = AdditiveCodec(books, dimension)
    of_words = np.maximum(np.abs(books).max(axis=2) / 254, np.finfo(np.float32).tiny / 2)
    assert (np.abs(codec.floats - books) <= of_words[..., None] * 1.001).all()
    of_queries = np.abs(queries).max(axis=1) / 65534
    exact = np.einsum("bd,mkd->bmk", queries.astype(np.float64), books)
    bound = np.abs(queries).sum(axis=1)[:, None, None] * of_words
    bound = bound + of_queries[:, None, None] * (np.abs(books).sum(axis=2) + dimension * of_words)
    assert (np.abs(codec.tables(queries) - exact) <= bound * 1.01 + 1e-6 * np.abs(exact)).all()
    again = AdditiveCodec(codec.floats, dimension)  # rounding what was rounded changes nothing
    np.testing.assert_array_equal(again.codebooks, codec.codebooks)
    np.testing.assert_allclose(again.scales, codec.scales, rtol=1e-6)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_tables_of_what_is_no_number_are_none(wrong):
    codec, x = make(3, 7, 9), vectors(4, 9)
    x[1, 4] = wrong
    x[2] = 0
    for native in (kernel(), None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("repconc.additive.kernel", lambda native=native: native)
            tables = codec.tables_of(x)
        assert np.isnan(tables[1]).all()
        assert not tables[2].any()
        assert np.isfinite(tables[[0, 3]]).all()


def test_vectors_of_other_dimensions_are_refused_also_where_zeros_would_hide_it():
    with pytest.raises(RepconcError, match="5 dimensions and the codec 9"):
        make(3, 7, 9).tables_of(np.ones((1, 5), np.float32))
