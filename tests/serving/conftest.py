"""Two small indexes, one of given vectors and one of texts, and a server for each that all tests share."""

import json
from pathlib import Path

import numpy as np
import pytest

from repconc.codec import Codec
from repconc.indexes.manifest import Reference
from repconc.indexes.writing import build
from repconc.records import Document
from tests.conftest import text
from tests.indexes.conftest import batches, codecs
from tests.serving.running import running
from tests.training.conftest import tiny_static  # noqa: F401 (a fixture)

TEXTS = 120
LANGUAGES = ("en", "de", "fr")


def vector_index(folder: Path, numbers=range(300)) -> Path:
    """Codes of given vectors with 15 dimensions."""
    coding, scoring = codecs()
    return build(folder, batches(numbers), coding=coding, scoring=scoring, lists=12).folder


def text_documents() -> list[Document]:
    return [
        Document(f"d{n}", text(n), f"Title {n}", {"year": 2000 + n % 20, "lang": LANGUAGES[n % 3]})
        for n in range(TEXTS)
    ]


def text_index(folder: Path, encoder_folder: Path, documents: list[Document]) -> Path:
    """Texts behind a static encoder of 16 dimensions; codebooks are pieces of their own vectors."""
    from repconc.models.encoder import Encoder

    encoder = Encoder(str(encoder_folder))
    vectors = encoder.embed_documents([document.full_text for document in documents])
    chosen = np.random.default_rng(0).permutation(len(vectors))[:16]
    codec = Codec(np.ascontiguousarray(vectors[chosen].reshape(16, 4, 4).swapaxes(0, 1)), 16)
    reference = Reference(name=str(encoder_folder), fingerprint=encoder.fingerprint())
    coded = [(documents, codec.encode(vectors))]
    return build(folder, coded, coding=codec, scoring=codec, model=reference, lists=8).folder


def text_vectors(folder: Path, encoder_folder: Path, documents: list[Document]) -> Path:
    """The uncompressed vectors of the same texts, as `repconc encode` makes them."""
    from repconc.data.load import load_dataset
    from repconc.models.encoder import Encoder
    from repconc.models.encoding import encode_corpus

    source = folder / "set"
    (source / "qrels").mkdir(parents=True)
    rows = [{"_id": one.id, "title": one.title, "text": one.text, "metadata": one.metadata} for one in documents]
    (source / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (source / "queries.jsonl").write_text('{"_id": "q", "text": "river"}\n')
    (source / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td0\t1\n")
    encode_corpus(Encoder(str(encoder_folder)), load_dataset(source), folder / "vectors")
    return folder / "vectors"


@pytest.fixture(scope="session")
def vector_server(tmp_path_factory):
    """An index of vectors; tests may write to it, under ids of their own."""
    folder = tmp_path_factory.mktemp("vector-server")
    with running(vector_index(folder / "index"), folder=folder) as server:
        yield server


@pytest.fixture(scope="session")
def text_folder(tmp_path_factory, tiny_static):  # noqa: F811
    folder = tmp_path_factory.mktemp("text-server")
    text_index(folder / "texts", tiny_static, text_documents())
    text_vectors(folder, tiny_static, text_documents())
    return folder


@pytest.fixture(scope="session")
def text_server(text_folder):
    """An index of texts with its vectors, and one of vectors beside it."""
    second = vector_index(text_folder / "vector-index")
    with running(
        f"texts={text_folder / 'texts'}", f"numbers={second}", "--vectors", text_folder / "vectors", folder=text_folder
    ) as server:
        yield server


def vector_of(number: int) -> list[float]:
    return np.random.default_rng(number).normal(size=15).round(3).tolist()
