"""The two structures of codes: how each is warmed up, and which quantizer learns it. Training asks nowhere else."""

import numpy as np
import torch

from repconc.additive import BEAM, AdditiveCodec
from repconc.codec import Codec
from repconc.quantization.additive import AdditiveQuantizer
from repconc.quantization.opq import Report, train_opq
from repconc.quantization.product import ProductQuantizer
from repconc.quantization.quantizer import Quantizer
from repconc.quantization.residual import train_residual


def warm_up(
    vectors: np.ndarray,
    codes: str,
    bytes: int,
    codewords: int,
    *,
    rotate: bool = True,
    turns: int = 50,
    seed: int = 0,
    progress: Report | None = None,
) -> Codec:
    """A codec learned from a sample of vectors [N, D] alone. codes: product or additive; rotate: of OPQ.

    turns: of OPQ, or rounds in which additive codes learn all levels together.
    """
    if codes == "additive":
        return train_residual(vectors, bytes, codewords, rounds=turns, seed=seed, progress=progress)
    return train_opq(vectors, bytes, codewords, rotate=rotate, turns=turns, seed=seed, progress=progress)


def quantizer_of(codec: Codec, unit: bool, beam: int = BEAM) -> Quantizer:
    """The rotation, if the codec has one, belongs to the text model and is not taken over. unit: for such vectors.

    Product codes go without, as in the paper: a codeword can be made longer for itself, and training does most of it.
    """
    codebooks = torch.from_numpy(codec.floats.copy())
    if isinstance(codec, AdditiveCodec):
        return AdditiveQuantizer(codebooks, codec.dimension, unit, beam)
    return ProductQuantizer(codebooks, codec.dimension)
