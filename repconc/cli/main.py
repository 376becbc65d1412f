"""`repconc`: the verbs, and what every verb shares — exit codes and errors of one sentence.

0 done, 1 failed, 2 wrong usage, 3 a check did not hold, 130 interrupted.
"""

import io
import os
import sys
from typing import Annotated

import typer

from repconc import __version__
from repconc.cli import (
    bench,
    compare,
    compress,
    data,
    demo,
    encode,
    evaluate,
    exchange,
    index,
    search,
    serve,
    train,
    tune,
)
from repconc.errors import CheckError, RepconcError, first_line

app = typer.Typer(
    name="repconc",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Dense retrieval with tiny indexes. Start with: **repconc demo**",
)
app.add_typer(data.app, name="data")
app.command("encode")(encode.encode)
app.command("train")(train.train)
app.command("compress")(compress.compress)
app.add_typer(index.app, name="index")
app.add_typer(exchange.export_app, name="export")
app.add_typer(exchange.import_app, name="import")
app.command("search")(search.search)
app.command("serve")(serve.serve)
app.command("tune")(tune.tune)
app.command("eval")(evaluate.evaluate)
app.command("compare")(compare.compare)
app.command("bench")(bench.bench)
app.command("demo")(demo.demo)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show it.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    if debug:
        os.environ["REPCONC_DEBUG"] = "1"


def main() -> None:
    """Run a verb and turn what it raises into a sentence and an exit code."""
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # we show a bar of our own
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that knows less than UTF-8 still gets its figures
    try:
        app()
    except SystemExit as end:
        if end.code == 130:
            _say("interrupted.")
        raise
    except (RepconcError, OSError) as error:
        if os.environ.get("REPCONC_DEBUG"):
            raise
        _say(_sentence(error))
        sys.exit(3 if isinstance(error, CheckError) else 1)
    except Exception as error:
        if os.environ.get("REPCONC_DEBUG"):
            raise
        _say(f"unexpected {type(error).__name__}: {first_line(error)}; 'repconc --debug ...' shows where.")
        sys.exit(1)


def _sentence(error: Exception) -> str:
    """What the system says of a file, in the form of our own errors."""
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror.lower()}; nothing was changed by the step that failed."
    return str(error)


def _say(sentence: str) -> None:
    print(f"repconc: {sentence}", file=sys.stderr)


if __name__ == "__main__":
    main()
