"""A live view of training: a bar for each phase with its losses, dev MRR@10 and the balance of codes.

Where standard error is no terminal, a line for each measurement of the dev queries.
"""

import sys
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

MEASURES = {"MRR@10": "dev MRR@10", "R@10": "dev R@10"}
SHOWN = {"ranking": "ranking", "clustering": "clustering", **MEASURES, "entropy (batch)": "balance"}


class TrainingView:
    """Called with every line of a run's history."""

    def __init__(self, quiet: bool) -> None:
        console = Console(stderr=True)
        self._quiet = quiet
        columns = (TextColumn("{task.description:<12}"), BarColumn(24), MofNCompleteColumn())
        rest = (TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("{task.fields[values]}"))
        self._bars = Progress(*columns, *rest, console=console) if console.is_terminal and not quiet else None
        self._tasks: dict[str, TaskID] = {}
        self._values: dict[str, dict[str, float]] = {}

    def __enter__(self) -> "TrainingView":
        if self._bars:
            self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bars:
            self._bars.stop()

    def __call__(self, line: dict[str, Any]) -> None:
        phase = line["phase"]
        values = self._values.setdefault(phase, {})
        values |= {label: line[name] for name, label in SHOWN.items() if name in line}
        text = "  ".join(f"{label} {values[label]:.3f}" for label in SHOWN.values() if label in values)
        if self._bars:
            if phase not in self._tasks:
                self._tasks[phase] = self._bars.add_task(phase, total=line.get("steps"), values="")
            done = line.get("step", 1), line.get("steps", 1)
            self._bars.update(self._tasks[phase], completed=done[0], total=done[1], values=text)
        elif line.keys() & MEASURES.keys() and not self._quiet:
            print(f"{phase} {line['step']}/{line['steps']}  {text}", file=sys.stderr)
