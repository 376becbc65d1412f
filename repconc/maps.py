"""What happens to a vector before it is cut into blocks: OPQ's rotation, or a map that was learned for given vectors.

    y = x W    or, with a hidden layer,    y = x W + relu(x A) B

and, where vectors are compared by cosine, x and y are scaled to length 1. Queries and documents may have a map each.

Sizes: N vectors, D dimensions, H hidden ones.
"""

from dataclasses import dataclass

import numpy as np

from repconc.errors import RepconcError

SHORT = 1e-15
"""Below it squares lose their digits."""


@dataclass(frozen=True)
class VectorMap:
    """A map of D dimensions to D dimensions, as plain arrays."""

    linear: np.ndarray  # W [D, D] float32
    inner: np.ndarray | None = None  # A [D, H]
    outer: np.ndarray | None = None  # B [H, D]
    unit: bool = False

    def __post_init__(self) -> None:
        D = len(self.linear)
        hidden = [part.shape for part in (self.inner, self.outer) if part is not None]
        H = hidden[0][1] if hidden and len(hidden[0]) == 2 else 0
        if self.linear.shape != (D, D) or hidden not in ([], [(D, H), (H, D)]):
            raise RepconcError(f"A map of vectors has matrices that do not fit together: {[(D, D), *hidden]}.")

    @property
    def dimension(self) -> int:
        return len(self.linear)

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in (self.linear, self.inner, self.outer) if part is not None)

    def __call__(self, vectors: np.ndarray) -> np.ndarray:
        """[N, D] -> [N, D]"""
        x = unit(vectors) if self.unit else vectors
        y = x @ self.linear
        if self.inner is not None and self.outer is not None:
            y += np.maximum(x @ self.inner, 0) @ self.outer
        return unit(y) if self.unit else np.asarray(y)


def unit(vectors: np.ndarray) -> np.ndarray:
    """[N, D] scaled to length 1; a vector of zeros stays as it is."""
    with np.errstate(over="ignore", invalid="ignore"):  # who reads vectors refuses what is not finite
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        extreme = ~((lengths > SHORT) & (lengths < np.inf))[:, 0]  # squares of their entries are hardly floats
        if extreme.any():
            vectors = np.array(vectors)
            largest = np.abs(vectors[extreme]).max(axis=1, keepdims=True)
            vectors[extreme] /= np.where(largest > 0, largest, 1)
            lengths[extreme] = np.linalg.norm(vectors[extreme], axis=1, keepdims=True)
        return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)
