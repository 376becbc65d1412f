"""Codecs in files: what is read is what was written, of either structure, and what is none is refused."""

from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load, save

from repconc.additive import BEAM, AdditiveCodec
from repconc.codec import Codec
from repconc.codec_files import from_bytes, to_bytes
from repconc.errors import RepconcError
from repconc.indexes.lists import nearest
from repconc.lengths import Lengths
from repconc.maps import VectorMap
from tests.quantization.test_additive import make


def test_files_keep_what_they_are():
    turn = VectorMap(np.eye(6, dtype=np.float32), unit=True)
    additive = AdditiveCodec(make(3, 4, 6).floats, 6, turn, beam=5)
    assert from_bytes(to_bytes(additive, additive), 6, "file")[0].beam == 5
    for codec in from_bytes(to_bytes(additive, additive), 6, "file"):
        assert isinstance(codec, AdditiveCodec)
        np.testing.assert_array_equal(codec.codebooks, additive.codebooks)
        np.testing.assert_array_equal(codec.scales, additive.scales)
    turned = AdditiveCodec(np.asfortranarray(additive.floats), 6)  # as solvers give them; files hold rows
    np.testing.assert_array_equal(from_bytes(to_bytes(turned, turned), 6, "file")[0].floats, additive.floats)
    np.testing.assert_array_equal(turned.tables(np.eye(6)), additive.tables_of(np.eye(6, dtype=np.float32)))
    views = replace(additive, codebooks=additive.codebooks[:, :2], scales=additive.scales[:, :2])
    views = replace(views, lengths=Lengths(np.arange(4, dtype=np.float32)[::2], np.arange(1, 7, dtype=np.float32)[::2]))
    back, plain = from_bytes(to_bytes(views, views), 6, "file")[0], additive.tables(np.eye(6))
    for codec in (views, back):
        np.testing.assert_array_equal(codec.tables(np.eye(6)), plain[..., :2])
        np.testing.assert_array_equal(codec.lengths.edges, [0, 2])
        np.testing.assert_array_equal(codec.gains, [1, 3, 5])
    product = Codec(np.ones((3, 4, 2), np.float32), 6)
    assert not any(isinstance(codec, AdditiveCodec) for codec in from_bytes(to_bytes(product, product), 6, "file"))


@pytest.mark.parametrize(("levels", "dimension"), [(1, 6), (2, 1), (1, 1)])
def test_codecs_of_one_level_or_one_dimension_come_back_with_the_same_scores(levels, dimension):
    codec, random = make(levels, 4, dimension), np.random.default_rng(0)
    back = from_bytes(to_bytes(codec, codec), dimension, "file")[1]
    codes, queries = random.integers(0, 4, (10, levels)).astype(np.uint8), random.normal(size=(3, dimension))
    np.testing.assert_array_equal(back.decode(codes), codec.decode(codes))
    np.testing.assert_array_equal(*(one.tables_of(queries.astype(np.float32)) for one in (back, codec)))


def test_lists_of_one_level_are_filled():
    random = np.random.default_rng(0)
    codec, centroids = make(1, 16, 6), random.normal(size=(5, 6)).astype(np.float32)
    codes = random.integers(0, 16, (5000, 1)).astype(np.uint8)
    owners, _ = nearest(codes, codec, centroids)
    distances = ((codec.decode(codes)[:, None] - centroids) ** 2).sum(axis=2)
    np.testing.assert_array_equal(owners, distances.argmin(axis=1))


def test_files_without_a_beam_have_the_usual_one_and_what_is_no_beam_is_refused():
    additive = make(3, 4, 6)
    content = load(to_bytes(additive, additive))
    without = {name: array for name, array in content.items() if name != "coding.beam"}
    assert from_bytes(save(without), 6, "file")[0].beam == BEAM
    for wrong in ([0], [257], [8, 8], []):
        with pytest.raises(RepconcError, match=r"^file .* its beam is none"):
            from_bytes(save(content | {"coding.beam": np.array(wrong, np.uint16)}), 6, "file")
    for wrong in (np.array([np.inf], np.float32), np.array([8]), np.array([True])):
        with pytest.raises(RepconcError, match=r"^file .* its beam is none"):
            from_bytes(save(content | {"coding.beam": wrong}), 6, "file")
    with pytest.raises(RepconcError, match="give 1 to 256"):
        AdditiveCodec(additive.floats, 6, beam=257)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"coding": np.ones((3, 4, 6), np.float16)}, "another version"),
        ({"coding": np.ones((3, 4, 6), np.float32)}, "3 dimensions of float32"),
        ({"coding": np.ones((3, 24), np.int8)}, "2 dimensions of int8"),
        ({"scoring.scales": np.ones((3, 5), np.float32)}, "a scale for each codeword"),
        ({"scoring.scales": np.full((3, 4), np.nan, np.float32)}, "a scale for each codeword"),
        ({"scoring.scales": np.full((3, 4), -1, np.float32)}, "a scale for each codeword"),
        ({"scoring.scales": np.ones((3, 4))}, "a scale for each codeword"),
        ({"scoring.scales": np.full((3, 4), 3e38, np.float32)}, "a scale for each codeword"),
        ({"scoring": np.ones((3, 4, 5), np.int8)}, "do not fit"),
        ({"scoring": np.ones((0, 4, 6), np.int8), "scoring.scales": np.ones((0, 4), np.float32)}, "0 levels"),
    ],
)
def test_codebooks_and_scales_that_do_not_fit_together_are_refused(changed, words):
    content = load(to_bytes(make(3, 4, 6), make(3, 4, 6)))
    with pytest.raises(RepconcError, match=rf"^file .*{words}"):
        from_bytes(save(content | changed), 6, "file")
