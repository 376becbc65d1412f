"""`repconc compress`: vectors that are there already, into a learned index."""

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from repconc.cli.options import Json, Quiet, remark
from repconc.errors import RepconcError
from repconc.training.recipe import Codes
from repconc.training.view import TrainingView

if TYPE_CHECKING:
    from repconc.compression.given import Given
    from repconc.indexes.manifest import Reference

CHECKED, ALIKE = 8, 0.9


def compress(
    vectors: Annotated[
        Path,
        typer.Argument(
            metavar="VECTORS",
            help="Document vectors: .npy, .npz, .safetensors, .parquet, or a folder that `repconc encode` made.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the index.")],
    bytes: Annotated[int | None, typer.Option(min=1, help="Bytes a document. [default: 64x smaller]")] = None,
    ratio: Annotated[float | None, typer.Option(help="Or how many times smaller than float32.")] = None,
    keep: Annotated[
        float | None, typer.Option(help="Or the smallest size that keeps this share of a held-out measure: 0.98.")
    ] = None,
    codes: Annotated[
        Codes | None,
        typer.Option(help="Codewords in blocks (product), or whole ones (additive). [default: the recipe's]"),
    ] = None,
    queries: Annotated[Path | None, typer.Option(help="Query vectors, as from a log.")] = None,
    qrels: Annotated[
        Path | None, typer.Option(help="Labels: query, document, grade between tabs, or TREC's four columns.")
    ] = None,
    ids: Annotated[Path | None, typer.Option(help="Ids of the documents, one a line. [default: row numbers]")] = None,
    documents: Annotated[
        Path | None, typer.Option(help="Or the documents: JSON lines with _id, text, title, metadata, a line a row.")
    ] = None,
    query_ids: Annotated[
        Path | None, typer.Option("--query-ids", help="Ids of the queries. [default: row numbers]")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The array or column with the vectors, of several.")] = None,
    query_name: Annotated[str | None, typer.Option("--query-name", help="The same for the queries.")] = None,
    mode: Annotated[
        Literal["documents", "queries", "labels"] | None,
        typer.Option(help="What to learn from. [default: the most that is there]"),
    ] = None,
    metric: Annotated[
        Literal["cosine", "ip"] | None,
        typer.Option(help="[default: cosine where all vectors have length 1, else inner product]"),
    ] = None,
    document_map: Annotated[
        bool, typer.Option("--document-map/--no-document-map", help="Whether document vectors may be mapped too.")
    ] = True,
    hidden: Annotated[int, typer.Option(min=0, help="A hidden layer of this width beside each linear map.")] = 0,
    encoder: Annotated[
        str | None, typer.Option(help="What the vectors came from, so that the index can be searched by text.")
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(help="A TOML file; bytes and seed are those of the options. [default: compress-MODE of recipes/]"),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Page with figures (.html or .md). [default: INDEX.report.html]")
    ] = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Train and build only.")] = False,
    lists: Annotated[int | None, typer.Option(min=1, help="Inverted lists. [default: 1.7 * sqrt(documents)]")] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Learn maps and codebooks for given vectors and build an index. Killed at any point, the same command goes on.

    Example: repconc compress vectors.npy -o index/ --bytes 24 --queries queries.npy --qrels labels.tsv
    """
    from repconc.compression.compress import Result, run
    from repconc.compression.given import open_given
    from repconc.compression.report import as_table, make_report, write_report
    from repconc.indexes.folder import refuse_inside
    from repconc.training.loop import as_progress
    from repconc.training.pipeline import named
    from repconc.training.recipe import make_recipe, read_recipe

    def say(sentence: str) -> None:
        remark(sentence, quiet)

    page = report or named(output).with_name(f"{named(output).name}.report.html")
    if page.suffix not in {".html", ".md"}:
        raise RepconcError(f"{page} is neither .html nor .md; choose one of them for the report.")
    refuse_inside(named(output), page)
    if page.is_dir() or (page.parent.exists() and not page.parent.is_dir()):
        raise RepconcError(f"{page} cannot be written: there is a folder of that name, or a file above it.")
    given = open_given(
        vectors,
        name=name,
        ids=ids,
        documents=documents,
        queries=queries,
        query_name=query_name,
        query_ids=query_ids,
        qrels=qrels,
    )
    sentences: list[str] = []

    def describe(result: Result) -> None:
        made = make_report(result, seed, say)
        write_report(made, result, page)
        write_report(made, result, page.with_suffix(".json"))
        sentences.extend(made.sentences)
        for text in (as_table(made).render("text"), *made.sentences, f"The report is {page}."):
            remark(text, quiet or as_json)

    model = None if encoder is None else _reference(encoder, given)
    with TrainingView(quiet) as view:
        result = run(
            given,
            output,
            bytes=bytes,
            ratio=ratio,
            keep=keep,
            codes=codes,
            mode=mode,
            cosine=None if metric is None else metric == "cosine",
            document_map=document_map,
            hidden=hidden,
            recipe=make_recipe(read_recipe(recipe), recipe) if recipe else None,
            model=model,
            lists=lists,
            seed=seed,
            observe=view,
            show=partial(as_progress, observe=view),
            say=say,
            report=(lambda result: None) if no_report else describe,
        )
    described: dict[str, object] = {"index": str(output), "bytes": result.learned.coding.blocks, "mode": result.mode}
    if not no_report:
        described |= {"report": str(page), "sentences": sentences}
    typer.echo(json.dumps(described) if as_json else output)


def _reference(name: str, given: "Given") -> "Reference":
    """The encoder as the index will name it; where texts are there, a few of them must give the vectors they have."""
    import numpy as np

    from repconc.compression.given import paired
    from repconc.indexes.manifest import Reference
    from repconc.maps import unit
    from repconc.models.encoder import Encoder

    loaded = Encoder(name)
    if loaded.dimension != given.matrix.dimension:
        raise RepconcError(
            f"The encoder {name!r} gives {loaded.dimension} dimensions and the vectors have {given.matrix.dimension}."
        )
    group, block = next(paired(given))
    texts = [document.full_text for document in group[:CHECKED]]
    if all(texts):
        again = unit(loaded.embed_documents(texts))
        alike = float(np.min((unit(block[:CHECKED]) * again).sum(axis=1)))
        if alike < ALIKE:
            raise RepconcError(
                f"The encoder {name!r} gives other vectors for these texts (cosine {alike:.2f}): it is not theirs."
            )
    return Reference(name=loaded.settings.documents, fingerprint=loaded.fingerprint())
