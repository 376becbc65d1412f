"""The codebooks of faiss as a codec of ours."""

import faiss
import numpy as np
import pytest

from benchmarks.warmups import lsq_of_faiss, residual_of_faiss


@pytest.mark.parametrize("kind", ["levels", "lsq"])
def test_they_decode_as_faiss_does(kind):
    x = np.random.default_rng(0).normal(size=(300, 6)).astype(np.float32)
    if kind == "lsq":
        codec, code = lsq_of_faiss(x, 2)
    else:
        codec, code = residual_of_faiss(x, 2, faiss.ResidualQuantizer.Train_default)
    error = ((x - codec.decode(code(x))) ** 2).sum(axis=1).mean()
    assert error < 0.2 * (x**2).sum(axis=1).mean(), "256 * 256 codes for 300 vectors of 6 dimensions"
