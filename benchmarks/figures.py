"""What a suite of measurements gives: figures against named rivals, each with the goal it was meant to reach."""

import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple


class Figure(NamedTuple):
    """One measured value; `goal` is what it should at least be (at most, where it starts with <=)."""

    figure: str
    value: float
    unit: str
    rival: str | None = None
    goal: str | None = None

    @property
    def met(self) -> bool | None:
        if self.goal is None:
            return None
        sign, bound = self.goal.split()
        return self.value >= float(bound) if sign == ">=" else self.value <= float(bound)


Suite = Callable[[bool], Iterator[Figure]]


def interleaved(functions: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """The median seconds of each function, run in turn, so that a noisy moment hits all of them."""
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def peak_of(function: Callable[[], Any]) -> int:
    """How many bytes the process grew at its peak while the function ran (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")  # resets the high-water mark to the present size
    before = status("VmRSS")
    function()
    return status("VmHWM") - before


def status(field: str, process: int | str = "self") -> int:
    """Bytes that the system counts for a process (Linux)."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":"))


def children_of(process: int) -> list[int]:
    """The processes that it started and that still run (Linux)."""
    return [int(word) for task in Path(f"/proc/{process}/task").iterdir() for word in _children(task)]


def _children(task: Path) -> list[str]:
    try:
        return (task / "children").read_text().split()
    except OSError:  # the thread has ended
        return []
