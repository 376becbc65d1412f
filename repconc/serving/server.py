"""Run the application: listen, say where, and end cleanly."""

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType

import uvicorn

from repconc.errors import RepconcError
from repconc.serving.app import create_app
from repconc.serving.gate import Gate
from repconc.serving.protocol import bounded
from repconc.serving.served import LANES, Served
from repconc.serving.settings import Access, Limits, Source

BACKLOG = 1024
SWITCH_SECONDS = 0.0002
"""After which a thread that computes lets another one in. With Python's own 5 ms, a search that comes back from native
code would wait that long each time, behind the loop that reads requests."""


class Server(uvicorn.Server):
    """Tells the gate when the end has come, so that nothing new is taken on connections that are still open."""

    def __init__(self, config: uvicorn.Config, gate: Gate) -> None:
        super().__init__(config)
        self._gate = gate

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._gate.closing = True
        super().handle_exit(sig, frame)


def open_indexes(sources: Sequence[Source], limits: Limits) -> dict[str, Served]:
    """All indexes by name, opened."""
    names = [source.name for source in sources]
    if twice := {name for name in names if names.count(name) > 1}:
        raise RepconcError(f"Two indexes are called {sorted(twice)[0]!r}; name them: NAME=FOLDER.")
    return {source.name: Served(source, limits) for source in sources}


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections from now on; port 0 finds a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        raise RepconcError(f"Nobody can listen on {host}, port {port} ({error}); choose another one.") from error


def serve(
    sources: Sequence[Source], host: str, port: int, access: Access, limits: Limits, ready: Callable[[str], None]
) -> None:
    """Serve until a signal; `ready` is told the address."""
    indexes = open_indexes(sources, limits)
    _, gate = create_app(indexes, access, limits)
    with listen(host, port) as listener:
        ready(address_of(listener))
        run(gate, listener, limits)


def run(gate: Gate, listener: socket.socket, limits: Limits) -> None:
    """Serve on a socket until a signal; what was taken is finished."""
    config = uvicorn.Config(
        gate,
        access_log=False,  # nothing of a request gets into the log
        log_config=None,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        http=bounded(limits.seconds),
        ws="none",
        lifespan="on",
        timeout_keep_alive=30,
        timeout_graceful_shutdown=int(limits.seconds) + 1,
    )
    sys.setswitchinterval(SWITCH_SECONDS)
    signal.signal(signal.SIGTERM, _end)  # uvicorn hands it on to us when everything is finished
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    Server(config, gate).run(sockets=[listener])


def _end(number: int, frame: FrameType | None) -> None:
    """To be told to end is no failure. Work that was left behind would keep Python alive until it is done."""
    if any(thread.name.startswith(LANES) for thread in threading.enumerate()):
        logging.shutdown()
        os._exit(0)
    sys.exit(0)


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
