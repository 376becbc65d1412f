"""Tiny real things: a BERT of two layers, a static encoder, a small BEIR folder. No network, no mocks."""

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

# Before any library reads them: no test touches the user's folders or a hub, and threads that wait for each other do
# not make tiny problems slow on a busy machine.
_HOME = tempfile.mkdtemp(prefix="repconc-tests-")
os.environ |= {"HF_HOME": _HOME, "IR_DATASETS_HOME": f"{_HOME}/irds", "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}

WORDS = (
    "the of and in to was is a on as by with for at his from that it an are which were this born known film american "
    "city river mountain music band album song king queen castle war peace ship sea island bridge road train bird fish "
    "tree flower stone gold silver red blue green black white old new first last north south east west"
).split()


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch) -> Path:
    """No test touches the user's cache."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("REPCONC_CACHE", str(folder))
    return folder


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory) -> Path:
    """A sentence-transformers folder: two random BERT layers over a vocabulary of the words above."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    folder = tmp_path_factory.mktemp("models")
    plain = plain_bert(folder / "plain")
    torch.manual_seed(0)
    transformer = Transformer(str(plain), max_seq_length=64)
    modules = [transformer, Pooling(transformer.get_embedding_dimension(), pooling_mode="mean"), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save(str(folder / "tiny"), create_model_card=False)
    return folder / "tiny"


def plain_bert(folder: Path) -> Path:
    """A Hugging Face encoder without pooling."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder.mkdir(parents=True, exist_ok=True)
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *",.?!", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(tokens))
    tokenizer = BertTokenizerFast(vocab=str(folder / "vocab.txt"), do_lower_case=True)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokens),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=128,
    )
    BertModel(config).save_pretrained(folder)
    return folder


@pytest.fixture
def beir(tmp_path) -> Callable[..., Path]:
    """A function that writes a BEIR folder; lines may be given as text to make them wrong."""

    def write(
        documents: list[dict | str | bytes] | None = None,
        queries: list[dict | str] | None = None,
        qrels: dict[str, list[str]] | None = None,
        name: str = "set",
    ) -> Path:
        folder = tmp_path / name
        (folder / "qrels").mkdir(parents=True)
        if documents is None:
            documents = [{"_id": f"d{i}", "title": f"{WORDS[i]} {WORDS[i + 1]}", "text": text(i)} for i in range(40)]
        if queries is None:
            queries = [{"_id": f"q{i}", "text": text(i)[: 10 + i]} for i in range(10)]
        if qrels is None:
            qrels = {"test": [f"q{i}\td{i}\t1" for i in range(6)], "dev": [f"q{i}\td{i}\t1" for i in range(6, 10)]}
        (folder / "corpus.jsonl").write_bytes(b"".join(_line(row) for row in documents))
        (folder / "queries.jsonl").write_bytes(b"".join(_line(row) for row in queries))
        for split, lines in qrels.items():
            (folder / "qrels" / f"{split}.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *lines]) + "\n")
        return folder

    return write


def text(number: int) -> str:
    """A sentence of the vocabulary, another one for each number."""
    return " ".join(WORDS[(number * step + step * step) % len(WORDS)] for step in range(1, 5 + number % 17))


def _line(row: dict | str | bytes) -> bytes:
    if isinstance(row, bytes):
        return row + b"\n"
    return (row if isinstance(row, str) else json.dumps(row)).encode() + b"\n"
