"""`repconc compare`: several run files beside each other, with tests of significance."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from repconc.cli.options import Json, Measures, Quiet, Split, parse_measures
from repconc.errors import RepconcError
from repconc.evaluation.tables import Format


def compare(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN RUN...", help="TREC run files; the first is the reference.")
    ],
    dataset: Annotated[str, typer.Option("--dataset", "-d", help="A BEIR or MS MARCO folder, or a name.")],
    split: Split = "test",
    measures: Measures = None,
    format: Annotated[Format, typer.Option(help="How to print the table.")] = "text",
    seed: Annotated[int, typer.Option(min=0, help="Of the bootstrap.")] = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare runs with the first one: paired two-tailed t-tests, Holm-corrected, and bootstrap intervals.

    Example: repconc compare bm25.run static.run --dataset hotpotqa --format markdown
    """
    from repconc.cli.systems import check_split
    from repconc.data.load import load_dataset
    from repconc.evaluation.compare import compare as compare_runs
    from repconc.evaluation.compare import comparison_table
    from repconc.evaluation.runs import read_run

    if len(runs) < 2:
        raise typer.BadParameter("give at least two run files to compare.")
    names = [path.stem for path in runs] if len({path.stem for path in runs}) == len(runs) else [str(p) for p in runs]
    if len(set(names)) < len(runs):
        raise RepconcError("The same run file is given twice.")
    loaded = load_dataset(dataset)
    check_split(loaded, split, quiet)
    comparison = compare_runs(
        {name: read_run(path) for name, path in zip(names, runs, strict=True)},
        loaded.qrels(split),
        parse_measures(measures),
        loaded.relevance(split),
        seed,
    )
    if as_json:
        cells = {name: {measure: asdict(cell) for measure, cell in row.items()} for name, row in comparison.items()}
        report = {"dataset": loaded.name, "split": split, "reference": names[0], "systems": cells}
        typer.echo(json.dumps(report, ensure_ascii=False))
    else:
        typer.echo(comparison_table(comparison).render(format))
