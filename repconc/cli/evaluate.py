"""`repconc eval`: measure a system or a run file."""

import json
import re
from pathlib import Path
from typing import Annotated

import typer

from repconc.cli.options import Dataset, Json, Measures, Quiet, Split, parse_measures, progress_bar, remark
from repconc.errors import RepconcError


def evaluate(
    system: Annotated[
        str,
        typer.Argument(
            metavar="SYSTEM", help="A run file, an index, a model, a folder from `repconc encode`, or bm25."
        ),
    ],
    dataset: Dataset,
    split: Split = "test",
    measures: Measures = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Results a query.")] = 1000,
    run_out: Annotated[Path | None, typer.Option("--run-out", help="Write the results as a TREC run file.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Search with every judged query of a split, or take a run file, and measure.

    Example: repconc eval vectors/ hotpotqa --split dev --run-out static.run
    """
    from repconc.cli.systems import check_split, open_system
    from repconc.data.load import load_dataset
    from repconc.evaluation.measures import answer
    from repconc.evaluation.measures import evaluate as measure
    from repconc.evaluation.runs import read_run, write_run
    from repconc.evaluation.tables import Table

    names = parse_measures(measures)
    if run_out and run_out.is_dir():
        raise RepconcError(f"{run_out} is a folder; give the name of a file.")
    loaded = load_dataset(dataset)
    corpus = check_split(loaded, split, quiet)
    if Path(system).is_file():
        run = read_run(system)
    else:
        search = open_system(system, loaded, corpus, quiet)
        with progress_bar("searching", quiet) as progress:
            run = answer(search, loaded.queries(split), k, progress)
        if (deepest := max(int(cut) for cut in ["1", *re.findall(r"@(\d+)", " ".join(names))])) > k:
            remark(f"A measure looks at {deepest} results and only {k} were asked for; it can only be lower.", quiet)
    qrels = loaded.qrels(split)
    evaluation = measure(run, qrels, names, loaded.relevance(split))
    means = evaluation.means
    if as_json:
        report = {"system": system, "dataset": loaded.name, "split": split, "queries": len(qrels)}
        typer.echo(json.dumps(report | {"measures": means, "tied@10": evaluation.tied}, ensure_ascii=False))
    else:
        row = [system, *(f"{value:.4f}" for value in means.values()), f"{evaluation.tied:.1%}"]
        typer.echo(Table(["system", *means, "tied@10"], [row]).render("text"))
    empty = len(qrels) - sum(bool(run.get(query_id)) for query_id in qrels)
    remark(f"{len(qrels):,} queries of {loaded.name}/{split}; {empty} brought nothing back and count as 0.", quiet)
    if run_out:
        write_run(run_out, run, tag="-".join(Path(system).name.split()) or "repconc")
