"""Batches: together where they wait together, bounded, and each answer to its own question."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repconc.serving.batching import Batcher
from repconc.serving.refusals import Refusal


class Number(NamedTuple):
    value: int
    weight: int = 1


class Doubling:
    """Work that doubles numbers, refuses negative ones, and can be held up."""

    def __init__(self) -> None:
        self.batches: list[int] = []
        self.go = threading.Event()
        self.go.set()

    def __call__(self, tickets):
        self.go.wait()
        self.batches.append(len(tickets))
        values = [ticket.item.value for ticket in tickets]
        return [2 * value if value >= 0 else ValueError(value) for value in values]


def drive(scenario, **options):
    """Run a scenario against a batcher that is closed afterwards."""

    async def run():
        work = Doubling()
        with ThreadPoolExecutor(1) as thread:
            batcher = Batcher(work, thread, **{"size": 8, "room": 20} | options)
            task = asyncio.create_task(batcher.run())
            try:
                return await scenario(batcher, work)
            finally:
                work.go.set()
                batcher.close()
                await task
                assert batcher.waiting == 0

    return asyncio.run(asyncio.wait_for(run(), 30))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-5, 1000), max_size=60), st.integers(1, 9))
def test_each_question_gets_its_own_answer(values, size):
    async def scenario(batcher, work):
        return await asyncio.gather(*(batcher.submit(Number(value)) for value in values), return_exceptions=True)

    for value, answer in zip(values, drive(scenario, size=size, room=1000), strict=True):
        assert answer == 2 * value if value >= 0 else isinstance(answer, ValueError)


def test_what_comes_while_a_batch_is_at_work_forms_the_next():
    async def scenario(batcher, work):
        work.go.clear()
        first = asyncio.create_task(batcher.submit(Number(1)))
        await asyncio.sleep(0.05)
        others = [asyncio.create_task(batcher.submit(Number(n))) for n in range(12)]
        await asyncio.sleep(0.05)
        work.go.set()
        await asyncio.gather(first, *others)
        return work.batches

    assert drive(scenario) == [1, 8, 4]


def test_a_heavy_item_goes_alone():
    async def scenario(batcher, work):
        work.go.clear()
        tasks = [asyncio.create_task(batcher.submit(Number(n, weight))) for n, weight in enumerate([1, 1, 16, 1])]
        await asyncio.sleep(0.05)
        work.go.set()
        await asyncio.gather(*tasks)
        return work.batches

    assert drive(scenario) == [2, 1, 1]


def test_past_the_room_it_is_refused_at_once():
    async def scenario(batcher, work):
        work.go.clear()
        first = asyncio.create_task(batcher.submit(Number(0)))
        await asyncio.sleep(0.05)
        waiting = [asyncio.create_task(batcher.submit(Number(n))) for n in range(20)]
        await asyncio.sleep(0.05)
        began = time.perf_counter()
        with pytest.raises(Refusal) as refused:
            await batcher.submit(Number(99))
        assert time.perf_counter() - began < 0.05
        assert refused.value.status == 429 and refused.value.headers["retry-after"] == "1"
        work.go.set()
        return await asyncio.gather(first, *waiting)

    assert drive(scenario) == [0, *(2 * n for n in range(20))]


def test_nobody_works_for_those_who_left():
    async def scenario(batcher, work):
        work.go.clear()
        first = asyncio.create_task(batcher.submit(Number(0)))
        await asyncio.sleep(0.05)
        gone = asyncio.create_task(batcher.submit(Number(1)))
        stays = asyncio.create_task(batcher.submit(Number(2)))
        await asyncio.sleep(0.05)
        gone.cancel()
        work.go.set()
        await asyncio.gather(first, stays)
        return work.batches

    assert drive(scenario) == [1, 1]


def test_closed_it_finishes_what_it_has_and_takes_nothing_new():
    async def scenario(batcher, work):
        work.go.clear()
        tasks = [asyncio.create_task(batcher.submit(Number(n))) for n in range(15)]
        await asyncio.sleep(0.05)
        batcher.close()
        with pytest.raises(Refusal, match="shutting down"):
            await batcher.submit(Number(1))
        work.go.set()
        return await asyncio.gather(*tasks)

    assert drive(scenario) == [2 * n for n in range(15)]


def test_an_error_of_the_work_reaches_all_who_wait():
    async def scenario(batcher, work):
        batcher._work = lambda tickets: 1 / 0
        return await asyncio.gather(*(batcher.submit(Number(n)) for n in range(3)), return_exceptions=True)

    assert [type(answer) for answer in drive(scenario)] == [ZeroDivisionError] * 3
