"""HTTP as uvicorn speaks it, with bounds on what comes before a request is there: its head, and the time it takes."""

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LARGEST_HEAD = 64 << 10


class BoundedProtocol(HttpToolsProtocol):
    """Closes a connection on which a request does not begin, or whose head is slow or endless."""

    seconds = 10.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._timer: asyncio.TimerHandle | None = None
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._timer is not None:
            self._head += len(data)
            if self._head > LARGEST_HEAD:
                self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._expect_head()

    def on_headers_complete(self) -> None:
        self._let_go()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._let_go()
        super().connection_lost(exc)

    def _expect_head(self) -> None:
        self._let_go()
        self._head = 0
        self._timer = self.loop.call_later(self.seconds, self.transport.close)

    def _let_go(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def bounded(seconds: float) -> type[BoundedProtocol]:
    """With this much time for a head."""
    return type("Protocol", (BoundedProtocol,), {"seconds": seconds})
