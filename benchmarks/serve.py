"""Suite `serve`: the service under load, on loopback, over the index of the demo.

64 connections for a minute, searches mixed with upserts and removals: the peak, half of it and twice of it at a fixed
rate, in three rounds, whose medians count; then kills in between. Afterwards the index must equal a replay of the
acknowledged writes. Throughput comes as ratios in one run: against `Searcher` in this process, and against routes that
return a fixed body of the same size.
"""

import asyncio
import json
import os
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import uvloop

from benchmarks.figures import Figure, children_of, status
from benchmarks.load import Act, Pool, Report, closed_loop, open_loop, request
from benchmarks.traffic import K, Traffic
from repconc import Index, Searcher, load_dataset
from repconc.data.catalogue import folder_of
from repconc.errors import RepconcError
from repconc.files import cache_directory
from repconc.indexes.manifest import MANIFEST

CONNECTIONS, MOST_CONNECTIONS = 64, 512
SECONDS, QUICK_SECONDS = 60.0, 4.0
ROUNDS, QUICK_ROUNDS = 5, 2
LOAD_ROUNDS = 3
KILLS, QUICK_KILLS = 5, 2
KNOWN = 500
QUESTIONS = 1000
TOGETHER = 32


class Bench(NamedTuple):
    """What all measurements share."""

    original: Path
    folder: Path
    """The index that is served, a copy."""
    searcher: Searcher
    questions: list[str]
    known: list[str]
    token: str
    seconds: float
    quick: bool

    def goal(self, text: str) -> str | None:
        return None if self.quick else text

    def traffic(self, seed: int) -> Traffic:
        return Traffic(self.questions, self.known, self.token, seed)


def run(quick: bool) -> Iterator[Figure]:
    original = demo_index()
    dataset = load_dataset(folder_of("hotpotqa"))
    questions = [query.text for query in dataset.queries("train")[:QUESTIONS]]
    known = [document.id for document, _ in zip(dataset.documents, range(KNOWN), strict=False)]
    with tempfile.TemporaryDirectory(dir=cache_directory()) as scratch:
        folder = Path(scratch) / "index"
        shutil.copytree(original, folder)
        seconds = QUICK_SECONDS if quick else SECONDS
        searcher, token = Searcher.open(original), secrets.token_hex(16)
        bench = Bench(original, folder, searcher, questions, known, token, seconds, quick)
        with serving(bench) as server:
            yield from _throughput(bench, server)
            yield from _load(bench, server)
        shutil.rmtree(folder)
        shutil.copytree(original, folder)
        yield from _kills(bench)


def demo_index() -> Path:
    """What `make demo` built, in the checkout or in the cache; made now where there is none."""
    for folder in (Path(__file__).parent.parent / "demo", cache_directory() / "demo"):
        if (folder / "index" / MANIFEST).exists():
            return folder / "index"
    command = [sys.executable, "-m", "repconc.cli.main", "demo", "--quiet", "--output", str(folder)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder / "index"


class Server(NamedTuple):
    """The process that is measured."""

    process: subprocess.Popen[str]
    port: int

    def memory(self) -> int:
        processes = (self.process.pid, *children_of(self.process.pid))
        return sum(status("RssAnon", process) for process in processes)


def start(bench: Bench, port: int = 0) -> Server:
    command = [sys.executable, "-m", "benchmarks.server", str(bench.folder), str(port)]
    environment = os.environ | {"REPCONC_TOKEN": bench.token}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    address = process.stdout.readline().strip()
    if not address:
        raise RepconcError("The server did not start; its last words stand above.")
    return Server(process, int(address.rpartition(":")[2]))


@contextmanager
def serving(bench: Bench) -> Iterator[Server]:
    server = start(bench)
    try:
        yield server
    finally:
        server.process.terminate()
        server.process.wait(30)


def measure(server: Server, work: Callable[[Pool], Awaitable[Any]]) -> Any:
    """Run work against the server in an event loop of its own."""

    async def inside() -> Any:
        pool = Pool("127.0.0.1", server.port)
        try:
            return await work(pool)
        finally:
            pool.close()

    return uvloop.run(inside())


def _throughput(bench: Bench, server: Server) -> Iterator[Figure]:
    """Many queries a request beside `Searcher`; one query a request beside routes that do nothing."""
    groups = [bench.questions[start : start + TOGETHER] for start in range(0, 20 * TOGETHER, TOGETHER)]
    bodies = [json.dumps({"queries": group, "k": K}).encode() for group in groups]
    wide = _turning([request("POST", "/v1/search", body) for body in bodies])
    single = json.dumps({"query": bench.questions[0], "k": K}).encode()
    size = measure(server, lambda pool: _size(pool, request("POST", "/v1/search", single)))
    fixed, direct = (
        _turning([request("POST", path, single, bench.token)]) for path in (f"/fixed/{size}", f"/direct?{size}")
    )
    seconds = bench.seconds / (2 if bench.quick else 6)
    rates: dict[str, list[float]] = {"python": [], "wide": [], "single": [], "fixed": [], "direct": []}
    for _ in range(QUICK_ROUNDS if bench.quick else ROUNDS):
        rates["python"].append(_python_rate(bench.searcher, groups))
        rates["wide"].append(TOGETHER * _rate(server, wide, 2, seconds))
        rates["single"].append(_rate(server, bench.traffic(0).search, CONNECTIONS, seconds))
        rates["fixed"].append(_rate(server, fixed, CONNECTIONS, seconds))
        rates["direct"].append(_rate(server, direct, CONNECTIONS, seconds))
    python, many, one, nothing, least = (statistics.median(values) for values in rates.values())
    rival = f"Searcher in batches of {TOGETHER}"
    yield Figure(f"requests of {TOGETHER} queries: queries a second", many, "/s")
    yield Figure(f"requests of {TOGETHER} queries", many / python, "x", rival, bench.goal(">= 0.8"))
    yield Figure("requests of one query", one, "/s")
    rival = "a route of the framework that reads the same request and returns a fixed body of the same size"
    yield Figure("requests of one query", one / nothing, "x", rival, bench.goal(">= 0.8"))
    yield Figure("requests of one query", one / least, "x", "the same past the framework, as searches are answered")


class Round(NamedTuple):
    """One after the other, so that whatever else the machine does touches all of them alike."""

    alone: float
    """Seconds of a single request."""
    peak: Report
    half: Report
    twice: dict[int, Report]
    """By connections: with few of them requests wait on the way, with many they are refused."""

    @property
    def p99(self) -> float:
        return self.half.quantile(0.99)


def _load(bench: Bench, server: Server) -> Iterator[Figure]:
    traffic, count, middle = bench.traffic(1), 1 if bench.quick else LOAD_ROUNDS, statistics.median
    memory, rounds = [], []
    for _ in range(count):
        rounds.append(_round(server, traffic, bench.seconds / count))
        memory.append(server.memory())
    yield Figure("a single request", 1e3 * middle(each.alone for each in rounds), "ms")
    yield Figure(f"peak, {CONNECTIONS} connections, mixed with writes", middle(e.peak.rate for e in rounds), "/s")
    yield from _others("peak", [each.peak for each in rounds])
    yield Figure("half the peak: 429", middle(e.half.share(429) for e in rounds), "share", goal=bench.goal("<= 0.01"))
    yield from _others("half the peak", [each.half for each in rounds])
    yield Figure("half the peak: p99", 1e3 * middle(each.p99 for each in rounds), "ms")
    slower = middle(each.p99 / each.alone for each in rounds)
    yield Figure("half the peak: p99 over a single request", slower, "x", goal=bench.goal("<= 20"))
    yield Figure("memory after the last round over the first", memory[-1] / memory[0], "x", goal=bench.goal("<= 1.1"))
    for connections in rounds[0].twice:
        name, reports = f"twice the peak, {connections} connections", [each.twice[connections] for each in rounds]
        yield Figure(f"{name}: 429", middle(report.share(429) for report in reports), "share")
        yield from _others(name, reports)
        served = middle(each.twice[connections].rate / each.peak.rate for each in rounds)
        yield Figure(f"{name}: served, of the peak", served, "x", goal=bench.goal(">= 0.8"))
    wrong = traffic.differences(bench.folder, bench.original, bench.folder.with_name("replay"), bench.searcher)
    yield Figure("acknowledged writes", traffic.acknowledged, "writes")
    yield Figure("differences from a replay of them", wrong, "documents and answers", goal="<= 0")


def _others(name: str, reports: list[Report]) -> Iterator[Figure]:
    yield Figure(f"{name}: neither 200 nor 429", sum(report.others for report in reports), "requests", goal="<= 0")


def _round(server: Server, traffic: Traffic, seconds: float) -> Round:
    alone = measure(server, lambda pool: _alone(pool, traffic))
    peak: Report = measure(server, lambda pool: closed_loop(pool, traffic.mixed, CONNECTIONS, seconds))

    def at(times: float, connections: int) -> Any:
        rate = times * peak.rate
        return measure(server, lambda pool: open_loop(pool, traffic.mixed, connections, rate, seconds))

    return Round(alone, peak, at(0.5, CONNECTIONS), {count: at(2, count) for count in (CONNECTIONS, MOST_CONNECTIONS)})


def _kills(bench: Bench) -> Iterator[Figure]:
    """The same with the server killed in between."""
    traffic, before, wrong, port = bench.traffic(2), Index(bench.original), 0, 0
    times = QUICK_KILLS if bench.quick else KILLS
    for number in range(times):
        server = start(bench, port)
        port = server.port
        seconds = bench.seconds / times * (1 + number / times) / 1.5

        async def until_killed(pool: Pool, server: Server = server, seconds: float = seconds) -> None:
            asyncio.get_running_loop().call_later(seconds, server.process.kill)
            await closed_loop(pool, traffic.mixed, CONNECTIONS, seconds + 0.5)

        measure(server, until_killed)
        server.process.wait()
        wrong += traffic.settle(bench.folder, before)
    wrong += traffic.differences(bench.folder, bench.original, bench.folder.with_name("replay"), bench.searcher)
    yield Figure(f"killed {times} times: acknowledged writes", traffic.acknowledged, "writes")
    yield Figure(
        f"killed {times} times: differences from a replay", wrong, "documents and answers", goal=bench.goal("<= 0")
    )


def _rate(server: Server, act: Act, connections: int, seconds: float) -> float:
    report: Report = measure(server, lambda pool: closed_loop(pool, act, connections, seconds))
    if report.statuses.total() != report.statuses[200]:
        raise RepconcError(f"The server answered with {dict(report.statuses)} where it should not be busy.")
    return report.rate


def _python_rate(searcher: Searcher, groups: list[list[str]]) -> float:
    start = time.perf_counter()
    for group in groups:
        searcher.search(group, K)
    return sum(map(len, groups)) / (time.perf_counter() - start)


def _turning(requests: list[bytes]) -> Act:
    """One request after the other, from the beginning again."""
    number = 0

    async def act(pool: Pool) -> int:
        nonlocal number
        number += 1
        return (await pool.ask(requests[number % len(requests)]))[0]

    return act


async def _size(pool: Pool, asked: bytes) -> int:
    return len((await pool.ask(asked))[1])


async def _alone(pool: Pool, traffic: Traffic) -> float:
    """The median seconds of requests that come one after the other."""
    report = await closed_loop(pool, traffic.search, 1, 3.0)
    return report.quantile(0.5)
