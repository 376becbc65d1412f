"""Length by place: what a code has lost of a vector's length is given back by where the code lies.

A document that is hard to code is decoded short, and then loses against others for its own questions. Vectors of
length 1 ought to be decoded with length 1; but the length of a sum of whole codewords is no sum of table entries. The
order of documents within a list is free, though. So a list keeps documents of about the same decoded length side by
side, in classes, and what a scan finds in a class is multiplied by one number, its gain:

    score(q, j)  =  gain[class of j] * (t[0, j_0] + ... + t[M-1, j_(M-1)]).

No code gets longer. All that it costs is to know where each class begins in each list.

Sizes: N documents, C classes.
"""

from dataclasses import dataclass

import numpy as np

from repconc.errors import RepconcError

CLASSES = 16
TURNS = 20
LONGER = 3.0
"""Nothing becomes longer by more than this, divided by the mean decoded length."""


@dataclass(frozen=True)
class Lengths:
    """Classes of decoded lengths."""

    edges: np.ndarray  # [C - 1] float32, rising: the lengths between two classes
    gains: np.ndarray  # [C] float32

    def __post_init__(self) -> None:
        shapes = self.edges.ndim == 1 and self.gains.shape == (len(self.edges) + 1,) and len(self.gains) <= 256
        if not shapes or not self.edges.dtype == self.gains.dtype == np.float32:
            raise RepconcError("Classes of lengths need edges and one gain more than those, in float32.")
        if not np.isfinite(self.edges).all() or not (np.diff(self.edges) > 0).all():
            raise RepconcError("The edges between classes of lengths must rise.")
        if not (np.isfinite(self.gains) & (self.gains >= np.finfo(np.float32).tiny)).all():
            raise RepconcError("The gains of classes of lengths must be positive numbers.")
        for name in ("edges", "gains"):  # as the kernel reads them and files hold them
            object.__setattr__(self, name, np.require(getattr(self, name), requirements=["C", "A"]))

    def classes_of(self, lengths: np.ndarray) -> np.ndarray:
        """[N] -> [N]"""
        return np.searchsorted(self.edges, lengths, side="right")


def learn_lengths(lengths: np.ndarray, classes: int = CLASSES) -> Lengths:
    """Classes from the decoded lengths [N] of vectors whose own length is 1: k-means in one dimension."""
    means = np.unique(np.quantile(lengths, (np.arange(classes) + 0.5) / classes))
    for _ in range(TURNS):
        owners = np.searchsorted(_between(means), lengths, side="right")
        counts = np.bincount(owners, minlength=len(means))
        means = (np.bincount(owners, lengths, minlength=len(means)) / np.maximum(counts, 1))[counts > 0]
    shortest = max(float(lengths.mean()) / LONGER, 1e-6)  # what decodes to almost nothing was nothing: an empty text
    means = np.maximum(means, shortest).astype(np.float32)
    means = means[np.append(True, np.diff(means) > 1e-4 * means[1:])]  # others are the same
    return Lengths(_between(means), 1 / means)


def _between(means: np.ndarray) -> np.ndarray:
    """[C] -> [C - 1]"""
    return np.asarray((means[1:] + means[:-1]) / 2)
