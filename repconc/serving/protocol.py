"""HTTP as uvicorn speaks it, with bounds on what comes before a request is there and after it was answered.

A head must come in time and not be endless; requests that come in a row are answered in a row; what is no HTTP is told
so in the one shape, after what was asked before it; and who does not read an answer is let go.
"""

import asyncio
from collections.abc import Sized

import httptools
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from repconc.serving.headers import HEADERS
from repconc.serving.logs import Seldom
from repconc.serving.refusals import Refusal

LARGEST_HEAD = 64 << 10
LEAST_READ = 64 << 10
"""Bytes that a client must take of a waiting answer, in the time of a request."""
MALFORMED = Seldom("a request that is no HTTP was refused")


class BoundedProtocol(HttpToolsProtocol):
    """One connection."""

    seconds = 10.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.flow = _InARow(transport, self.pipeline)
        self._begun = self._head = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._reader_timer: asyncio.TimerHandle | None = None
        self._last_words: bytes | None = None
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        if self._last_words is not None:
            return
        self._unset_keepalive_if_required()
        begun = self._begun
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self.cycle.keep_alive = False  # what follows would not be HTTP
        except httptools.HttpParserError:
            self._refuse(Refusal(400, "malformed", "This is no HTTP request.", close=True))
            return
        if self._head_timer is not None:  # of what came with the end of another request the length is not known
            self._head = self._head + len(data) if self._begun == begun else 0
            if self._head > LARGEST_HEAD:
                self._refuse(Refusal(431, "head_too_large", "The head of the request is too large.", close=True))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._begun += 1
        self._expect_head()

    def on_headers_complete(self) -> None:
        self._head_timer = _cancelled(self._head_timer)
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        if self.transport.get_write_buffer_size():
            self._watch_reader()
        if self._last_words is not None and not self.pipeline:
            self._say_last_words()
        else:
            super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_reader()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_timer = _cancelled(self._head_timer)
        self._reader_timer = _cancelled(self._reader_timer)
        super().connection_lost(exc)

    def _expect_head(self) -> None:
        _cancelled(self._head_timer)
        self._head = 0
        self._head_timer = self.loop.call_later(self.seconds, self._head_is_late)

    def _head_is_late(self) -> None:
        if self._is_answering():  # and does not read meanwhile
            self._head_timer = self.loop.call_later(self.seconds, self._head_is_late)
        else:
            self.transport.close()

    def _is_answering(self) -> bool:
        return bool(self.pipeline) or (self.cycle is not None and not self.cycle.response_complete)

    def _refuse(self, refusal: Refusal) -> None:
        """After what is being answered; nothing more is read."""
        MALFORMED.tell()
        self._head_timer = _cancelled(self._head_timer)
        own = {"content-type": "application/json", "content-length": str(len(refusal.body)), **refusal.headers}
        pairs = [*((name.encode(), value.encode()) for name, value in own.items()), *HEADERS]
        head = b"".join(b"%b: %b\r\n" % pair for pair in pairs)
        self._last_words = STATUS_LINE[refusal.status] + head + b"\r\n" + refusal.body
        half = self._is_answering() and self.cycle.more_body  # the rest of the newest request will never come
        others = bool(self.pipeline) if half else self._is_answering()
        if half and self.pipeline:
            self.pipeline.popleft()
        if not others:
            self._say_last_words()

    def _say_last_words(self) -> None:
        if self._last_words is not None and not self.transport.is_closing():
            self.transport.write(self._last_words)
            self.transport.close()

    def _watch_reader(self) -> None:
        if self._reader_timer is None:
            waiting = self.transport.get_write_buffer_size()
            self._reader_timer = self.loop.call_later(self.seconds, self._look_at_reader, waiting)

    def _look_at_reader(self, before: int) -> None:
        self._reader_timer = None
        waiting = self.transport.get_write_buffer_size()
        if waiting and before - waiting < LEAST_READ:
            self.transport.abort()
        elif waiting:
            self._watch_reader()


class _InARow(FlowControl):
    """Reads nothing more while requests wait for their turn: a client could send them faster than they are answered."""

    def __init__(self, transport: asyncio.Transport, waiting: Sized) -> None:
        super().__init__(transport)
        self._waiting = waiting

    def resume_reading(self) -> None:
        if not len(self._waiting):
            super().resume_reading()


def _cancelled(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
    """Nothing is left of it."""
    if timer is not None:
        timer.cancel()
    return None


def bounded(seconds: float) -> type[BoundedProtocol]:
    """With this much time for a head."""
    return type("Protocol", (BoundedProtocol,), {"seconds": seconds})
