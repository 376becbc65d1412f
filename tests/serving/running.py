"""A real server in a process of its own, on a free port of loopback."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

TOKEN = "a token of the tests, long enough"
STARTUP_SECONDS = 120


class Reply(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self) -> str:
        return self.json["error"]["code"]


class Running(NamedTuple):
    """A server that runs."""

    address: str
    process: subprocess.Popen
    log: Path

    def ask(self, path: str, content=None, method: str | None = None, token: str | None = None, **headers) -> Reply:
        """content: JSON, or bytes as they are."""
        body = content if isinstance(content, bytes | None) else json.dumps(content).encode()
        all_headers = {"Content-Type": "application/json"} if body is not None else {}
        all_headers |= {"Authorization": f"Bearer {token}"} if token else {}
        request = urllib.request.Request(self.address + path, body, all_headers | headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return Reply(response.status, dict(response.headers), response.read())
        except urllib.error.HTTPError as error:
            return Reply(error.code, dict(error.headers), error.read())

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


@contextmanager
def running(*arguments, folder: Path, token: str | None = TOKEN) -> Iterator[Running]:
    """Serve with these arguments until the block ends; folder: for the log."""
    server = start(*arguments, folder=folder, token=token)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
        server.process.wait()


def start(*arguments, folder: Path, token: str | None = TOKEN, port: int = 0) -> Running:
    log = folder / f"server-{time.monotonic_ns()}.log"
    environment = {name: value for name, value in os.environ.items() if name != "REPCONC_TOKEN"}
    environment |= {"REPCONC_TOKEN": token} if token else {}
    command = [sys.executable, "-m", "repconc.cli.main", "serve", *map(str, arguments), "--port", str(port)]
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    deadline = time.monotonic() + STARTUP_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if found := re.search(r"Serving .* at (http://\S+) \(", log.read_text()):
            server = Running(found[1], process, log)
            _wait_until_ready(server, deadline)
            return server
        time.sleep(0.05)
    process.kill()
    raise AssertionError(f"the server did not start: {log.read_text()}")


def _wait_until_ready(server: Running, deadline: float) -> None:
    while time.monotonic() < deadline:
        try:
            if server.ask("/ready").status in (200, 401):
                return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"the server is not ready: {server.log.read_text()}")


def wait_for(condition: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)
