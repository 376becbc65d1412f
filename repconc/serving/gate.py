"""The gate that every request passes: load, host, token, size and time; and what every answer carries.

It stands before the routes and is plain ASGI: when the server is full, saying so must cost almost nothing.
"""

import asyncio
import base64
import binascii
import hmac
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from hashlib import sha256
from typing import Any, NamedTuple

from repconc.serving.headers import HEADERS, NAMES
from repconc.serving.logs import tell_failure
from repconc.serving.metrics import OTHER, Metrics
from repconc.serving.refusals import Refusal, internal, shutting_down, too_late, too_many, too_slow
from repconc.serving.settings import Access, Limits

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

FREE = frozenset({"/health"})
"""Whoever watches the server asks this without a token and by any name."""
WATCHED = FREE | {"/ready", "/metrics"}
"""What is answered also when the server is full."""
LARGE = 64 << 10
"""Bytes of an answer that may not fit into the buffers on its way."""
READS = frozenset({"/v1/search", "/v1/embeddings"})
"""What is only read although it is posted; whatever else is not GET or HEAD counts as writing."""

Route = tuple[str, str]
"""Method and path."""


class Direct(NamedTuple):
    """A route that has to be fast: the framework would take longer than the search."""

    path: str
    answer: Callable[[bytes, Mapping[bytes, bytes], bytes], Awaitable[bytes]]
    """Query string, headers and body -> JSON."""


class Gate:
    """Lets in what may come in."""

    def __init__(
        self, app: Application, access: Access, limits: Limits, metrics: Metrics, direct: dict[Route, Direct]
    ) -> None:
        """direct: routes that are answered without asking the application."""
        self._app, self._access, self._limits, self._metrics = app, access, limits, metrics
        self.direct = direct
        self._token = sha256(access.token.encode()).digest() if access.token else None
        self.inside, self.closing = 0, False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, answer = time.perf_counter(), _Answer(send)
        if scope["method"] == "HEAD":  # whoever speaks HTTP for us leaves the body out
            scope = {**scope, "method": "GET"}
        self.inside += 1
        try:
            await self._pass(scope, receive, answer)
            await answer.end()
        except Refusal as refusal:
            await answer.refuse(refusal)
        except asyncio.CancelledError:  # the server ends and waits no longer
            await answer.refuse(shutting_down())
        except Exception as error:
            tell_failure("a request failed", error)
            await answer.refuse(internal())
        finally:
            self.inside -= 1
            route = scope.get("route")
            name = OTHER if route is None else route.path
            self._metrics.request(name, answer.status, time.perf_counter() - began)

    async def _pass(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        path, headers = scope["path"], dict(scope["headers"])
        if self.inside > self._limits.requests and path not in WATCHED:
            raise too_many()
        if self.closing and path not in WATCHED:
            raise shutting_down()
        if len(headers) < len(scope["headers"]) and [name for name, _ in scope["headers"]].count(b"host") > 1:
            raise Refusal(400, "two_hosts", "The request names its host twice; send one Host header.", close=True)
        if path not in FREE:
            self._check_host(headers.get(b"host", b""))
            self._check_token(scope["method"], path, headers.get(b"authorization", b""))
        body: bytes | None = None
        try:
            async with asyncio.timeout(self._limits.seconds):
                body = await self._whole_body(receive)
                direct = self.direct.get((scope["method"], path))
                if direct is None:
                    await self._app(scope, _again(body, receive), answer.send)
                else:
                    scope["route"] = direct
                    await answer.give(await direct.answer(scope["query_string"], headers, body))
        except TimeoutError as error:
            if answer.status:
                raise
            raise (too_slow if body is None else too_late)(self._limits.seconds) from error

    def _check_host(self, header: bytes) -> None:
        """A page of somewhere else may point its own name at this machine: only known names are answered."""
        name = header.decode("latin-1").lower()
        name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
        if name not in self._access.hosts:
            raise Refusal(421, "unknown_host", "The server does not answer under this name; --allow-host adds one.")

    def _check_token(self, method: str, path: str, header: bytes) -> None:
        if self._access.open_to_read and (method in ("GET", "HEAD") or path in READS):
            return
        if self._token is None:
            raise Refusal(403, "read_only", "The server has no token, so that nobody may write; start it with one.")
        if not hmac.compare_digest(sha256(_secret_of(header)).digest(), self._token):
            refusal = Refusal(401, "unauthorized", "This needs the token: send it as 'Authorization: Bearer TOKEN'.")
            scheme = "Bearer" if self._access.open_to_read else 'Basic realm="repconc", charset="UTF-8"'
            refusal.headers["www-authenticate"] = scheme
            raise refusal

    async def _whole_body(self, receive: Receive) -> bytes:
        """Read the body before anything is done with it, and not more than is allowed."""
        body = bytearray()
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Refusal(400, "cut_off", "The request ended before its length; send it whole.", close=True)
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > self._limits.body:
                sentence = f"The request is larger than {self._limits.body:,} bytes; send less at a time."
                raise Refusal(413, "too_large", sentence, close=True)
        return bytes(body)


def _again(body: bytes, receive: Receive) -> Receive:
    """As if the body had not been read yet."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> MutableMapping[str, Any]:
        return messages.pop() if messages else await receive()

    return again


class _Answer:
    """What goes back: with our headers on it, and not twice."""

    def __init__(self, send: Send) -> None:
        self._send, self.status, self._ends = send, 0, True

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            known = {name for name, _ in message["headers"]} & NAMES
            message["headers"] = [*message["headers"], *(pair for pair in HEADERS if pair[0] not in known)]
        elif len(message.get("body", b"")) > LARGE and not message.get("more_body"):
            self._ends = False
            message["more_body"] = True
        await self._send(message)

    async def end(self) -> None:
        """A large answer is not over, and its request stays inside, before the client has read it."""
        if not self._ends:
            self._ends = True
            await self._send({"type": "http.response.body", "body": b""})

    async def give(self, body: bytes) -> None:
        """JSON, and all is well."""
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *HEADERS]
        self.status = 200
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})

    async def refuse(self, refusal: Refusal) -> None:
        if self.status:  # half of an answer is on its way: nothing can be said any more
            return
        body = refusal.body
        own = {"content-type": "application/json", "content-length": str(len(body)), **refusal.headers}
        headers = [(name.encode(), value.encode()) for name, value in own.items()]
        await self.send({"type": "http.response.start", "status": refusal.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})


def _secret_of(header: bytes) -> bytes:
    """The token of an Authorization header: a bearer's, or the password that a browser asks for."""
    scheme, _, rest = header.partition(b" ")
    if scheme.lower() == b"bearer":
        return rest.strip()
    if scheme.lower() == b"basic":
        try:
            return base64.b64decode(rest, validate=True).partition(b":")[2]
        except binascii.Error:
            return b""
    return b""
