"""Classes of decoded lengths: what they give back, and what they cannot be made of."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from repconc.additive import AdditiveCodec
from repconc.codec_files import from_bytes, to_bytes
from repconc.errors import RepconcError
from repconc.lengths import CLASSES, Lengths, learn_lengths
from repconc.quantization.residual import train_residual


def test_lengths_are_given_back_class_by_class():
    random = np.random.default_rng(0)
    decoded = random.normal(size=(4000, 16)).astype(np.float32)
    decoded *= random.uniform(0.3, 0.9, (4000, 1)) / np.linalg.norm(decoded, axis=1, keepdims=True)
    own = np.linalg.norm(decoded, axis=1)
    lengths = learn_lengths(own)
    classes = lengths.classes_of(own)
    assert len(lengths.gains) == CLASSES
    restored = lengths.gains[classes] * own
    assert abs(restored.mean() - 1) < 0.001
    assert restored.std() < 1.2 / CLASSES * own.std() / own.mean()
    assert (np.diff(lengths.gains) < 0).all(), "the shorter, the more"


@given(arrays(np.float32, st.integers(1, 30), elements=st.floats(0, 2, width=32)))
def test_whatever_is_decoded_has_a_class_and_a_gain(decoded):
    lengths = learn_lengths(decoded)
    classes = lengths.classes_of(decoded)
    assert classes.min() >= 0 and classes.max() < len(lengths.gains)
    assert np.isfinite(lengths.gains).all() and (lengths.gains > 0).all()


def test_equal_lengths_are_one_class():
    lengths = learn_lengths(np.full(20, 0.5, np.float32))
    assert lengths.gains.tolist() == [2] and lengths.edges.tolist() == []


@pytest.mark.parametrize(
    ("edges", "gains"),
    [
        ([1, 1], [1, 1, 1]),
        ([2, 1], [1, 1, 1]),
        ([np.nan, 1], [1, 1, 1]),
        ([1], [1]),
        ([1], [1, 0]),
        ([1], [1, np.nan]),
        ([1], [1, np.inf]),
        ([np.nan], [1, 1]),
        ([[1]], [1, 1]),
    ],
)
def test_what_are_no_classes(edges, gains):
    with pytest.raises(RepconcError):
        Lengths(np.array(edges, np.float32), np.array(gains, np.float32))
    with pytest.raises(RepconcError):
        Lengths(np.ones(1), np.ones(2))


def test_files_keep_them():
    books = np.random.default_rng(0).normal(size=(3, 4, 6)).astype(np.float32)
    scoring = AdditiveCodec(books, 6)
    coding = AdditiveCodec(books, 6, None, learn_lengths(scoring.lengths_of(np.indices((4, 4, 4)).reshape(3, -1).T)))
    read, other = from_bytes(to_bytes(coding, scoring), 6, "file")
    assert read.lengths is not None and other.lengths is None
    np.testing.assert_array_equal(read.lengths.edges, coding.lengths.edges)
    np.testing.assert_array_equal(read.gains, coding.gains)
    codes = np.random.default_rng(1).integers(0, 4, (9, 3)).astype(np.uint8)
    np.testing.assert_array_equal(read.classes_of(codes), coding.classes_of(codes))
    assert (scoring.classes_of(codes) == 0).all() and scoring.gains.tolist() == [1]


def test_what_was_nothing_does_not_become_a_document():
    """Empty texts have no length to be given back."""
    random = np.random.default_rng(0)
    vectors = random.normal(size=(2000, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[::100] = 0.0
    codec = train_residual(vectors, 4, 64, rounds=2)
    codes = codec.encode(vectors)
    coding = codec.with_lengths(codes)
    given_back = codec.lengths_of(codes) * coding.gains[coding.classes_of(codes)]
    assert given_back[::100].max() < 0.7
    assert np.median(given_back) > 0.95
