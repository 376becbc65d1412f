"""Suite `assign`: constrained assignment of one batch, against the plain formulation on the same threads.

M = 48, N = 2048, K = 256, D = 768, 100 iterations: the paper's largest codes and a batch of 1,024 pairs. Codebooks come
from OPQ's start, so that distances are those of a warmed-up model, not of noise.
"""

from collections.abc import Iterator

import torch

from benchmarks.figures import Figure, interleaved, peak_of
from benchmarks.rivals.plain_sinkhorn import assign_plainly
from repconc.quantization.product import ProductQuantizer
from repconc.quantization.quantizer import Constraint

RIVAL = "plain formulation in torch (broadcast distances, float64 exp, alternating normalisation)"


def run(quick: bool) -> Iterator[Figure]:
    M, N, K, D, iterations = (12, 1024, 256, 192, 100) if quick else (48, 2048, 256, 768, 100)
    documents, quantizer = _batch(M, N, K, D)

    def ours() -> torch.Tensor:
        return quantizer.assign(documents, Constraint(0.003, iterations))

    def plain() -> torch.Tensor:
        return assign_plainly(documents, quantizer.codebooks.detach(), 0.003, iterations)

    equal = float((ours() == plain()).float().mean())
    peaks = {"ours": peak_of(ours), "plain": peak_of(plain)}
    seconds = interleaved({"ours": ours, "plain": plain}, repeats=3 if quick else 5)
    yield Figure("equal assignments", equal, "share", RIVAL, ">= 0.995")
    yield Figure("seconds", seconds["ours"], "s")
    yield Figure("speed-up", seconds["plain"] / seconds["ours"], "x", RIVAL, ">= 10")
    yield Figure("peak memory", peaks["ours"] / 1e6, "MB")
    yield Figure("peak memory ratio", peaks["plain"] / peaks["ours"], "x", RIVAL, ">= 20")


def _batch(M: int, N: int, K: int, D: int) -> tuple[torch.Tensor, ProductQuantizer]:
    """Correlated documents of unit length, and codewords drawn from other such documents."""
    generator = torch.Generator().manual_seed(0)
    mixing = torch.randn(D, D, generator=generator) * torch.linspace(0.2, 1, D)
    vectors = torch.nn.functional.normalize(torch.randn(N + K, D, generator=generator) @ mixing)
    codebooks = vectors[N:].reshape(K, M, D // M).transpose(0, 1)
    return vectors[:N], ProductQuantizer(codebooks, D)
