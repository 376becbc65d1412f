"""A labelled set that can be learned, and tiny encoders to learn it with."""

from pathlib import Path

import numpy as np
import pytest

from repconc.models.dual import DualEncoder
from repconc.models.encoder import Encoder
from repconc.models.inputs import Texts
from repconc.training import recipe as recipes
from repconc.training.examples import Examples, Validation
from tests.conftest import WORDS

DOCUMENTS, QUERIES = 240, 60


@pytest.fixture(scope="session")
def tiny_static(tiny_bert, tmp_path_factory) -> Path:
    """A static encoder of 16 dimensions over the vocabulary of the tests."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding

    tokenizer = SentenceTransformer(str(tiny_bert), device="cpu").tokenizer
    weights = np.random.default_rng(0).normal(size=(len(tokenizer), 16)).astype(np.float32)
    folder = tmp_path_factory.mktemp("static")
    modules = [StaticEmbedding(tokenizer, embedding_weights=weights), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder), create_model_card=False)
    return folder


def texts() -> tuple[list[str], list[str]]:
    """Documents of twelve random words; a query is a few words of the document of its number."""
    random = np.random.default_rng(1)
    documents = [" ".join(random.choice(WORDS, 4 + number % 13)) for number in range(DOCUMENTS)]
    queries = [" ".join(random.permutation(documents[number].split())[:4]) for number in range(QUERIES)]
    return documents, queries


@pytest.fixture
def labelled(beir) -> Path:
    """The same as a BEIR folder with three splits."""
    documents, queries = texts()
    splits = {"train": range(40), "dev": range(40, 50), "test": range(50, 60)}
    return beir(
        documents=[{"_id": f"d{number}", "text": text} for number, text in enumerate(documents)],
        queries=[{"_id": f"q{number}", "text": text} for number, text in enumerate(queries)],
        qrels={split: [f"q{n}\td{n}\t1" for n in numbers] for split, numbers in splits.items()},
        name="labelled",
    )


def examples_of(encoder: Encoder) -> Examples:
    documents, queries = texts()
    dev = range(40, 50)
    return Examples(
        document_ids=[f"d{number}" for number in range(DOCUMENTS)],
        documents=Texts(encoder, "document", documents),
        queries=Texts(encoder, "query", queries[:40]),
        # Every third query has a second relevant document.
        relevant=[np.array([n, n + 100] if n % 3 == 0 else [n]) for n in range(40)],
        labelled=40,
        validation=Validation(
            query_ids=[f"q{number}" for number in dev],
            queries=Texts(encoder, "query", [queries[number] for number in dev]),
            qrels={f"q{number}": {f"d{number}": 1} for number in dev},
            relevance=1,
            documents=np.arange(DOCUMENTS),
        ),
    )


@pytest.fixture
def static(tiny_static) -> tuple[DualEncoder, Examples]:
    encoder = Encoder(str(tiny_static))
    return DualEncoder.of(encoder), examples_of(encoder)


@pytest.fixture
def bert(tiny_bert) -> tuple[DualEncoder, Examples]:
    encoder = Encoder(str(tiny_bert))
    return DualEncoder.of(encoder), examples_of(encoder)


@pytest.fixture
def low_bounds(monkeypatch) -> None:
    """So that 240 documents of 16 dimensions are many, for codes of 4 bytes with 16 codewords."""
    for name, value in {"DOCUMENTS_A_DIMENSION": 15, "DIMENSIONS_A_BYTE": 3, "CODEWORDS": 16}.items():
        monkeypatch.setattr(recipes, name, value)
