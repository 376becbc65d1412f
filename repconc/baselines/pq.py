"""Product quantization (Jégou et al., 2011): the vector is cut into blocks, and k-means gives each its codewords."""

import numpy as np

from repconc.baselines.method import Coder, product_coder
from repconc.quantization.opq import train_opq

NAME = "PQ"


def fit(documents: np.ndarray, bytes: int, seed: int) -> Coder:
    return product_coder(train_opq(documents, bytes, rotate=False, seed=seed))
