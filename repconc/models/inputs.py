"""What an encoder reads in training, asked for by number: texts that were tokenised once, or cached vectors.

Tokens go through the encoder's own `preprocess`, so that training sees what `encode` sees: the same prompt, the same
cut, the same marks.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch

from repconc.models.encoder import Encoder, Side
from repconc.packages import Progress

TEXTS_AT_A_TIME = 1024


class Dropout(NamedTuple):
    """Tokens that are left out of texts, or coordinates of vectors: a small set is learned by heart less easily.

    Whether one stays is a hash of the key, the text's number and its place in the text, and of nothing else: the same
    in every chunk, on every rank and in a run that goes on after a kill.
    """

    share: float
    key: int

    def keeps(self, numbers: np.ndarray, places: np.ndarray) -> np.ndarray:
        """bool for each, given the number of its text and its place there; the two are broadcast."""
        with np.errstate(over="ignore"):
            key = np.uint64(self.key) * np.uint64(0x9E3779B97F4A7C15)
            texts = _mix(key + numbers.astype(np.uint64) * np.uint64(0xD1342543DE82EF95))
            tokens = _mix(texts + places.astype(np.uint64))
        return np.asarray(tokens >= np.uint64(self.share * 2.0**64))


class Inputs(Protocol):
    """Features by number."""

    def __len__(self) -> int: ...

    @property
    def lengths(self) -> np.ndarray:
        """[N]: how much work each is, so that a chunk can hold texts of like length."""
        ...

    def features(self, numbers: np.ndarray, device: torch.device, dropout: Dropout | None = None) -> dict[str, Any]: ...


class Texts:
    """Tokens of all texts in one array: 2 bytes a token for vocabularies below 65,536."""

    def __init__(
        self, encoder: Encoder, side: Side, texts: Iterable[str], total: int = 0, progress: Progress | None = None
    ) -> None:
        tokens, lengths = [], []
        self._constants: dict[str, Any] = {"modality": "text"}
        self._bags = False
        for group in _groups(texts):
            features = encoder.tokenize(side, group)
            self._bags = "offsets" in features
            for ids in _unpad(features):
                tokens.append(_small(ids))
                lengths.append(len(ids))
            if "prompt_length" in features:
                self._constants["prompt_length"] = features["prompt_length"]
            if progress:
                progress(len(lengths), total)
        self._tokens = np.concatenate(tokens) if tokens else np.empty(0, np.uint16)
        self.lengths = np.array(lengths, dtype=np.int64)
        self._starts = np.concatenate([[0], np.cumsum(self.lengths)])

    def __len__(self) -> int:
        return len(self.lengths)

    def features(self, numbers: np.ndarray, device: torch.device, dropout: Dropout | None = None) -> dict[str, Any]:
        rows, counts = self._rows(numbers, dropout)
        lengths, flat = torch.from_numpy(counts), torch.from_numpy(rows.astype(np.int64))
        if self._bags:
            offsets = torch.cumsum(lengths, 0) - lengths
            return {"input_ids": flat.to(device), "offsets": offsets.to(device)}
        mask = torch.arange(int(lengths.max()))[None, :] < lengths[:, None]  # [n, longest]
        ids = torch.zeros(mask.shape, dtype=torch.long).masked_scatter_(mask, flat)
        return {"input_ids": ids.to(device), "attention_mask": mask.long().to(device), **self._constants}

    def _rows(self, numbers: np.ndarray, dropout: Dropout | None) -> tuple[np.ndarray, np.ndarray]:
        """The tokens of some texts, one after the other, and how many each has; without a Python loop."""
        lengths = self.lengths[numbers]
        ends = np.cumsum(lengths)
        places = np.arange(lengths.sum()) - np.repeat(ends - lengths, lengths)  # of each token in its text
        tokens = self._tokens[np.repeat(self._starts[numbers], lengths) + places]
        if dropout is None:
            return tokens, lengths
        keep = dropout.keeps(np.repeat(numbers, lengths), places)
        if not self._bags:  # a transformer's marks at both ends stay
            keep |= (places == 0) | (places == np.repeat(lengths, lengths) - 1)
        owners = np.repeat(np.arange(len(numbers)), lengths)
        return tokens[keep], np.bincount(owners[keep], minlength=len(numbers))


class CachedVectors:
    """Vectors of a frozen trunk, which heads are trained on; blocks [n, D] may be memory maps."""

    def __init__(self, blocks: Sequence[np.ndarray]) -> None:
        self._blocks = blocks
        self._ends = np.cumsum([len(block) for block in blocks])
        self.lengths = np.ones(len(self), dtype=np.int64)

    def __len__(self) -> int:
        return int(self._ends[-1])

    def features(self, numbers: np.ndarray, device: torch.device, dropout: Dropout | None = None) -> dict[str, Any]:
        """Vectors have no tokens to leave out: it is coordinates that become zero."""
        rows = np.empty((len(numbers), self._blocks[0].shape[1]), np.float32)
        homes = np.searchsorted(self._ends, numbers, side="right")
        for home in np.unique(homes):
            here = homes == home
            block = self._blocks[home]
            rows[here] = block[numbers[here] - (self._ends[home] - len(block))]
        if dropout is not None:
            rows *= dropout.keeps(numbers[:, None], np.arange(rows.shape[1])[None]) / np.float32(1 - dropout.share)
        return {"sentence_embedding": torch.from_numpy(rows).to(device)}


def _groups(texts: Iterable[str]) -> Iterator[list[str]]:
    iterator = iter(texts)
    while group := list(islice(iterator, TEXTS_AT_A_TIME)):
        yield group


def _unpad(features: dict[str, Any]) -> Iterator[np.ndarray]:
    ids = features["input_ids"].numpy()
    if "offsets" in features:
        yield from np.split(ids, features["offsets"].numpy()[1:])
    else:
        for row, mask in zip(ids, features["attention_mask"].numpy().astype(bool), strict=True):
            yield row[mask]


def _mix(values: np.ndarray) -> np.ndarray:
    """The finalizer of SplitMix64 (Steele et al., 2014): every bit of the input moves every bit of the output."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(values ^ (values >> np.uint64(31)))


def _small(ids: np.ndarray) -> np.ndarray:
    return ids.astype(np.uint16 if not len(ids) or ids.max() < 1 << 16 else np.int32)
