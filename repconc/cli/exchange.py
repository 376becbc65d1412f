"""`repconc export` and `repconc import`: an index in the formats of others, and back."""

from pathlib import Path
from typing import Annotated

import typer

from repconc.cli.index import describe
from repconc.cli.options import IndexFolder, Json, Quiet, progress_bar, progress_bars, remark

export_app = typer.Typer(no_args_is_help=True, help="Write an index for faiss or Lance.")
import_app = typer.Typer(no_args_is_help=True, help="Take the codes of another index.")


@export_app.command("faiss")
def to_faiss(
    folder: IndexFolder,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file; ids go to FILE.ids.jsonl beside it.")],
    quiet: Quiet = False,
) -> None:
    """Write an IndexIVFPQ, or an IndexIVFResidualQuantizer of additive codes.

    It is read back and compared before it gets its name.

    Adding documents there would code them wrongly: it holds the codebooks that score, not those that code.

    Example: repconc export faiss index/ -o index.faiss
    """
    from repconc.indexes.faiss_export import export_faiss
    from repconc.indexes.ivf import Index

    export_faiss(Index(folder), output)
    remark("Search it, but add nothing to it through faiss: that would code documents wrongly.", quiet)
    typer.echo(output)


@export_app.command("lance")
def to_lance(
    folder: IndexFolder,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the dataset.")],
    quiet: Quiet = False,
) -> None:
    """Write a dataset of Lance with an IVF_PQ index over it; it keeps the decoded vectors.

    Example: repconc export lance index/ -o index.lance
    """
    from repconc.indexes.ivf import Index
    from repconc.indexes.lance_export import export_lance

    with progress_bar("writing", quiet) as progress:
        export_lance(Index(folder), output, progress)
    typer.echo(output)


@import_app.command("faiss")
def from_faiss(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="IndexIVFPQ or IndexPQ over inner products.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the index.")],
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Take the codes of a faiss file, with ids from FILE.ids.jsonl where that is there.

    Only for files that you trust: the reader of faiss is not hardened against others.

    Example: repconc import faiss index.faiss -o index/
    """
    from repconc.indexes.faiss_export import import_faiss

    with progress_bars(quiet) as show:
        built = import_faiss(path, output, show=show)
    describe(built, as_json)
