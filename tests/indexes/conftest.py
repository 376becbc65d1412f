"""Small random codes and documents, and the plain search over them that every index must equal."""

from pathlib import Path

import numpy as np
import pytest

from repconc.additive import AdditiveCodec
from repconc.codec import Codec, score
from repconc.indexes.ivf import Index
from repconc.indexes.writing import build
from repconc.records import Document, Hit, in_order

LANGUAGES = ("en", "de", "fr")


def codecs(blocks: int = 4, codewords: int = 16, dimension: int = 15, seed: int = 0) -> tuple[Codec, Codec]:
    """Coding and scoring codebooks, a little apart."""
    random = np.random.default_rng(seed)
    books = random.normal(size=(blocks, codewords, -(-dimension // blocks))).astype(np.float32)
    return Codec(books, dimension), Codec(books + 0.1 * random.normal(size=books.shape).astype(np.float32), dimension)


def additive_codecs(levels: int = 4, codewords: int = 16, dimension: int = 15, seed: int = 0) -> tuple[Codec, Codec]:
    """The same with whole codewords."""
    books = np.random.default_rng(seed).normal(size=(2, levels, codewords, dimension)).astype(np.float32)
    return AdditiveCodec(books[0], dimension), AdditiveCodec(books[0] + 0.1 * books[1], dimension)


def make_documents(numbers) -> list[Document]:
    return [
        Document(
            f"d{number}",
            f"text of {number}",
            f"Title {number}",
            {"year": 2000 + number % 30, "lang": LANGUAGES[number % 3], "nested": {"deep": number}},
        )
        for number in numbers
    ]


def make_codes(numbers, blocks: int = 4, codewords: int = 16) -> np.ndarray:
    """A code for each number, always the same; one in five is the twin of another."""
    rows = [np.random.default_rng(number - number % 5 // 4).integers(0, codewords, blocks) for number in numbers]
    return np.array(rows, dtype=np.uint8).reshape(-1, blocks)


def batches(numbers, size: int = 50):
    numbers = list(numbers)
    for start in range(0, len(numbers), size):
        part = numbers[start : start + size]
        yield make_documents(part), make_codes(part)


def plain_search(scoring: Codec, numbers, query: np.ndarray, k: int) -> list[Hit]:
    """The sum of table entries in order, and the one order of results."""
    numbers = list(numbers)
    scores = score(scoring.tables(query)[0], make_codes(numbers))
    return in_order(Hit(f"d{number}", float(value)) for number, value in zip(numbers, scores, strict=True))[:k]


@pytest.fixture
def index(tmp_path) -> Index:
    coding, scoring = codecs()
    return build(tmp_path / "index", batches(range(300)), coding=coding, scoring=scoring, lists=12)


@pytest.fixture
def folder(index) -> Path:
    return index.folder


@pytest.fixture
def queries() -> np.ndarray:
    return np.random.default_rng(7).normal(size=(20, 15)).astype(np.float32)
