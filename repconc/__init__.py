"""Dense retrieval with tiny indexes.

Public names are loaded on first use, so that `import repconc` costs milliseconds and loads neither torch nor faiss.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "Client": "repconc.serving.client",
    "Document": "repconc.records",
    "Encoder": "repconc.models.encoder",
    "Hit": "repconc.records",
    "Index": "repconc.indexes.ivf",
    "Query": "repconc.records",
    "RepconcError": "repconc.errors",
    "RepconcModel": "repconc.models.repconc",
    "RetrievalDataset": "repconc.data.dataset",
    "Searcher": "repconc.search",
    "Vectors": "repconc.vectors",
    "add_documents": "repconc.indexing",
    "build_index": "repconc.indexing",
    "compress": "repconc.compression.compress",
    "encode_corpus": "repconc.models.encoding",
    "evaluate": "repconc.evaluation.measures",
    "load_dataset": "repconc.data.load",
    "make_recipe": "repconc.training.recipe",
    "read_run": "repconc.evaluation.runs",
    "train": "repconc.training.pipeline",
    "write_run": "repconc.evaluation.runs",
}

__all__ = [  # noqa: RUF022 (the reader's order: data, encoders, training, search, evaluation)
    "load_dataset",
    "RetrievalDataset",
    "Document",
    "Query",
    "Encoder",
    "encode_corpus",
    "Vectors",
    "train",
    "make_recipe",
    "RepconcModel",
    "compress",
    "build_index",
    "add_documents",
    "Index",
    "Searcher",
    "Hit",
    "Client",
    "evaluate",
    "read_run",
    "write_run",
    "RepconcError",
]

if TYPE_CHECKING:
    from repconc.compression.compress import compress
    from repconc.data.dataset import RetrievalDataset
    from repconc.data.load import load_dataset
    from repconc.errors import RepconcError
    from repconc.evaluation.measures import evaluate
    from repconc.evaluation.runs import read_run, write_run
    from repconc.indexes.ivf import Index
    from repconc.indexing import add_documents, build_index
    from repconc.models.encoder import Encoder
    from repconc.models.encoding import encode_corpus
    from repconc.models.repconc import RepconcModel
    from repconc.records import Document, Hit, Query
    from repconc.search import Searcher
    from repconc.serving.client import Client
    from repconc.training.pipeline import train
    from repconc.training.recipe import make_recipe
    from repconc.vectors import Vectors


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'repconc' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
