"""`compress`: vectors in, a learned index out.

The straight walk: look through what is given -> choose the mode -> hold out queries -> train maps and codebooks on a
sample -> code all vectors as they stream by -> index -> report. Killed anywhere, the same call goes on: what a run
needs lies in a folder beside the index, `INDEX.training/`, which goes at the end.
"""

import hashlib
import json
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from repconc.codec import Codec
from repconc.compression.given import Given, Sample, Vector, look_through, open_given, paired
from repconc.compression.learning import (
    Mode,
    Splits,
    choose_queries,
    make_examples,
    mode_of,
    relevant_to,
    split_queries,
)
from repconc.config import Settings
from repconc.errors import RepconcError
from repconc.indexes.folder import refuse_foreign
from repconc.indexes.ivf import Index
from repconc.indexes.manifest import MANIFEST, Reference
from repconc.indexes.writing import Batches, Show, build, quietly
from repconc.models.heads import make_heads, to_map
from repconc.training.corpus import Corpus
from repconc.training.examples import Examples
from repconc.training.loop import Line, Observer, as_progress
from repconc.training.pipeline import agree_on_plan, named, only_trainer, run_phases, training_folder
from repconc.training.possible import refuse_impossible
from repconc.training.ranks import Ranks
from repconc.training.recipe import Recipe, make_recipe, read_recipe
from repconc.training.trainer import NORMALIZED_SCALE, Trainer
from repconc.training.view import TrainingView

SIZES = (4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768)
"""Bytes that are tried where a share of the quality is asked for."""


class Plan(Settings):
    """What a run is; a folder that was begun with another plan is refused."""

    mode: Mode
    recipe: Recipe
    document_map: bool
    hidden: int
    vectors_sha256: str
    queries_sha256: str
    labels_sha256: str


@dataclass(frozen=True)
class Learned:
    """Codebooks and maps of one size."""

    coding: Codec  # with the map of documents
    scoring: Codec  # with the map of queries
    history: list[Line]
    quality: float
    """What the held-out dev queries measure."""


@dataclass(frozen=True)
class Result:
    """All that a report needs."""

    index: Index
    given: Given
    sample: Sample
    splits: Splits
    mode: Mode
    learned: Learned


def compress(
    documents: Vector,
    queries: Vector | None = None,
    qrels: Path | str | Mapping[str, Mapping[str, int]] | None = None,
    bytes: int = 24,
    *,
    ids: Path | str | Sequence[str] | None = None,
    query_ids: Path | str | Sequence[str] | None = None,
    output: Path | str | None = None,
    mode: Mode | None = None,
    seed: int = 0,
    progress: bool = True,
) -> Index:
    """A learned index over given vectors, in a folder or, without one, in a temporary one that goes with the index.

    documents: [N, D], or a file of them; queries: [Q, D]; qrels: {"3": {"17": 1}} says that row 17 answers row 3.
    """
    given = open_given(documents, ids=ids, queries=queries, query_ids=query_ids, qrels=qrels)
    scratch = Path(tempfile.mkdtemp(prefix="repconc-")) if output is None else None
    folder = scratch / "index" if scratch is not None else Path(str(output))
    try:
        with TrainingView(quiet=not progress) as view:
            show = partial(as_progress, observe=view)
            index = run(given, folder, bytes=bytes, mode=mode, seed=seed, observe=view, show=show).index
    except BaseException:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
        raise
    if scratch is not None:
        weakref.finalize(index, shutil.rmtree, scratch, ignore_errors=True)
    return index


def run(
    given: Given,
    output: Path,
    *,
    bytes: int | None = None,
    ratio: float | None = None,
    keep: float | None = None,
    mode: Mode | None = None,
    cosine: bool | None = None,
    document_map: bool = True,
    hidden: int = 0,
    recipe: Recipe | None = None,
    model: Reference | None = None,
    lists: int | None = None,
    seed: int = 0,
    observe: Observer = lambda line: None,
    show: Show = quietly,
    say: Callable[[str], None] = lambda sentence: None,
    report: Callable[[Result], None] = lambda result: None,
) -> Result:
    """The walk, with all that can be chosen. report: what is done with the result before all is tidied up."""
    output = named(output)
    folder, ranks = training_folder(output), Ranks()
    refuse_foreign(output)
    if (output / MANIFEST).exists() and not folder.exists():
        raise RepconcError(f"{output} holds an index already; remove it first, or choose another name.")
    chosen = mode_of(given, mode)
    size = _size(given.matrix.dimension, bytes, ratio, keep)
    rows = choose_queries(given, chosen, seed)
    used = [given.query_ids[row] for row in rows.tolist()] if chosen == "labels" else []
    wanted = {id for query in used for id in relevant_to(given, query)}
    sample = look_through(given, wanted, cosine, seed, show("reading"))
    splits = split_queries(given, sample, chosen, rows, seed)
    say(_line(chosen, given, sample, splits))
    settings = recipe or make_recipe(read_recipe(f"compress-{chosen}"))
    settings = settings.model_copy(update={"seed": seed, "scale": settings.scale or scale_of(sample, splits)})
    plan = Plan(
        mode=chosen,
        recipe=settings,
        document_map=document_map,
        hidden=hidden,
        vectors_sha256=sample.digest,
        queries_sha256=hashlib.sha256(b"".join(part.vectors.tobytes() for part in splits)).hexdigest(),
        labels_sha256=hashlib.sha256(json.dumps(given.qrels, sort_keys=True).encode()).hexdigest(),
    )
    learner = _Learner(plan, make_examples(given, sample, splits, chosen, seed), sample, folder, observe)
    learner.recipe_of(size or 1)  # what cannot be done is said before anything is written
    with only_trainer(folder, ranks):
        agree_on_plan(folder, plan, ranks, "remove it, or choose another name")
        learned = learner.of_size(size) if size is not None else learner.smallest(keep or 1.0, say)
        if (output / MANIFEST).exists():  # killed after it was built
            index = Index(output)
        else:
            codecs = {"coding": learned.coding, "scoring": learned.scoring}
            batches = _coded(given, learned.coding, show)
            index = build(output, batches, **codecs, model=model, lists=lists, seed=seed, show=show)
        result = Result(index, given, sample, splits, chosen, learned)
        report(result)
        shutil.rmtree(folder)
    return result


class _Learner:
    """Trains one size after the other in a folder of its own each."""

    def __init__(self, plan: Plan, examples: Examples, sample: Sample, folder: Path, observe: Observer) -> None:
        self._plan, self._examples, self._sample = plan, examples, sample
        self._folder, self._observe = folder, observe

    def recipe_of(self, bytes: int) -> Recipe:
        """The recipe for a size; refused where it cannot work with what is given."""
        recipe = self._plan.recipe
        if recipe.method == "dense":
            raise RepconcError("A recipe of method dense makes no codes; choose another method.")
        quantizer = recipe.quantizer.model_copy(update={"bytes": bytes})
        recipe = recipe.model_copy(update={"quantizer": quantizer})
        pairs, smallest = len(self._examples.pairs), 4 * quantizer.codewords
        if len(self._examples.pieces) and pairs * (1 + recipe.pieces) < smallest:  # few labels: documents join in
            recipe = recipe.model_copy(update={"pieces": smallest / pairs})
        D, N = self._sample.vectors.shape[1], len(self._sample.ids)
        refuse_impossible(recipe, dimension=D, documents=N, pairs=pairs, ranks=1)
        return recipe

    def of_size(self, bytes: int) -> Learned:
        plan, recipe, D = self._plan, self.recipe_of(bytes), self._sample.vectors.shape[1]
        unit, hidden = self._sample.unit, plan.hidden
        model = make_heads(D, unit=unit, hidden=hidden, document_map=plan.document_map, seed=recipe.seed)
        folder = self._folder / f"bytes-{bytes}"
        folder.mkdir(exist_ok=True)
        trainer = Trainer(model, self._examples, recipe, folder, Ranks(), self._observe)
        run_phases(trainer)
        return Learned(
            coding=Codec(trainer.coding.codebooks, D, to_map(trainer.model, "document")),
            scoring=Codec(trainer.quantizer.to_codec().codebooks, D, to_map(trainer.model, "query")),
            history=trainer.history,
            quality=next(iter(trainer.measure_codes().values())),
        )

    def smallest(self, keep: float, say: Callable[[str], None]) -> Learned:
        """By halving the range of sizes: more bytes are better, or at least not worse."""
        whole, D = self._uncompressed(), self._sample.vectors.shape[1]
        if whole <= 0:
            raise RepconcError("The held-out queries find nothing even without compression; give more, or a size.")
        sizes = [size for size in SIZES if size <= D] or [D]
        low, high, best = 0, len(sizes), None
        while low < high:
            middle = (low + high) // 2
            learned = self.of_size(sizes[middle])
            say(f"{sizes[middle]} bytes keep {learned.quality / whole:.1%} of the held-out measure.")
            if learned.quality >= keep * whole:
                high, best = middle, learned
            else:
                low = middle + 1
        if best is None:
            raise RepconcError(
                f"No size up to {sizes[-1]} bytes keeps {keep:.0%} of the held-out measure; ask for less, or give "
                "more queries."
            )
        return best

    def _uncompressed(self) -> float:
        model = make_heads(self._sample.vectors.shape[1], unit=self._sample.unit)
        return next(iter(Corpus(model, self._examples, Ranks(), 1 << 30).measure_vectors().values()))


def _coded(given: Given, coding: Codec, show: Show) -> Batches:
    progress, done = show("coding"), 0
    for group, block in paired(given):
        yield group, coding.encode(block)
        done += len(block)
        progress(done, len(given.matrix))


def _size(dimension: int, bytes: int | None, ratio: float | None, keep: float | None) -> int | None:
    """Bytes of a code; None where they are to be found."""
    if sum(value is not None for value in (bytes, ratio, keep)) > 1:
        raise RepconcError("Give only one of bytes, ratio and keep.")
    if keep is not None:
        if not 0 < keep <= 1:
            raise RepconcError(f"keep is {keep}; it is a share of the quality, above 0 and at most 1.")
        return None
    if ratio is not None and not 4 <= ratio <= 4 * dimension:
        raise RepconcError(f"ratio is {ratio:g}; {dimension} floats can be made 4 to {4 * dimension} times smaller.")
    size = bytes if bytes is not None else round(4 * dimension / (64 if ratio is None else ratio))
    if not 1 <= size <= dimension:
        raise RepconcError(
            f"Vectors of {dimension} dimensions cannot be cut into {size} blocks; ask for 1 to {dimension} bytes."
        )
    return size


def scale_of(sample: Sample, splits: Splits) -> float:
    """Scores times this spread as those of vectors of length 1 do, times 20."""
    if sample.unit:
        return NORMALIZED_SCALE
    lengths = [float(np.linalg.norm(part, axis=1).mean()) for part in (sample.vectors, splits.train.vectors)]
    return NORMALIZED_SCALE / max(lengths[0] * lengths[1], 1e-30)


def _line(mode: Mode, given: Given, sample: Sample, splits: Splits) -> str:
    """What was found and what is made of it."""
    what = {
        "documents": "no queries: documents stand in for them and the uncompressed ranking teaches",
        "queries": "queries without labels: the uncompressed ranking teaches",
        "labels": "queries with labels: the paper's objective",
    }[mode]
    learned = "" if len(sample.ids) == len(given.matrix) else f" ({len(sample.ids):,} of them learned from)"
    metric = "cosine" if sample.unit else "inner product"
    return (
        f"mode {mode}: {what}; {len(given.matrix):,} documents{learned} of {given.matrix.dimension} dimensions, "
        f"{metric}; {len(splits.train.ids):,} queries to learn from, {len(splits.dev.ids):,} and "
        f"{len(splits.test.ids):,} held out."
    )
