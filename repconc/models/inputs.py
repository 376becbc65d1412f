"""What an encoder reads in training, asked for by number: texts that were tokenised once, or cached vectors.

Tokens go through the encoder's own `preprocess`, so that training sees what `encode` sees: the same prompt, the same
cut, the same marks.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol

import numpy as np
import torch

from repconc.models.encoder import Encoder, Side
from repconc.packages import Progress

TEXTS_AT_A_TIME = 1024


class Inputs(Protocol):
    """Features by number."""

    def __len__(self) -> int: ...

    @property
    def lengths(self) -> np.ndarray:
        """[N]: how much work each is, so that a chunk can hold texts of like length."""
        ...

    def features(self, numbers: np.ndarray, device: torch.device) -> dict[str, Any]: ...


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

    def features(self, numbers: np.ndarray, device: torch.device) -> dict[str, Any]:
        lengths = torch.from_numpy(self.lengths[numbers])
        flat = torch.from_numpy(self._rows(numbers).astype(np.int64))
        if self._bags:
            offsets = torch.cumsum(lengths, 0) - lengths
            return {"input_ids": flat.to(device), "offsets": offsets.to(device)}
        mask = torch.arange(int(lengths.max()))[None, :] < lengths[:, None]  # [n, longest]
        ids = torch.zeros(mask.shape, dtype=torch.long).masked_scatter_(mask, flat)
        return {"input_ids": ids.to(device), "attention_mask": mask.long().to(device), **self._constants}

    def _rows(self, numbers: np.ndarray) -> np.ndarray:
        """The tokens of some texts, one after the other, without a Python loop."""
        lengths, starts = self.lengths[numbers], self._starts[numbers]
        ends = np.cumsum(lengths)
        places = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths - starts, lengths)
        return np.asarray(self._tokens[places])


class CachedVectors:
    """Vectors of a frozen trunk, which heads are trained on; blocks [n, D] may be memory maps."""

    def __init__(self, blocks: Sequence[np.ndarray]) -> None:
        self._blocks = blocks
        self._ends = np.cumsum([len(block) for block in blocks])
        self.lengths = np.ones(len(self), dtype=np.int64)

    def __len__(self) -> int:
        return int(self._ends[-1])

    def features(self, numbers: np.ndarray, device: torch.device) -> dict[str, Any]:
        rows = np.empty((len(numbers), self._blocks[0].shape[1]), np.float32)
        homes = np.searchsorted(self._ends, numbers, side="right")
        for home in np.unique(homes):
            here = homes == home
            block = self._blocks[home]
            rows[here] = block[numbers[here] - (self._ends[home] - len(block))]
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


def _small(ids: np.ndarray) -> np.ndarray:
    return ids.astype(np.uint16 if not len(ids) or ids.max() < 1 << 16 else np.int32)
