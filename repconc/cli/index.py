"""`repconc index`: build an index, change it, look into it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from repconc.cli.options import (
    IndexFolder,
    IndexModel,
    Json,
    Quiet,
    VectorName,
    input_lines,
    progress_bar,
    progress_bars,
    remark,
)
from repconc.errors import RepconcError

if TYPE_CHECKING:
    from repconc.compression.given import Given
    from repconc.indexes.ivf import Index
    from repconc.indexes.writing import Changes
    from repconc.records import Document

app = typer.Typer(no_args_is_help=True, help="Build an index, change it, look into it.")

Source = Annotated[
    str | None,
    typer.Argument(
        metavar="DOCUMENTS", help="JSON lines with _id, text, title, metadata (.gz too), '-' for stdin, or a data set."
    ),
]
GivenVectors = Annotated[
    Path | None,
    typer.Option("--vectors", help="Vectors of the documents, a row each; the documents then are JSON lines or --ids."),
]
GivenIds = Annotated[Path | None, typer.Option("--ids", help="With --vectors: an id a line, instead of documents.")]


@app.command()
def build(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A folder that `repconc train` made, or a hub's name.")],
    dataset: Annotated[
        str | None, typer.Argument(metavar="DATASET", help="As everywhere; without one, --vectors give ids alone.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the index.")] = Path("index"),
    vectors: Annotated[
        Path | None, typer.Option(help="What `repconc encode MODEL` made of the data set, so that it is not redone.")
    ] = None,
    lists: Annotated[int | None, typer.Option(min=1, help="Inverted lists. [default: 1.7 * sqrt(documents)]")] = None,
    beam: Annotated[
        int | None,
        typer.Option(min=1, help="For additive codes: partial codes that are kept. [default: the model's]"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, mps. [default: the best there is]")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Code the documents of a data set and put them into an inverted file.

    Example: repconc index build model/ hotpotqa -o index/
    """
    from repconc.data.load import load_dataset
    from repconc.indexing import build_index
    from repconc.models.repconc import RepconcModel

    loaded = None if dataset is None else load_dataset(dataset)
    with progress_bars(quiet) as show:
        trained = RepconcModel.load(model, device)
        built = build_index(trained, loaded, output, vectors=vectors, lists=lists, seed=seed, beam=beam, show=show)
    describe(built, as_json)


@app.command()
def add(
    folder: IndexFolder,
    documents: Source = None,
    vectors: GivenVectors = None,
    ids: GivenIds = None,
    name: VectorName = None,
    model: IndexModel = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Add documents; refused where an id is there already.

    Example: repconc index add index/ new.jsonl
    """
    changes = _add(folder, documents, _given(vectors, name, documents, ids), model, quiet, replace=False)
    _report(changes, as_json)


@app.command()
def update(
    folder: IndexFolder,
    documents: Source = None,
    vectors: GivenVectors = None,
    ids: GivenIds = None,
    name: VectorName = None,
    model: IndexModel = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Add documents, and replace those whose ids are there already.

    Example: repconc index update index/ changed.jsonl
    """
    changes = _add(folder, documents, _given(vectors, name, documents, ids), model, quiet, replace=True)
    _report(changes, as_json)


@app.command()
def remove(
    folder: IndexFolder,
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of documents; '-' reads them from stdin.")],
    as_json: Json = False,
) -> None:
    """Remove documents for good.

    Example: repconc index remove index/ doc17 doc18
    """
    from repconc.indexes.writing import remove as remove_ids

    wanted = [line.rstrip("\r\n") for line in input_lines()] if ids == ["-"] else ids
    _report(remove_ids(folder, [id for id in wanted if id]), as_json)


@app.command()
def compact(folder: IndexFolder, as_json: Json = False, quiet: Quiet = False) -> None:
    """Merge all segments into one and drop what was removed. Results stay as they are.

    Example: repconc index compact index/
    """
    from repconc.indexes.manifest import read_manifest
    from repconc.indexes.writing import compact as merge

    before = len(read_manifest(folder).segments)
    with progress_bar("merging", quiet) as progress:
        changes = merge(folder, progress)
    after = len(read_manifest(folder).segments)
    remark(f"{before} segments before, {after} now.", quiet)
    if as_json or changes.removed or before == after:
        _report(changes, as_json)


@app.command()
def check(folder: IndexFolder, as_json: Json = False, quiet: Quiet = False) -> None:
    """Compare every block of every file with its checksum, and every count. Exit code 3 where one does not hold.

    Example: repconc index check index/
    """
    from repconc.errors import CheckError
    from repconc.indexes.check import check_index

    try:
        with progress_bar("checking", quiet) as progress:
            counts = check_index(folder, progress)
    except RepconcError as error:
        raise CheckError(str(error)) from error
    typer.echo(json.dumps(counts) if as_json else ", ".join(f"{value:,} {name}" for name, value in counts.items()))


@app.command()
def info(folder: IndexFolder, as_json: Json = False) -> None:
    """What is in an index: model, counts, bytes by part, and the ratio against float32.

    Example: repconc index info index/
    """
    from repconc.indexes.ivf import Index

    describe(Index(folder), as_json)


def _given(vectors: Path | None, name: str | None, documents: str | None, ids: Path | None) -> "Given | None":
    """Documents whose vectors are there; None where they are to be encoded."""
    from repconc.compression.given import open_given

    if vectors is None:
        if documents is None or ids is not None or name is not None:
            raise RepconcError("Give documents, or vectors by --vectors with documents or --ids.")
        return None
    given = open_given(vectors, name=name, documents=documents, ids=ids)
    if not given.named:
        raise RepconcError("Say what the documents are called: give their JSON lines, or --ids with one a line.")
    return given


def _add(
    folder: Path, source: str | None, given: "Given | None", model: str | None, quiet: bool, *, replace: bool
) -> "Changes":
    from repconc.compression.given import paired
    from repconc.indexes.ivf import Index
    from repconc.indexing import add_documents, add_vectors
    from repconc.search import encoder_of

    index = Index(folder)
    if given is not None:
        changes = add_vectors(folder, paired(given), replace=replace)
    else:
        assert source is not None
        encoder = encoder_of(index, name=model)
        with progress_bar("coding", quiet) as progress:
            changes = add_documents(folder, _documents(source), replace=replace, encoder=encoder, progress=progress)
    if (segments := len(Index(folder).segments)) > 8:
        remark(f"The index has {segments} segments; 'repconc index compact {folder}' makes it faster.", quiet)
    return changes


def _documents(source: str) -> "Iterator[Document]":
    """From JSON lines or from a data set; the first bad line ends it, before anything is written."""
    from repconc.data.beir import read_documents
    from repconc.data.load import load_dataset
    from repconc.lines import refuse

    path = Path("/dev/stdin" if source == "-" else source)
    if source == "-" or path.is_file():
        return (document for _, document in read_documents(path, refuse))
    return iter(load_dataset(source).documents)


def _report(changes: "Changes", as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(changes._asdict()))
    else:
        done = [f"{count:,} {name}" for name, count in changes._asdict().items() if count]
        typer.echo(", ".join(done) or "nothing to do")


def describe(index: "Index", as_json: bool) -> None:
    manifest, sizes = index.manifest, index.sizes()
    count = max(1, len(index))
    described = {
        "index": str(index.folder),
        "model": manifest.model.name if manifest.model else None,
        "documents": len(index),
        "removed": sum(segment.removed for segment in manifest.segments),
        "segments": len(manifest.segments),
        "codes": f"{manifest.bytes} bytes, {index.coding.structure}",
        "lists": manifest.lists,
        "probes": manifest.probes,
        "bytes": sizes,
        "bytes_per_document": index.nbytes / count,
        "times_smaller_than_float32": 4 * manifest.dimension * count / max(1, index.nbytes),
    }
    if as_json:
        typer.echo(json.dumps(described))
        return
    for name in ("index", "model", "documents", "removed", "segments", "codes", "lists", "probes"):
        value = described[name]
        typer.echo(f"{name + ':':<12}{value:,}" if isinstance(value, int) else f"{name + ':':<12}{value}")
    typer.echo("bytes on disk:")
    for part, size in sizes.items():
        typer.echo(f"  {part + ':':<12}{size:>16,}")
    typer.echo(
        f"To search: {described['bytes_per_document']:.1f} bytes a document (codes, lists, codebooks, removal bits; "
        f"ids and texts lie beside), {described['times_smaller_than_float32']:.1f}x less than "
        f"{manifest.dimension} floats."
    )
