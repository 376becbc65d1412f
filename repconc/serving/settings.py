"""What an operator may set: bounds on work, and who may do what."""

import ipaddress
import math
import re
from pathlib import Path

from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt

from repconc.config import Settings
from repconc.errors import RepconcError

SHORTEST_TOKEN = 16


class Limits(Settings):
    """Bounds on the work that the server takes on. Those on a single request are in schemas.py."""

    requests: PositiveInt = 256
    """At work or waiting, all together; past it a request is told to come again."""
    queries: PositiveInt = 1024
    """Waiting, for each index."""
    documents: PositiveInt = 1024
    """Waiting to be written, for each index."""
    together: PositiveInt = 32
    """Queries that are encoded and scanned together; others are read from the network meanwhile."""
    wait: NonNegativeFloat = 0.002
    """Seconds that a query waits for others, where the last one had company."""
    seconds: PositiveFloat = 10.0
    """For a whole request."""
    body: PositiveInt = 4 << 20
    """Bytes of a request."""
    answer: PositiveInt = 16 << 20
    """Bytes of an answer."""
    segments: PositiveInt = 4
    """Of an index, until the small ones are merged: with the next write, or after it where they are too large."""


class Source(Settings):
    """An index to serve, and what belongs to it."""

    name: str
    folder: Path
    model: str | None = None
    """The index's own, where it has moved."""
    vectors: Path | None = None
    """Uncompressed ones, as `repconc encode` makes them."""
    threads: PositiveInt | None = None
    device: str | None = None


class Access(Settings):
    """Who may do what."""

    token: str | None = None
    hosts: frozenset[str] = frozenset({"localhost", "127.0.0.1", "::1"})
    """Names under which the server answers."""
    open_to_read: bool = True
    """Whether only writing needs the token."""


def read_seconds(value: float) -> float:
    """The time of a request; it has to end some day."""
    if not math.isfinite(value):
        raise RepconcError(f"--timeout is {value}; give a number of seconds.")
    return value


def access_of(host: str, token: str | None, names: list[str], protected: bool = False) -> Access:
    """What an address calls for: on loopback only writing needs the token, elsewhere everything does."""
    if token is not None and len(token) < SHORTEST_TOKEN:
        raise RepconcError(f"The token is shorter than {SHORTEST_TOKEN} characters; make a longer one, at random.")
    local = is_loopback(host)
    if not local and token is None:
        raise RepconcError(
            f"{host} can be reached from other machines, so that a token is needed: set REPCONC_TOKEN, give "
            "--token-file, or listen on 127.0.0.1."
        )
    if protected and token is None:
        raise RepconcError("Reading is to be protected and there is no token: set REPCONC_TOKEN or give --token-file.")
    if not local and not names and is_wildcard(host):
        raise RepconcError(f"Say by --allow-host under which names the server is reached at {host}.")
    own = Access().hosts if local else frozenset() if is_wildcard(host) else frozenset({host.lower()})
    hosts = own | set(map(_host_name, names))
    return Access(token=token, hosts=hosts, open_to_read=local and not protected)


def _host_name(text: str) -> str:
    """As it stands in a Host header, without a port: the server answers under its names at whatever port it has."""
    name = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    try:
        return str(ipaddress.ip_address(name))
    except ValueError:
        if not re.fullmatch(r"[\w.-]+", name, re.ASCII):
            raise RepconcError(
                f"{text!r} is no name of a host; give it without scheme and port: search.example."
            ) from None
    return name.lower()


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def is_wildcard(host: str) -> bool:
    return host in {"0.0.0.0", "::"}


def read_token(file: Path | None, environment: str | None) -> str | None:
    """From a file or from the environment; never from an argument, which every user of the machine can see."""
    if file is None:
        return environment or None
    try:
        token = file.read_text(encoding="utf-8").strip()
    except UnicodeDecodeError as error:
        raise RepconcError(
            f"{file} is no text in UTF-8; write a token into it, such as secrets.token_urlsafe gives."
        ) from error
    if not token:
        raise RepconcError(f"{file} holds no token; write one into it.")
    return token
