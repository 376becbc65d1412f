"""The codebooks of faiss as a codec of ours."""

import faiss
import numpy as np
import pytest

from benchmarks.warmups import codec_of


@pytest.mark.parametrize("kind", [faiss.ResidualQuantizer, faiss.LocalSearchQuantizer])
def test_they_decode_as_faiss_does(kind):
    x = np.random.default_rng(0).normal(size=(300, 6)).astype(np.float32)
    learned = kind(6, 3, 8)
    learned.train(x)
    codes = learned.compute_codes(x)
    np.testing.assert_allclose(
        codec_of(learned).decode(codes), learned.decode(codes), atol=0.05
    )  # of three roundings to bytes
