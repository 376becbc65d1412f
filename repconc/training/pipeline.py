"""`train`: a labelled set and a recipe in, a model folder out; killed anywhere, the same call goes on.

All that a run needs to go on lies in a folder beside the model, `MODEL.training/`. The model folder appears whole at
the end, and the other one goes.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from repconc.config import Settings
from repconc.data.check import ensure_sound
from repconc.data.dataset import RetrievalDataset
from repconc.errors import RepconcError
from repconc.files import locked, read_model, remove_partials, write_model
from repconc.models.dual import DualEncoder
from repconc.models.encoder import Encoder
from repconc.models.encoding import encode_corpus
from repconc.models.inputs import CachedVectors, Inputs, Texts
from repconc.models.manifest import MANIFEST, ModelManifest
from repconc.models.repconc import RepconcModel, save_model
from repconc.packages import Progress
from repconc.records import Document, Query
from repconc.training.examples import Examples, Validation, piece_of
from repconc.training.loop import Observer
from repconc.training.ranks import Ranks
from repconc.training.recipe import Recipe
from repconc.training.report import draw_report
from repconc.training.trainer import Trainer
from repconc.vectors import CorpusDigest, Vectors

PIECES = 100_000


class Plan(Settings):
    """What a run is, fixed before its first step: a folder that was begun with another plan is refused."""

    recipe: Recipe
    dataset: str
    corpus_sha256: str
    labels_sha256: str
    fingerprint: str


def train(
    dataset: RetrievalDataset,
    output: Path | str,
    recipe: Recipe,
    *,
    device: str | None = None,
    vectors: Path | str | None = None,
    observe: Observer = lambda line: None,
) -> RepconcModel:
    """Run all phases of a recipe. vectors: what `repconc encode` made of the corpus, for heads."""
    output, ranks = Path(output), Ranks()
    if (output / MANIFEST).exists() and training_folder(output).exists():  # killed after its last step
        shutil.rmtree(training_folder(output), ignore_errors=True)
        return RepconcModel.load(output, device)
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise RepconcError(f"{output} is there already; remove it first, or choose another name.")
    data = _read(dataset, recipe, observe)  # before anything is written: it may be refused
    _refuse_compressed(Path(recipe.encoder.documents))
    encoder = Encoder(recipe.encoder, device)
    folder = training_folder(output)
    with _only_trainer(folder, ranks):
        _agree_on_plan(folder, data.plan(recipe, encoder), ranks)
        examples = _examples(data, encoder, recipe, Path(vectors or folder / "vectors"), ranks, observe)
        trainer = Trainer(make_model(encoder, recipe), examples, recipe, folder, ranks, observe)
        figures = run_phases(trainer)
        if ranks.is_first:
            _save(trainer, output, dataset.name, encoder, figures)
            shutil.rmtree(folder)
        ranks.wait()
    return RepconcModel.load(output, device)


def _refuse_compressed(folder: Path) -> None:
    """A rotation that is already there would be trained along, and a second one put behind it."""
    if (folder / MANIFEST).exists() and read_model(folder / MANIFEST, ModelManifest).bytes is not None:
        raise RepconcError(f"{folder} is compressed already; start from the dense model that it was made from.")


def make_model(encoder: Encoder, recipe: Recipe) -> DualEncoder:
    """The two sides as the recipe wants them trained."""
    model = DualEncoder.of(encoder, shared=recipe.shared, heads=recipe.train == "heads")
    if recipe.frozen_layers:
        model.freeze_layers(recipe.frozen_layers)
    return model


def run_phases(trainer: Trainer) -> dict[str, dict[str, float]]:
    """The straight walk through training; gives each phase's figures on dev."""
    recipe, figures = trainer.recipe, {}
    for number, phase in enumerate(recipe.dense, start=1):
        figures[f"dense {number}, {phase.negatives}"] = {"MRR@10": trainer.dense(phase, f"dense-{number}").best}
    if recipe.method == "dense":
        return figures
    trainer.warm_up(rotate=recipe.method != "pq")
    if recipe.method == "repconc":
        figures["stage 1"] = {"MRR@10": trainer.stage_one().best}
    figures["codes"] = trainer.code() | trainer.corpus.measure_codes(trainer.quantizer)
    if recipe.method in ("repconc", "jpq"):
        figures["stage 2"] = {"MRR@10": trainer.stage_two().best}
    return figures


def training_folder(output: Path) -> Path:
    return output.with_name(f"{output.name}.training")


def read_plan(output: Path) -> Plan:
    """What a run that was interrupted had set out to do."""
    path = training_folder(output) / "plan.json"
    if not path.exists():
        raise RepconcError(f"There is no interrupted training of {output} to go on with.")
    return read_model(path, Plan)


class _Data:
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

    def plan(self, recipe: Recipe, encoder: Encoder) -> Plan:
        labels = hashlib.sha256(json.dumps([self.qrels, self.queries], sort_keys=True).encode())
        return Plan(
            recipe=recipe,
            dataset=self.dataset.name,
            corpus_sha256=self.digest.hexdigest(),
            labels_sha256=labels.hexdigest(),
            fingerprint=encoder.fingerprint(),
        )


def _read(dataset: RetrievalDataset, recipe: Recipe, observe: Observer) -> _Data:
    data = _Data(dataset, recipe.validation_split)
    ensure_sound(dataset, ["train", recipe.validation_split], data.add, _as_progress("reading", observe))
    return data


def read_examples(
    dataset: RetrievalDataset, encoder: Encoder, recipe: Recipe, *, vectors: Path | None = None
) -> Examples:
    """What a recipe learns from, outside of a run. vectors: where those for heads are, or shall be encoded to."""
    observe: Observer = lambda line: None  # noqa: E731
    return _examples(_read(dataset, recipe, observe), encoder, recipe, vectors, Ranks(), observe)


def _examples(
    data: _Data, encoder: Encoder, recipe: Recipe, vectors: Path | None, ranks: Ranks, observe: Observer
) -> Examples:
    """Texts by number, tokenised once; or, for heads, vectors that are encoded once."""
    queries, relevant = data.relevant()
    dev = data.queries[data.split]
    pieces, sources = _pieces(data, recipe)
    texts = [[query.text for query in queries] + pieces, [query.text for query in dev]]
    if recipe.train == "heads":
        if vectors is None:
            raise RepconcError("Heads are trained on vectors: say where they are, or shall be.")
        documents: Inputs = _cached(data, encoder, vectors, ranks, observe)
        sides: list[Inputs] = [CachedVectors([encoder.embed_queries(part)]) for part in texts]
    else:
        progress = _as_progress("tokenising", observe)
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


def _cached(data: _Data, encoder: Encoder, folder: Path, ranks: Ranks, observe: Observer) -> CachedVectors:
    if ranks.is_first and not (folder / "manifest.json").exists():
        encode_corpus(encoder, data.dataset, folder, progress=_as_progress("encoding", observe))
    ranks.wait()
    vectors = Vectors(folder)
    if (vectors.plan.corpus_sha256, vectors.plan.fingerprint) != (data.digest.hexdigest(), encoder.fingerprint()):
        raise RepconcError(f"The vectors in {folder} are of another corpus or another encoder; encode it first.")
    vectors.verify()
    return CachedVectors(list(vectors.blocks()))


def _pieces(data: _Data, recipe: Recipe) -> tuple[list[str], list[np.ndarray]]:
    """A piece of each document, or of some where there are very many, and the document's number."""
    if not recipe.pieces:
        return [], []
    random = np.random.default_rng(recipe.seed)
    count = len(data.document_ids)
    chosen = set(random.permutation(count)[:PIECES].tolist())
    numbered = ((number, document) for number, document in enumerate(data.dataset.documents) if number in chosen)
    cut = [(piece_of(document.full_text, random), np.array([number])) for number, document in numbered]
    return [piece for piece, _ in cut], [number for _, number in cut]


def _pool(data: _Data, recipe: Recipe) -> np.ndarray:
    """The documents that dev queries search: all, or all that are judged and a random rest."""
    count = len(data.document_ids)
    if recipe.validation_documents is None or recipe.validation_documents >= count:
        return np.arange(count)
    judged = {id for grades in data.qrels[data.split].values() for id in grades}
    first = [number for number, id in enumerate(data.document_ids) if id in judged]
    rest = np.random.default_rng(recipe.seed).permutation(np.setdiff1d(np.arange(count), first))
    return np.sort(np.concatenate([first, rest[: max(0, recipe.validation_documents - len(first))]]).astype(np.int64))


def _save(trainer: Trainer, output: Path, dataset: str, encoder: Encoder, figures: dict[str, dict[str, float]]) -> None:
    recipe, compressed = trainer.recipe, trainer.recipe.method != "dense"
    about = {
        "method": recipe.method,
        "dataset": dataset,
        "recipe": recipe.model_dump(mode="json"),
        "figures": figures,
        "document_tokens": encoder.settings.document_tokens,
        "query_tokens": encoder.settings.query_tokens,
    }
    lines = "".join(json.dumps(line) + "\n" for line in trainer.history)
    files = {"training.jsonl": lines.encode()} | draw_report(trainer.history)
    coding, scoring = (trainer.coding, trainer.quantizer.to_codec()) if compressed else (None, None)
    save_model(output, trainer.model, coding, scoring, about, files)


@contextmanager
def _only_trainer(folder: Path, ranks: Ranks) -> Iterator[None]:
    """One run at a time in a folder; of several ranks, the first holds the lock."""
    if not ranks.is_first:
        yield
        return
    try:
        with locked(folder / "plan.json", wait=False):
            remove_partials(folder)
            yield
    except BlockingIOError as error:
        raise RepconcError(f"Another process is training in {folder}; wait for it, or choose another name.") from error


def _agree_on_plan(folder: Path, plan: Plan, ranks: Ranks) -> None:
    path = folder / "plan.json"
    if ranks.is_first and not path.exists():
        write_model(path, plan)
    ranks.wait()
    before = read_model(path, Plan)
    differing = [name for name in Plan.model_fields if getattr(before, name) != getattr(plan, name)]
    if differing:
        raise RepconcError(
            f"{folder} holds a run that was begun with another {' and '.join(differing)}: "
            "remove it, choose another name, or go on with it by --resume."
        )


def _as_progress(label: str, observe: Observer) -> Progress:
    return lambda done, total: observe({"phase": label, "step": done, "steps": total})
