"""Work that waits together is done together: micro-batches in a thread, with a bound on the wait and on the queue.

A piece of work that comes to an idle server starts at once. What comes while a batch is at work forms the next one;
once pieces come together, the next batch is gathered for a moment longer, so that a busy server works in larger ones.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from repconc.serving.refusals import shutting_down, too_many

PAUSE = 0.2
"""Seconds without anything new after which there is time to tidy up."""


class Weighed(Protocol):
    """Work that says how much it is."""

    @property
    def weight(self) -> int: ...


Item = TypeVar("Item", bound=Weighed)
Answer = TypeVar("Answer")


@dataclass(eq=False)
class Ticket(Generic[Item, Answer]):
    """A piece of work that waits for its turn."""

    item: Item
    future: "asyncio.Future[Answer]"
    arrived: float = field(default_factory=time.perf_counter)
    waited: float = 0.0
    """Seconds until its batch began."""

    @property
    def is_over(self) -> bool:
        """Whether nobody waits for the answer any more: the gate gives up when the time of the request has passed.

        May be asked from any thread, so that work on it can be left out or given up.
        """
        return self.future.done()


Work = Callable[[Sequence[Ticket[Item, Answer]]], Sequence[Answer | Exception]]
"""Does a batch, in a thread; an answer or an error for each ticket."""


class Batcher(Generic[Item, Answer]):
    """One batch at a time; first come, first served."""

    def __init__(
        self,
        work: Work[Item, Answer],
        thread: Executor,
        *,
        size: int,
        room: int,
        wait: float = 0.0,
        tidy: Callable[[bool], None] | None = None,
    ) -> None:
        """size: the weight of a batch, unless a single item has more. room: the weight that may wait.

        tidy: done in the thread when answers are out, told that it is busy; and again, told that it is not, once
        nothing came for a moment.
        """
        self._work, self._thread, self._tidy = work, thread, tidy
        self._size, self._room, self._wait = size, room, wait
        self._tickets: deque[Ticket[Item, Answer]] = deque()
        self._arrival, self._closed = asyncio.Event(), False
        self.waiting = 0
        """The weight of what waits."""

    async def submit(self, item: Item) -> Answer:
        """Wait for the answer; refused at once where too much waits already."""
        if self._closed:
            raise shutting_down()
        if self.waiting and self.waiting + item.weight > self._room:
            raise too_many()
        ticket: Ticket[Item, Answer] = Ticket(item, asyncio.get_running_loop().create_future())
        self._tickets.append(ticket)
        self.waiting += item.weight
        self._arrival.set()
        return await ticket.future

    async def run(self) -> None:
        """Work until it is closed and nothing waits."""
        company = False
        while True:
            await self._arrival.wait()
            if company and self.waiting < self._size and not self._closed:
                await asyncio.sleep(self._wait)
            batch = self._take()
            if batch:
                company = len(batch) > 1
                await self._do(batch)
            if not self._tickets:
                if self._closed:
                    return
                self._arrival.clear()
            if batch and self._tidy is not None:
                await self._clean_up(self._tidy)

    async def _clean_up(self, tidy: Callable[[bool], None]) -> None:
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, tidy, True)  # at once: what comes next would have to wait for it
        try:
            await asyncio.wait_for(self._arrival.wait(), PAUSE)
        except TimeoutError:
            await loop.run_in_executor(self._thread, tidy, False)

    def close(self) -> None:
        """Take nothing new; `run` ends when what is there is done."""
        self._closed = True
        self._arrival.set()

    def _take(self) -> list[Ticket[Item, Answer]]:
        """The next batch, without those that nobody waits for any more."""
        batch: list[Ticket[Item, Answer]] = []
        weight, now = 0, time.perf_counter()
        while self._tickets and (not batch or weight + self._tickets[0].item.weight <= self._size):
            ticket = self._tickets.popleft()
            self.waiting -= ticket.item.weight
            if ticket.is_over:
                continue
            ticket.waited = now - ticket.arrived
            weight += ticket.item.weight
            batch.append(ticket)
        return batch

    async def _do(self, batch: list[Ticket[Item, Answer]]) -> None:
        answers: Sequence[Answer | Exception]
        try:
            answers = await asyncio.get_running_loop().run_in_executor(self._thread, self._work, batch)
        except Exception as error:  # of the whole batch; each of its requests has to hear of it
            answers = [error] * len(batch)
        for ticket, answer in zip(batch, answers, strict=True):
            if ticket.is_over:
                continue
            if isinstance(answer, Exception):
                ticket.future.set_exception(answer)
            else:
                ticket.future.set_result(answer)
