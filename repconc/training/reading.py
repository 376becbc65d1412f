"""A data set as training reads it: checked once, then texts tokenised once, or vectors encoded once."""

import hashlib
import json
from functools import cached_property
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save

from repconc.data.check import ensure_sound
from repconc.data.dataset import RetrievalDataset
from repconc.errors import RepconcError
from repconc.files import atomic_write
from repconc.models.encoder import Encoder
from repconc.models.encoding import encode_corpus
from repconc.models.inputs import CachedVectors, Inputs, Texts
from repconc.records import Document, Query
from repconc.training.examples import PIECES, Examples, Validation, piece_of
from repconc.training.loop import Observer, as_progress
from repconc.training.ranks import Ranks
from repconc.training.recipe import Recipe
from repconc.vectors import CorpusDigest, Vectors

QUERIES_AT_A_TIME = 4096


class Labelled:
    """A data set as it was read: ids, labels and fingerprints; texts are read again when they are tokenised."""

    def __init__(self, dataset: RetrievalDataset, split: str) -> None:
        self.dataset, self.split = dataset, split
        self.document_ids: list[str] = []
        self.digest = CorpusDigest()
        self.qrels = {name: dataset.qrels(name) for name in ("train", split)}
        self.queries = {name: dataset.queries(name) for name in ("train", split)}

    def add(self, document: Document) -> None:
        self.document_ids.append(document.id)
        self.digest.add(document)

    @cached_property
    def relevant(self) -> tuple[list[Query], list[np.ndarray]]:
        """The training queries with their relevant documents; a query without any teaches nothing."""
        number_of = {id: number for number, id in enumerate(self.document_ids)}
        lowest, judged = self.dataset.relevance("train"), self.qrels["train"]
        known = {
            query.id: sorted(number_of[id] for id, grade in judged[query.id].items() if grade >= lowest)
            for query in self.queries["train"]
        }
        queries = [query for query in self.queries["train"] if known[query.id]]
        return queries, [np.array(known[query.id], dtype=np.int64) for query in queries]

    def labels_sha256(self) -> str:
        lowest = [self.dataset.relevance(split) for split in ("train", self.split)]
        return hashlib.sha256(json.dumps([self.qrels, self.queries, lowest], sort_keys=True).encode()).hexdigest()


def read(dataset: RetrievalDataset, recipe: Recipe, observe: Observer) -> Labelled:
    data = Labelled(dataset, recipe.validation_split)
    ensure_sound(dataset, ["train", recipe.validation_split], data.add, as_progress("reading", observe))
    return data


def read_examples(
    dataset: RetrievalDataset,
    encoder: Encoder,
    recipe: Recipe,
    *,
    vectors: Path | None = None,
    cache: Path | None = None,
) -> Examples:
    """What a recipe learns from, outside of a run.

    vectors: where those of documents for heads are, or shall be encoded to; cache: where those of queries are kept.
    """
    observe: Observer = lambda line: None  # noqa: E731
    return make_examples(read(dataset, recipe, observe), encoder, recipe, vectors, cache, Ranks(), observe)


def make_examples(
    data: Labelled,
    encoder: Encoder,
    recipe: Recipe,
    vectors: Path | None,
    cache: Path | None,
    ranks: Ranks,
    observe: Observer,
) -> Examples:
    """Texts by number, tokenised once; or, for heads, vectors that are encoded once."""
    queries, relevant = data.relevant
    dev = data.queries[data.split]
    pieces, sources = _pieces(data, recipe)
    texts = [[query.text for query in queries] + pieces, [query.text for query in dev]]
    if recipe.train == "heads":
        if vectors is None or cache is None:
            raise RepconcError("Heads are trained on vectors: say where they are, or shall be.")
        documents: Inputs = _cached(data, encoder, vectors, ranks, observe)
        sides: list[Inputs] = [CachedVectors([_embedded(part, encoder, cache, ranks, observe)]) for part in texts]
    else:
        progress = as_progress("tokenising", observe)
        corpus = (document.full_text for document in data.dataset.documents)
        documents = Texts(encoder, "document", corpus, len(data.document_ids), progress)
        sides = [Texts(encoder, "query", part) for part in texts]
    validation = Validation(
        query_ids=[query.id for query in dev],
        queries=sides[1],
        qrels=data.qrels[data.split],
        relevance=data.dataset.relevance(data.split),
        documents=_pool(data, recipe),
    )
    return Examples(data.document_ids, documents, sides[0], relevant + sources, len(queries), validation)


def _cached(data: Labelled, encoder: Encoder, folder: Path, ranks: Ranks, observe: Observer) -> CachedVectors:
    if ranks.is_first and not (folder / "manifest.json").exists():
        encode_corpus(encoder, data.dataset, folder, progress=as_progress("encoding", observe))
    ranks.wait()
    vectors = Vectors(folder)
    if (vectors.plan.corpus_sha256, vectors.plan.fingerprint) != (data.digest.hexdigest(), encoder.fingerprint()):
        raise RepconcError(f"The vectors in {folder} are of another corpus or another encoder; encode it first.")
    vectors.verify()
    return CachedVectors(list(vectors.blocks()))


def _embedded(texts: list[str], encoder: Encoder, cache: Path, ranks: Ranks, observe: Observer) -> np.ndarray:
    """Vectors of queries [Q, D], computed once: with pieces among them there may be a hundred thousand."""
    key = hashlib.sha256(json.dumps([encoder.fingerprint(), texts]).encode()).hexdigest()[:16]
    path, progress = cache / f"queries-{key}.safetensors", as_progress("encoding queries", observe)
    if ranks.is_first and not path.exists():
        parts = []
        for start in range(0, len(texts), QUERIES_AT_A_TIME):
            parts.append(encoder.embed_queries(texts[start : start + QUERIES_AT_A_TIME]))
            progress(start + len(parts[-1]), len(texts))
        with atomic_write(path) as file:
            file.write(save({"vectors": np.concatenate(parts)}))
    ranks.wait()
    return load_file(path)["vectors"]


def _pieces(data: Labelled, recipe: Recipe) -> tuple[list[str], list[np.ndarray]]:
    """A piece of each document, or of some where there are very many, and the document's number.

    The same for every seed, as queries are: whoever trains heads with several seeds encodes them once.
    """
    if not recipe.pieces:
        return [], []
    random = np.random.default_rng(0)
    count = len(data.document_ids)
    chosen = set(random.permutation(count)[:PIECES].tolist())
    numbered = ((number, document) for number, document in enumerate(data.dataset.documents) if number in chosen)
    cut = [(piece_of(document.full_text, random), np.array([number])) for number, document in numbered]
    return [piece for piece, _ in cut], [number for _, number in cut]


def _pool(data: Labelled, recipe: Recipe) -> np.ndarray:
    """The documents that dev queries search: all, or all that are judged and a random rest."""
    count = len(data.document_ids)
    if recipe.validation_documents is None or recipe.validation_documents >= count:
        return np.arange(count)
    judged = {id for grades in data.qrels[data.split].values() for id in grades}
    first = [number for number, id in enumerate(data.document_ids) if id in judged]
    rest = np.random.default_rng(recipe.seed).permutation(np.setdiff1d(np.arange(count), first))
    return np.sort(np.concatenate([first, rest[: max(0, recipe.validation_documents - len(first))]]).astype(np.int64))
