"""An index as it is served: its newest state, the lanes of questions, the one writer, and the watch over its folder."""

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from repconc.errors import BusyError, DocumentError, RepconcError, first_line
from repconc.indexes.bounds import StoppedError
from repconc.indexes.manifest import MANIFEST
from repconc.indexes.writing import Changes
from repconc.serving.answering import Answer, Asked, Batch, Means, Stop
from repconc.serving.batching import Batcher, Ticket
from repconc.serving.refusals import Refusal, internal, invalid
from repconc.serving.scribe import Scribe
from repconc.serving.settings import Limits, Source
from repconc.serving.snapshot import Snapshot, open_snapshot
from repconc.serving.turns import Turns
from repconc.serving.writes import Change, commit, write_failed

if TYPE_CHECKING:
    from repconc.models.encoder import Side

log = logging.getLogger("repconc.serving")

Writing = Ticket[Change, tuple[Changes, int]]
Stamp = tuple[int, int, int]

WIDE = 8
"""Queries from which on a request goes its own way, so that those of a single query do not wait for it."""
WATCH_SECONDS = 0.5
RETRY_SECONDS = 5.0
"""Until a version that could not be opened is tried again."""
PATIENCE = 2
"""How many times as many segments there may be while writes come without a pause."""
WRITTEN_TOGETHER = 256
ENCODED_AT_A_TIME = 32
LANES = "repconc-lane"
"""How the threads of all lanes are called."""
CLOSING_SECONDS = 3.0
"""For work that nobody waits for any more, at the end."""


class Served:
    """One index. Threads: three for searches (few queries, many queries, with a filter), and one for the disk.

    The latter opens what is new, and has a process that writes.
    """

    def __init__(self, source: Source, limits: Limits) -> None:
        self.source, self.limits = source, limits
        self._seen = self._stamp()
        self.snapshot: Snapshot = open_snapshot(source)
        self._encoding = Turns()  # an encoder sets its longest text for the time of a call
        self._disk, *self._scans = (ThreadPoolExecutor(1, LANES) for _ in range(4))
        self._scribe = Scribe(limits.segments)
        self._means = Means(partial(self._encode, side="query"), source.threads, limits.answer)
        self._failed: Stamp | None = None
        self._retry = math.inf
        """When to look again at a version that could not be opened."""
        self._tasks: list[asyncio.Task[None]] = []
        self.observe: Callable[[int, Mapping[str, float]], None] | None = None
        """Told of each batch: how many queries, and the seconds of its steps."""

    def start(self) -> None:
        """Begin to take work; inside a running loop."""
        limits = self.limits
        lane = partial(Batcher[Asked, Answer], self._answer, size=limits.together, room=limits.queries)
        self.narrow, self.wide, self.filtered = (lane(thread, wait=limits.wait) for thread in self._scans)
        self.writer: Batcher[Change, tuple[Changes, int]] = Batcher(
            self._write, self._disk, size=WRITTEN_TOGETHER, room=limits.documents, tidy=self._merge
        )
        runs = [*(batcher.run() for batcher in self._batchers()), self._watch()]
        self._tasks = [asyncio.create_task(run) for run in runs]

    async def close(self) -> None:
        """Finish what waits, take nothing new; what does not end by itself is left behind after a while."""
        *lanes, watch = self._tasks
        watch.cancel()
        for batcher in self._batchers():
            batcher.close()
        _, late = await asyncio.wait(lanes, timeout=CLOSING_SECONDS)
        if late:
            log.warning("index %r: work that nobody waits for is left behind", self.source.name)
        for task in late:
            task.cancel()
        for thread in (self._disk, *self._scans):
            thread.shutdown(wait=not late, cancel_futures=True)
        self._scribe.kill() if late else self._scribe.close()

    @property
    def waiting(self) -> int:
        """Queries that wait."""
        return self.narrow.waiting + self.wide.waiting + self.filtered.waiting

    def _batchers(self) -> "list[Batcher[Any, Any]]":
        return [self.narrow, self.wide, self.filtered, self.writer]

    async def ask(self, asked: Asked) -> Answer:
        """In a lane of its own kind: a filter may read the metadata of all documents, which takes its time."""
        if asked.wanted.filter is not None:
            return await self.filtered.submit(asked)
        lane = self.wide if asked.weight > WIDE or asked.wanted.exact else self.narrow
        return await lane.submit(asked)

    async def change(self, change: Change) -> tuple[Changes, int]:
        """What it did, and the version of the index that holds it."""
        return await self.writer.submit(change)

    async def embed(self, texts: Sequence[str], side: "Side") -> tuple[np.ndarray, int]:
        """Vectors, and how many tokens they were made of; in the thread of requests that have many queries."""

        over = threading.Event()

        def work(snapshot: Snapshot) -> tuple[np.ndarray, int]:
            vectors = self._encode(snapshot, texts, over.is_set, side)
            with self._encoding:
                return vectors, _tokens(snapshot, texts, side)

        try:
            return await asyncio.get_running_loop().run_in_executor(self._scans[1], work, self.snapshot)
        finally:
            over.set()

    def _answer(self, tickets: Sequence[Ticket[Asked, Answer]]) -> list[Answer | Exception]:
        batch = Batch(self.snapshot, self._means)
        answers = batch.answer(tickets)
        if self.observe is not None:
            longest = max(ticket.waited for ticket in tickets)
            self.observe(sum(ticket.item.weight for ticket in tickets), {"queue": longest, **batch.steps})
        return answers

    def _encode(self, snapshot: Snapshot, texts: Sequence[str], stop: Stop, side: "Side") -> np.ndarray:
        """A few texts at a time, so that others have their turn in between, and while somebody waits."""
        parts = []
        for start in range(0, len(texts), ENCODED_AT_A_TIME):
            if stop():
                raise StoppedError
            with self._encoding:
                parts.append(_embed(snapshot, texts[start : start + ENCODED_AT_A_TIME], side))
        return np.concatenate(parts)

    def _write(self, tickets: Sequence[Writing]) -> Sequence[tuple[Changes, int] | Exception]:
        """Together; where that is refused, one by one, so that only the culprit hears of it."""
        try:
            outcomes, version = self._commit(tickets)
        except BusyError:
            busy = Refusal(409, "index_busy", "Another process is writing to this index; try again in a second.")
            return [busy] * len(tickets)
        except (Refusal, StoppedError) as refusal:
            return [refusal] * len(tickets)
        except DocumentError as error:
            if len(tickets) == 1:
                return [invalid(first_line(error), "invalid_document")]
            return [StoppedError() if ticket.is_over else self._write([ticket])[0] for ticket in tickets]
        except (RepconcError, OSError) as error:
            return [write_failed(self.source.name, error)] * len(tickets)
        return [(outcome, version) for outcome in outcomes]

    def _commit(self, tickets: Sequence[Writing]) -> tuple[list[Changes], int]:
        self._refresh()  # another process may have written
        encode = partial(self._encode, stop=lambda: all(ticket.is_over for ticket in tickets), side="document")
        done = commit(self.snapshot, self.source.folder, [ticket.item for ticket in tickets], encode, self._scribe)
        self._try_to_refresh()  # whatever goes wrong from here on: it is written
        return done

    def _merge(self, busy: bool) -> None:
        """Where there are too many segments; while writes come without a pause, only where there are far too many."""
        if len(self.snapshot.index.segments) <= self.limits.segments * (PATIENCE if busy else 1):
            return
        try:
            self._scribe.merge(self.snapshot.index)
            self._refresh()
        except Exception as error:  # what was written is written, and after the next write it is tried again
            log.warning("the segments of index %r cannot be merged: %r", self.source.name, first_line(error))

    async def _watch(self) -> None:
        """Look for a new version in the folder, or for another index in its place."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            if self._stamp() not in (self._seen, self._failed) or time.monotonic() > self._retry:
                await loop.run_in_executor(self._disk, self._try_to_refresh)

    def _try_to_refresh(self) -> None:
        """Whatever lies there now: the index that is open goes on. A failure may pass: files that are copied, say."""
        stamp = self._stamp()
        try:
            self._refresh()
        except Exception as error:
            if stamp != self._failed:
                log.warning("the new version of index %r cannot be opened: %r", self.source.name, first_line(error))
            self._failed, self._retry = stamp, time.monotonic() + RETRY_SECONDS
        else:
            self._failed, self._retry = None, math.inf

    def _refresh(self) -> None:
        """Open the newest state, where there is a new one; searches that run keep theirs."""
        stamp = self._stamp()
        if stamp == self._seen:
            return
        self.snapshot = open_snapshot(self.source, self.snapshot)
        self._seen = stamp
        log.info("index %r is at version %d", self.source.name, self.snapshot.index.manifest.version)

    def _stamp(self) -> Stamp | None:
        """Another one after every commit, which renames a new file into place."""
        try:
            found = (self.source.folder / MANIFEST).stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size


def _embed(snapshot: Snapshot, texts: Sequence[str], side: "Side") -> np.ndarray:
    if snapshot.encoder is None:
        raise internal()
    return snapshot.encoder.embed_queries(texts) if side == "query" else snapshot.encoder.embed_documents(texts)


def _tokens(snapshot: Snapshot, texts: Sequence[str], side: "Side") -> int:
    """As the encoder counts them; padding is no token."""
    if snapshot.encoder is None:
        raise internal()
    features = snapshot.encoder.tokenize(side, texts)
    mask = features.get("attention_mask")
    return int(mask.sum()) if mask is not None else int(features["input_ids"].numel())
