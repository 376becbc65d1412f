"""`repconc serve`: an index as an HTTP service, with a page to try it on."""

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from repconc.cli.options import Quiet, remark
from repconc.errors import RepconcError, import_extra

if TYPE_CHECKING:
    from repconc.serving.settings import Source


def serve(
    indexes: Annotated[
        list[str], typer.Argument(metavar="INDEX", help="Folders with an index; NAME=FOLDER gives it a name.")
    ],
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8080,
    token_file: Annotated[
        Path | None, typer.Option(help="A file that holds the token. [default: the variable REPCONC_TOKEN]")
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A name under which the server is reached; may come several times.")
    ] = None,
    protect_reads: Annotated[
        bool, typer.Option("--protect-reads", help="Ask for the token also for reading, on loopback too.")
    ] = False,
    vectors: Annotated[
        list[str] | None,
        typer.Option(help="What `repconc encode MODEL` made of the same documents, to compare with; or NAME=FOLDER."),
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(help="The index's model, where it has moved; or NAME=MODEL.")
    ] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Of one scan. [default: 1]")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, mps. [default: the best there is]")] = None,
    queue: Annotated[int, typer.Option(min=1, help="Requests at work or waiting; past it they get 429.")] = 256,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for a request.")] = 10.0,
    body: Annotated[int, typer.Option(min=1024, help="Bytes of a request.")] = 4 << 20,
    quiet: Quiet = False,
) -> None:
    """Serve indexes over HTTP, with a page to try them on and an API described at /docs.

    Example: REPCONC_TOKEN=... repconc serve index/ --port 8080
    """
    for library in ("fastapi", "uvicorn", "prometheus_client"):
        import_extra(library, extra="serve")
    from repconc.serving.server import serve as run
    from repconc.serving.settings import Limits, access_of, read_seconds, read_token

    limits = Limits(requests=queue, seconds=read_seconds(timeout), body=body)
    token = read_token(token_file, os.environ.get("REPCONC_TOKEN"))
    access = access_of(host, token, allow_host or [], protect_reads)
    sources = _sources(indexes, vectors or [], model or [], threads, device)
    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING if quiet else logging.INFO)
    for noisy in ("sentence_transformers", "httpx", "httpx2"):
        logging.getLogger(noisy).setLevel(logging.WARNING)

    def ready(address: str) -> None:
        named = ", ".join(source.name for source in sources)
        writing = "with the token" if token else "refused, for there is no token"
        remark(f"Serving {named} at {address} (API: {address}/docs; writing: {writing}). Ctrl-C ends it.", quiet)

    run(sources, host, port, access, limits, ready)


def _sources(
    indexes: list[str], vectors: list[str], models: list[str], threads: int | None, device: str | None
) -> "list[Source]":
    from repconc.serving.settings import Source

    folders = dict(_named(text, _last_name(Path(text))) for text in indexes)
    if len(folders) < len(indexes):
        raise RepconcError("Two indexes have the same name; name them: NAME=FOLDER.")
    first = next(iter(folders))
    chosen = {kind: dict(_named(text, first) for text in given) for kind, given in (("v", vectors), ("m", models))}
    if unknown := (chosen["v"].keys() | chosen["m"].keys()) - folders.keys():
        raise RepconcError(f"There is no index {sorted(unknown)[0]!r} here; there are: {', '.join(folders)}.")
    return [
        Source(
            name=name,
            folder=Path(folder),
            model=chosen["m"].get(name),
            vectors=Path(chosen["v"][name]) if name in chosen["v"] else None,
            threads=threads,
            device=device,
        )
        for name, folder in folders.items()
    ]


def _named(text: str, default: str) -> tuple[str, str]:
    """NAME=REST, or REST with the default name."""
    name, sign, rest = text.partition("=")
    return (name, rest) if sign and name and "/" not in name else (default, text)


def _last_name(folder: Path) -> str:
    """As the user wrote it: a link keeps its own name when it turns."""
    return folder.name if folder.name.strip(".") else folder.resolve().name
