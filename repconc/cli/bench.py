"""`repconc bench`: measure against named rivals in one run, from a checkout of the project."""

import importlib
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import repconc
from repconc.cli.options import Json, Quiet, remark
from repconc.errors import CheckError, RepconcError
from repconc.evaluation.tables import Table

SUITES = ("assign", "step", "index", "scan", "vectors", "methods", "additive", "serve")


def bench(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help=f"One of: {', '.join(SUITES)}.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="A short version that judges nothing and keeps nothing.")
    ] = False,
    sets: Annotated[
        str | None,
        typer.Option("--sets", help="Suite methods: names, or BEIR or MS MARCO folders, by comma."),
    ] = None,
    recipes: Annotated[str | None, typer.Option("--recipes", help="Suite methods: recipes by comma.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure a part against its rivals. A full run is kept in benchmarks/results/; a missed goal exits with 3.

    Example: repconc bench assign --quick
    """
    if suite not in SUITES:
        raise RepconcError(f"There is no suite {suite!r}; there are: {', '.join(SUITES)}.")
    chosen = {name: text.split(",") for name, text in (("sets", sets), ("recipes", recipes)) if text}
    if chosen and suite != "methods":
        raise RepconcError(f"--{next(iter(chosen))} goes with the suite methods; {suite} has data of its own.")
    results, module = _import("results"), _import(suite)
    made_with, kept_here = results.provenance(), not quick and not getattr(module, "KEEPS_ITS_LINES", False)
    missed = 0
    for figure in module.run(quick, **chosen):
        if isinstance(figure, Table):  # for people; machines have its figures
            if not as_json:
                typer.echo(f"\n{figure.render('text')}")
            continue
        line = {**figure._asdict(), "met": None if quick else figure.met}
        if kept_here:
            results.append(suite, line, made_with)
        missed += line["met"] is False
        typer.echo(json.dumps({"suite": suite, **line}, ensure_ascii=False) if as_json else _text(line))
    remark("A quick run judges nothing." if quick else "Kept in benchmarks/results/.", quiet)
    if missed:
        raise CheckError(f"{missed} goals of the suite {suite} were missed.")


def _import(name: str) -> Any:
    """A module of benchmarks/, which lies beside the package in a checkout and is not installed with it."""
    checkout = Path(repconc.__file__).parent.parent
    if not (checkout / "benchmarks" / f"{name}.py").exists():
        raise RepconcError(
            "The measurements are not installed with the package; run this from a checkout of the project."
        )
    if str(checkout) not in sys.path:
        sys.path.insert(0, str(checkout))
    return importlib.import_module(f"benchmarks.{name}")


def _text(line: dict[str, Any]) -> str:
    goal = f"  (goal {line['goal']}: {'met' if line['met'] else 'missed'})" if line["met"] is not None else ""
    against = f", {line['rival']}" if line["rival"] else ""
    return f"{line['value']:>10.4g} {line['unit']:<5} {line['figure']}{against}{goal}"
