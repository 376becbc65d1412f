"""A load generator for HTTP on loopback: many connections in one event loop, closed loop or at a fixed rate."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import cast

import numpy as np

LOST = 0
"""The status of a request whose connection broke."""


class Connection(asyncio.Protocol):
    """One connection that is kept; one request at a time."""

    def __init__(self) -> None:
        self._buffer = b""
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Status and body."""
        self._answer = asyncio.get_running_loop().create_future()
        if self._transport is None or not self.is_open:
            return LOST, b""
        self._transport.write(request)
        return await self._answer

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        head, separator, body = self._buffer.partition(b"\r\n\r\n")
        if not separator:
            return
        start = head.lower().index(b"content-length:") + 15
        length = int(head[start:].split(b"\r\n", 1)[0])
        if len(body) >= length and self._answer is not None and not self._answer.done():
            self._buffer = b""
            self._answer.set_result((int(head[9:12]), body))

    def connection_lost(self, error: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_result((LOST, b""))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


class Pool:
    """Connections to one server; those that broke are opened again."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._free: list[Connection] = []

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        connection = self._free.pop() if self._free else None
        try:
            if connection is None or not connection.is_open:
                loop = asyncio.get_running_loop()
                _, connection = await loop.create_connection(Connection, self._host, self._port)
        except OSError:
            return LOST, b""
        try:
            return await connection.ask(request)
        finally:
            self._free.append(connection)

    def close(self) -> None:
        for connection in self._free:
            connection.close()


Act = Callable[[Pool], Awaitable[int]]
"""Sends one request of its choice; gives the status."""


@dataclass
class Report:
    """What came of a run."""

    seconds: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    """Seconds of those that were answered with 200, from the moment at which they should have been sent."""

    def note(self, status: int, seconds: float) -> None:
        self.statuses[status] += 1
        if status == 200:
            self.latencies.append(seconds)

    @property
    def rate(self) -> float:
        """Served a second."""
        return self.statuses[200] / self.seconds

    def share(self, status: int) -> float:
        return self.statuses[status] / max(1, self.statuses.total())

    @property
    def others(self) -> int:
        """Neither 200 nor 429."""
        return self.statuses.total() - self.statuses[200] - self.statuses[429]

    def quantile(self, part: float) -> float:
        return float(np.quantile(self.latencies, part)) if self.latencies else float("nan")


async def closed_loop(pool: Pool, act: Act, connections: int, seconds: float) -> Report:
    """Each connection sends its next request when the last was answered: what the server can do at most."""
    report, began = Report(), time.perf_counter()

    async def run() -> None:
        while (start := time.perf_counter()) - began < seconds:
            status = await act(pool)
            report.note(status, time.perf_counter() - start)
            if status == LOST:
                await asyncio.sleep(0.05)

    await asyncio.gather(*(run() for _ in range(connections)))
    report.seconds = time.perf_counter() - began
    return report


async def open_loop(pool: Pool, act: Act, connections: int, rate: float, seconds: float) -> Report:
    """Requests at a fixed rate, however long the answers take; when all connections are busy the next ones wait."""
    report, began, room = Report(), time.perf_counter(), asyncio.Semaphore(connections)
    tasks: set[asyncio.Task[None]] = set()

    async def send(due: float) -> None:
        try:
            report.note(await act(pool), time.perf_counter() - due)
        finally:
            room.release()

    for number in range(int(rate * seconds)):
        due = began + number / rate
        if (early := due - time.perf_counter()) > 0:
            await asyncio.sleep(early)
        await room.acquire()
        if time.perf_counter() - began > seconds:
            break
        task = asyncio.create_task(send(due))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    report.seconds = max(seconds, time.perf_counter() - began)
    return report


def request(method: str, path: str, body: bytes = b"", token: str | None = None) -> bytes:
    """The bytes of a request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    if token:
        lines.append(f"Authorization: Bearer {token}")
    return "\r\n".join([*lines, "", ""]).encode() + body
