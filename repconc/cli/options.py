"""Options and arguments that several verbs share, and the progress bar."""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.text import Text

from repconc.errors import RepconcError, first_line
from repconc.packages import Progress

Dataset = Annotated[
    str, typer.Argument(metavar="DATASET", help="A BEIR or MS MARCO folder, or a name: hotpotqa, irds:NAME, hf:NAME.")
]
IndexFolder = Annotated[Path, typer.Argument(metavar="INDEX", help="A folder that `repconc index build` made.")]
IndexModel = Annotated[str | None, typer.Option("--model", help="The index's model, where it has moved.")]
VectorName = Annotated[
    str | None,
    typer.Option("--name", help="With --vectors: the array or column with them, where a file holds several."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no remarks.")]
Split = Annotated[str, typer.Option("--split", help="Which queries and judgements.")]
Measures = Annotated[
    str | None,
    typer.Option(
        "--measures", help="Comma-separated, any that ir-measures knows. [default: MRR@10,MRR@100,nDCG@10,R@100,R@1000]"
    ),
]


def parse_measures(text: str | None) -> list[str]:
    from repconc.evaluation.measures import MEASURES
    from repconc.evaluation.measures import parse_measures as check

    names = [name.strip() for name in re.split(r",(?![^()]*\))", text) if name.strip()] if text else list(MEASURES)
    return list(check(names))  # before any work is done for a measure that does not exist


class _Rate(ProgressColumn):
    """Items a second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed:,.0f}/s" if speed else "")


@contextmanager
def progress_bar(label: str, quiet: bool) -> Iterator[Progress]:
    """A bar on standard error with rate and time left; it does not appear where nobody can see it move."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda done, total: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _Rate())
    times = (TimeElapsedColumn(), TimeRemainingColumn())
    with Bars(*columns, *times, console=console, speed_estimate_period=300) as bars:
        task = bars.add_task(label, total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total or None)


@contextmanager
def progress_bars(quiet: bool) -> Iterator[Callable[[str], Progress]]:
    """A bar for each piece of work, by its name."""
    with ExitStack() as bars:
        yield lambda work: bars.enter_context(progress_bar(work, quiet))


def input_lines() -> Iterator[str]:
    """Lines of standard input."""
    try:
        yield from sys.stdin
    except UnicodeDecodeError as error:
        raise RepconcError(f"Standard input is not text in UTF-8 ({first_line(error)}).") from error


def remark(text: str, quiet: bool) -> None:
    """A line for a person, on standard error."""
    if not quiet:
        typer.echo(text, err=True)
