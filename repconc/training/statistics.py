"""How evenly codewords are used, and how often two documents cannot be told apart (paper, section 3.3).

Uniform use maximises the entropy of the codes; the probability that two random documents get the same code is the
paper's P(d^s = d^t).
"""

import numpy as np


def frequencies(codes: np.ndarray, codewords: int) -> np.ndarray:
    """[N, M] -> [M, K]: the share of the documents that use each codeword, block by block."""
    counts = np.stack([np.bincount(block, minlength=codewords) for block in codes.T])
    return np.asarray(counts / len(codes))


def use_of(codes: np.ndarray, codewords: int) -> dict[str, float]:
    """Entropy (1 = uniform) averaged over blocks, the most used codeword's share times K, and the share of unused."""
    shares = frequencies(codes, codewords)
    logarithms = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    most = np.log(min(codewords, len(codes))) or 1.0
    return {
        "entropy": float(-(shares * logarithms).sum(axis=1).mean() / most),
        "largest": float(shares.max() * codewords),
        "unused": float((shares == 0).mean()),
    }


def twins_of(codes: np.ndarray) -> dict[str, float]:
    """The probability that two random documents have the same code, and the share of documents with a twin."""
    _, counts = np.unique(codes, axis=0, return_counts=True)
    N = len(codes)
    counts = counts.astype(np.float64)
    return {
        "collision": float((counts * (counts - 1)).sum() / max(N * (N - 1), 1)),
        "twins": float(counts[counts > 1].sum() / N),
    }
