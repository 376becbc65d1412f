"""`repconc search`: a question in, titles, snippets and scores out."""

import json
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from repconc.cli.options import IndexFolder, IndexModel, Json, VectorName, input_lines
from repconc.errors import RepconcError

if TYPE_CHECKING:
    from repconc.compression.matrices import Matrix
    from repconc.indexes.ivf import Index
    from repconc.records import Hit

QUESTIONS_AT_A_TIME = 64


def search(
    folder: IndexFolder,
    question: Annotated[str | None, typer.Argument(help="Without one, a question a line is read from stdin.")] = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Results a question.")] = 10,
    probes: Annotated[int | None, typer.Option(min=1, help="Lists to read. [default: as tuned]")] = None,
    filter: Annotated[
        str | None, typer.Option("--filter", help="""Over metadata: 'year >= 2020 and lang = "en"'.""")
    ] = None,
    first: Annotated[
        int | None, typer.Option(min=1, help="Bytes of a code to scan; the best are scored with all. [default: all]")
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="For many questions. [default: 1]")] = None,
    vectors: Annotated[
        Path | None, typer.Option(help="Query vectors instead of a question: .npy, .npz, .safetensors or .parquet.")
    ] = None,
    name: VectorName = None,
    model: IndexModel = None,
    as_json: Json = False,
) -> None:
    """Search an index, by text or by vectors.

    Example: repconc search index/ "who wrote the opera about a barber?" -k 3
    """
    from repconc.compression.matrices import open_matrix
    from repconc.indexes.ivf import Index
    from repconc.search import Searcher, encoder_of

    index, options = Index(folder), {"probes": probes, "filter": filter, "first": first, "documents": True}
    if vectors is not None:
        if question is not None:
            raise RepconcError("Give a question or query vectors, not both.")
        _search_vectors(index, open_matrix(vectors, name), k, threads, options, as_json)
        return
    searcher = Searcher(index, encoder_of(index, name=model))
    questions = [question] if question is not None else (line.strip() for line in input_lines() if line.strip())
    for group in _groups(questions):
        answers = searcher.search(group, k, threads, **options)
        for text, hits in zip(group, answers, strict=True):
            _print(text, hits, as_json, alone=question is not None)


def _search_vectors(
    index: "Index", queries: "Matrix", k: int, threads: int | None, options: dict[str, Any], as_json: bool
) -> None:
    number = 0
    for block in queries.blocks(QUESTIONS_AT_A_TIME):
        for hits in index.search(block, k, threads, **options):
            _print(f"row {number}", hits, as_json, alone=False)
            number += 1


def _groups(questions: Iterable[str]) -> Iterable[list[str]]:
    group: list[str] = []
    for question in questions:
        group.append(question)
        if len(group) == QUESTIONS_AT_A_TIME or sys.stdin.isatty():
            yield group
            group = []
    if group:
        yield group


def _print(question: str, hits: "list[Hit]", as_json: bool, alone: bool) -> None:
    if as_json:
        rows = [_row(hit) for hit in hits]
        typer.echo(json.dumps({"question": question, "hits": rows}, ensure_ascii=False))
        return
    if not alone:
        typer.echo(f"\n{question}")
    for rank, hit in enumerate(hits, start=1):
        assert hit.document is not None
        title = hit.document.title or hit.id
        typer.echo(f"{rank:>3}  {hit.score:.4f}  {_printable(title)}  [{_printable(hit.id)}]")
        snippet = textwrap.shorten(_printable(hit.document.text), 200, placeholder=" ...")
        typer.echo(textwrap.indent(textwrap.fill(snippet, 100), " " * 13) if snippet else "")
    if not hits:
        typer.echo("     nothing found")


def _row(hit: "Hit") -> dict[str, object]:
    assert hit.document is not None
    document = hit.document
    described = {"title": document.title, "text": document.text, "metadata": dict(document.metadata)}
    return {"id": hit.id, "score": hit.score, **described}


def _printable(text: str) -> str:
    """Without characters that would move a terminal's cursor."""
    return "".join(character if character.isprintable() else " " for character in text)
