"""Work that nobody waits for is given up, and nobody else waits for it; answers have a size that can be sent."""

import asyncio
import json
import signal
import socket
import threading
import time

import numpy as np
import pytest

from repconc.indexes.bounds import Bounds, StoppedError
from repconc.indexes.ivf import Index
from repconc.indexes.writing import build
from repconc.records import Document
from repconc.serving import served as module
from repconc.serving.writes import Removal, Upsert
from tests.indexes.conftest import codecs, make_codes
from tests.serving.conftest import vector_index, vector_of
from tests.serving.running import running
from tests.serving.test_served import asked, drive

SLOW = " and ".join(f"n!={number}" for number in range(290))
"""Two hundred and ninety comparisons for each document."""


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """So many documents that a filter over them takes seconds."""
    coding, scoring = codecs()
    documents = [Document(f"d{n}", "", "", {"n": 3000 + n % 30}) for n in range(150_000)]
    codes = np.tile(make_codes(range(600)), (250, 1))
    folder = tmp_path_factory.mktemp("large") / "index"
    return build(folder, [(documents, codes)], coding=coding, scoring=scoring, lists=12).folder


def test_the_filter_is_as_slow_as_it_is_meant_to_be(large):
    began = time.perf_counter()
    assert len(Index(large).search(np.ones(15), filter=SLOW)[0]) == 10
    assert time.perf_counter() - began > 0.6, "longer than the times that the others give it"


def test_a_filter_is_given_up_when_nobody_waits(large):
    over, index = threading.Event(), Index(large)
    threading.Timer(0.1, over.set).start()
    began = time.perf_counter()
    with pytest.raises(StoppedError):
        index.search(np.ones(15), filter=SLOW, bounds=Bounds(over.is_set))
    assert time.perf_counter() - began < 0.6
    assert index.search(np.ones(15), filter="n = 3001")[0], "and the next one is not stopped"


def test_a_slow_filter_stops_neither_other_questions_nor_its_successors(large):
    async def scenario(served):
        slow = asyncio.create_task(served.ask(asked(1, filter=SLOW)))
        await asyncio.sleep(0.1)
        began = time.perf_counter()
        await served.ask(asked(1))
        plain = time.perf_counter() - began
        assert not slow.done()
        slow.cancel()  # as the gate does when its time has passed
        await served.ask(asked(1, filter="n = 3001"))
        return plain, time.perf_counter() - began

    plain, after = drive(large, scenario)
    assert plain < 0.3 and after < 0.7


def test_a_request_has_its_time_also_with_a_slow_filter(large, tmp_path):
    with running(large, "--timeout", 0.5, folder=tmp_path) as server:
        replies = [
            server.ask("/v1/search", {"vector": vector_of(1), "filter": f"{SLOW} and n!={400 + n}"}) for n in range(4)
        ]
        assert [(reply.status, reply.code) for reply in replies] == [(504, "timed_out")] * 4
        began = time.monotonic()
        assert server.ask("/v1/search", {"vector": vector_of(1), "filter": "n = 3001"}).status == 200
        assert time.monotonic() - began < 0.5, "what timed out is not at work any more"
        assert "Traceback" not in server.log.read_text()


def test_questions_that_nobody_waits_for_are_not_begun(tmp_path, monkeypatch):
    begun, gates, plain = [], [threading.Event() for _ in range(4)], Index.search

    def counted(self, *arguments, **options):
        begun.append(arguments[1])
        gates[len(begun) - 1].wait(30)
        return plain(self, *arguments, **options)

    monkeypatch.setattr(Index, "search", counted)

    async def until_begun(count):
        while len(begun) < count:
            await asyncio.sleep(0.01)

    async def scenario(served):
        first = asyncio.create_task(served.ask(asked(1, k=1)))
        await until_begun(1)
        batch = [asyncio.create_task(served.ask(asked(1, k=k))) for k in (2, 3, 4)]  # three groups of one batch
        await asyncio.sleep(0.1)
        gates[0].set()
        await first
        await until_begun(2)
        batch[1].cancel()
        await asyncio.sleep(0)
        for gate in gates[1:]:
            gate.set()
        await asyncio.gather(*batch, return_exceptions=True)

    drive(vector_index(tmp_path / "index"), scenario)
    assert begun == [1, 2, 4]


def test_writes_that_nobody_waits_for_are_not_begun(tmp_path):
    """One is refused, so that they are done one by one; in between, time passes for another."""
    folder = vector_index(tmp_path / "index")
    bad = Upsert([Document("bad", "", "", {f"field{n}": n for n in range(501)})], np.array([vector_of(1)], np.float32))
    plain = module.commit
    tasks = []

    def commit(snapshot, folder, changes, *rest):
        if changes == [Removal("d2")]:
            tasks[2].get_loop().call_soon_threadsafe(tasks[2].cancel)
            time.sleep(0.1)
        return plain(snapshot, folder, changes, *rest)

    async def scenario(served):
        tasks.extend(asyncio.create_task(served.change(one)) for one in (bad, Removal("d2"), Removal("d3")))
        return await asyncio.gather(*tasks, return_exceptions=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "commit", commit)
        drive(folder, scenario)
    assert "d2" not in Index(folder) and "d3" in Index(folder)


def test_the_end_does_not_wait_for_what_cannot_be_stopped(tmp_path, monkeypatch):
    go = threading.Event()
    monkeypatch.setattr(module, "CLOSING_SECONDS", 0.2)
    monkeypatch.setattr(module.Batch, "answer", lambda *_: go.wait(20))

    async def scenario(served):
        task = asyncio.create_task(served.ask(asked(1)))
        await asyncio.sleep(0.1)
        task.cancel()

    began = time.monotonic()
    drive(vector_index(tmp_path / "index"), scenario)
    took = time.monotonic() - began
    go.set()
    assert took < 5


def test_a_server_that_is_told_to_end_ends_also_with_slow_work(large, tmp_path):
    with running(large, "--timeout", 3, folder=tmp_path) as server:
        threads = [
            threading.Thread(
                target=server.ask, args=("/v1/search", {"vector": vector_of(1), "filter": f"{SLOW} and n!={400 + n}"})
            )
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(20) == 0
        assert time.monotonic() - began < 7, "eight filters, one after the other, take longer"
        for thread in threads:
            thread.join()
        assert "Traceback" not in server.log.read_text()


@pytest.fixture(scope="module")
def wordy(tmp_path_factory):
    """Four hundred documents of a hundred thousand characters each."""
    coding, scoring = codecs()
    documents = [Document(f"d{n}", "ü" * 100_000, "", {"even": n % 2 == 0}) for n in range(400)]
    folder = tmp_path_factory.mktemp("wordy") / "index"
    return build(folder, [(documents, make_codes(range(400)))], coding=coding, scoring=scoring, lists=12).folder


def test_an_answer_that_is_too_large_is_refused_before_it_is_made(wordy, tmp_path):
    with running(wordy, folder=tmp_path) as server:
        question = {"vector": vector_of(1), "text": True, "probes": 12}
        for k in (100, 400):  # too many bytes, and too many characters already
            reply = server.ask("/v1/search", question | {"k": k})
            assert (reply.status, reply.code) == (413, "answer_too_large")
            assert "lower k" in reply.json["error"]["message"]
        assert len(server.ask("/v1/search", question | {"k": 40}).body) > 8_000_000
        assert server.ask("/v1/search", question | {"k": 400, "text": False}).status == 200


def test_one_answer_that_is_too_large_does_not_take_others_with_it(wordy):
    async def scenario(served):
        return await asyncio.gather(*(served.ask(asked(1, k=60, text=True, probes=12)) for _ in range(4)))

    assert [len(answer.hits[0]) for answer in drive(wordy, scenario, wait=0.05)] == [60] * 4


def large_question(headers: str = "") -> bytes:
    """A request whose answer has eight million bytes."""
    body = json.dumps({"vector": vector_of(1), "text": True, "k": 40}).encode()
    head = f"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{headers}"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def test_who_does_not_read_is_let_go_and_counts_until_then(wordy, tmp_path):
    with running(wordy, "--timeout", 1, "--queue", 2, folder=tmp_path) as server:
        host, port = server.address.removeprefix("http://").split(":")
        silent = [socket.create_connection((host, int(port)), 20) for _ in range(2)]
        for one in silent:
            one.sendall(large_question())
        time.sleep(0.7)
        assert server.ask("/v1/search", {"vector": vector_of(1)}).status == 429, "their answers are still held"
        deadline = time.monotonic() + 10
        while server.ask("/v1/search", {"vector": vector_of(1)}).status == 429:
            assert time.monotonic() < deadline, "they were not let go"
            time.sleep(0.1)
        time.sleep(0.5)  # the second one too
        for one in silent:
            received = 0
            with pytest.raises(ConnectionError):
                while chunk := one.recv(1 << 20):
                    received += len(chunk)
                raise ConnectionAbortedError
            assert 0 < received < 8_000_000
            one.close()
        assert "Traceback" not in server.log.read_text()


def test_who_reads_slowly_gets_everything(wordy, tmp_path):
    with running(wordy, "--timeout", 1, folder=tmp_path) as server:
        host, port = server.address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), 20) as slow:
            slow.sendall(large_question("Connection: close\r\n"))
            received = 0
            while chunk := slow.recv(1 << 18):
                received += len(chunk)
                time.sleep(0.1)  # three seconds in all
        assert received > 8_000_000


def test_the_steps_of_a_mixed_batch_are_those_of_all_its_questions(tmp_path):
    seen = []

    async def scenario(served):
        served.observe = lambda queries, steps: seen.append((queries, steps))
        first = asyncio.create_task(served.ask(asked(1)))
        await asyncio.sleep(0)
        await asyncio.gather(first, *(served.ask(asked(1, k=k, text=k > 4)) for k in (2, 3, 4, 5, 6)))

    drive(vector_index(tmp_path / "index"), scenario)
    assert sum(queries for queries, _ in seen) == 6
    (mixed,) = [steps for queries, steps in seen if queries > 1]
    assert set(mixed) == {"queue", "probe", "scan", "documents"}, "also those that the first question did not need"
