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

from repconc.codec import Codec
from repconc.codec_files import to_bytes
from repconc.compression.given import Digest, Given, Sample, look_through, open_given, paired
from repconc.compression.learner import Learned, Learner, Plan, scale_of
from repconc.compression.learning import (
    Mode,
    Splits,
    choose_queries,
    make_examples,
    mode_of,
    relevant_to,
    split_queries,
)
from repconc.compression.rows import Vector
from repconc.errors import RepconcError
from repconc.files import remove_whole
from repconc.indexes.folder import refuse_foreign
from repconc.indexes.ivf import Index
from repconc.indexes.manifest import MANIFEST, Reference
from repconc.indexes.writing import Batches, Show, build, quietly
from repconc.training.loop import Observer, as_progress
from repconc.training.pipeline import PLAN, agree_on_plan, named, only_trainer, training_folder
from repconc.training.ranks import Ranks
from repconc.training.recipe import Codes, Recipe, make_recipe, read_recipe
from repconc.training.view import TrainingView


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
    codes: Codes | None = None,
    ids: Path | str | Sequence[str] | None = None,
    query_ids: Path | str | Sequence[str] | None = None,
    output: Path | str | None = None,
    mode: Mode | None = None,
    seed: int = 0,
    progress: bool = True,
) -> Index:
    """A learned index over given vectors, in a folder or, without one, in a temporary one that goes with the index.

    documents: [N, D], or a file of them; queries: [Q, D]; qrels: {"3": {"17": 1}} says that row 17 answers row 3;
    codes: codewords in blocks ("product") or whole ones ("additive"), by default as the recipe says.
    """
    given = open_given(documents, ids=ids, queries=queries, query_ids=query_ids, qrels=qrels)
    scratch = Path(tempfile.mkdtemp(prefix="repconc-")) if output is None else None
    folder = scratch / "index" if scratch is not None else Path(str(output))
    try:
        with TrainingView(quiet=not progress) as view:
            show = partial(as_progress, observe=view)
            index = run(given, folder, bytes=bytes, codes=codes, mode=mode, seed=seed, observe=view, show=show).index
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
    codes: Codes | None = None,
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
    _refuse_finished(output, folder)
    if lists is not None and lists > len(given.matrix):
        raise RepconcError(f"{len(given.matrix)} documents cannot fill {lists} lists; ask for fewer lists.")
    chosen = mode_of(given, mode)
    settings = recipe or make_recipe(read_recipe(f"compress-{chosen}"))
    structure: Codes = codes or settings.quantizer.structure
    quantizer = settings.quantizer.model_dump() | {"codes": structure}
    settings = make_recipe(settings.model_dump() | {"seed": seed, "quantizer": quantizer})
    size = _size(given.matrix.dimension, structure, bytes, ratio, keep)
    rows = choose_queries(given, chosen, seed)
    used = [given.query_ids[row] for row in rows.tolist()] if chosen == "labels" else []
    wanted = {id for query in used for id in relevant_to(given, query)}
    sample = look_through(given, wanted, cosine, seed, show("reading"))
    splits = split_queries(given, sample, chosen, rows, seed)
    say(_line(chosen, given, sample, splits))
    settings = settings.model_copy(update={"scale": settings.scale or scale_of(sample, splits)})
    plan = Plan(
        mode=chosen,
        bytes=size,
        unit=sample.unit,
        lists=lists,
        encoder=None if model is None else model.fingerprint,
        recipe=settings,
        document_map=document_map,
        hidden=hidden,
        vectors_sha256=sample.digest,
        queries_sha256=hashlib.sha256(b"".join(part.vectors.tobytes() for part in splits)).hexdigest(),
        labels_sha256=hashlib.sha256(json.dumps(given.qrels, sort_keys=True).encode()).hexdigest(),
    )
    learner = Learner(plan, make_examples(given, sample, splits, chosen, seed), sample, folder, observe)
    learner.recipe_of(size or learner.sizes[0])  # what cannot be done is said before anything is written
    with only_trainer(folder, ranks):
        _refuse_finished(output, folder)  # by another process, while we read
        agree_on_plan(folder, plan, ranks, "remove it, or choose another name")
        learned = learner.of_size(size) if size is not None else learner.smallest(keep or 1.0, say)
        if (output / MANIFEST).exists():  # killed after it was built
            index = Index(output)
            if to_bytes(index.coding, index.scoring) != to_bytes(learned.coding, learned.scoring):
                raise RepconcError(f"{output} was built with another keep; remove it and {folder}, or ask as before.")
        else:
            codecs = {"coding": learned.coding, "scoring": learned.scoring}
            batches = _coded(given, sample.digest, learned.coding, show)
            index = build(output, batches, **codecs, model=model, lists=lists, seed=seed, show=show)
        result = Result(index, given, sample, splits, chosen, learned)
        report(result)
        remove_whole(folder)
    return result


def _refuse_finished(output: Path, folder: Path) -> None:
    if (output / MANIFEST).exists() and not (folder / PLAN).exists():
        raise RepconcError(f"{output} holds an index already; remove it first, or choose another name.")


def _coded(given: Given, before: str, coding: Codec, show: Show) -> Batches:
    """All documents with their codes. before: the digest of what was looked through, which must still be there."""
    progress, done, digest = show("coding"), 0, Digest()
    for group, block in paired(given):
        digest.add(group, block)
        yield group, coding.encode(block)
        done += len(block)
        progress(done, len(given.matrix))
    if digest.hexdigest() != before:
        raise RepconcError(
            f"{given.matrix.source}, or what the documents are called, changed since it was looked through; "
            "run again under another name."
        )


def _size(dimension: int, codes: Codes, bytes: int | None, ratio: float | None, keep: float | None) -> int | None:
    """Bytes of a code; None where they are to be found."""
    if sum(value is not None for value in (bytes, ratio, keep)) > 1:
        raise RepconcError("Give only one of bytes, ratio and keep.")
    if bytes is not None and not hasattr(bytes, "__index__"):
        raise RepconcError(f"bytes is {bytes!r}; it is a whole number.")
    if keep is not None:
        if not 0 < keep <= 1:
            raise RepconcError(f"keep is {keep}; it is a share of the quality, above 0 and at most 1.")
        return None
    if ratio is not None and not 4 <= ratio <= 4 * dimension:
        raise RepconcError(f"ratio is {ratio:g}; {dimension} floats can be made 4 to {4 * dimension} times smaller.")
    fewest = 2 if codes == "additive" else 1
    size = bytes if bytes is not None else max(fewest, round(4 * dimension / (64 if ratio is None else ratio)))
    if not 1 <= size <= dimension:
        raise RepconcError(
            f"Vectors of {dimension} dimensions are made of 1 to {dimension} bytes, a byte a dimension at most; "
            f"{size} were asked for."
        )
    return size


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
