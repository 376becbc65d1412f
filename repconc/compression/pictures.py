"""The plots of a report: the quality of each system, and the held-out measure while ours learned."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from repconc.evaluation.compare import Cell
from repconc.training.loop import Line

NEAREST = "R@10"
OURS = "ours"


@dataclass(frozen=True)
class Row:
    """One system, and what it measures."""

    name: str
    bytes: float
    shared: int
    ratio: float
    nearest: Cell
    """How many of the uncompressed top 10 are among its own."""
    labelled: dict[str, Cell]


@dataclass(frozen=True)
class Report:
    """All rows, and what they mean."""

    about: str
    reference: str
    """What all tests compare with: codes of the same structure and bytes, without learning."""
    rows: list[Row]
    sentences: list[str]
    queries: int
    documents: int


def pictures(report: Report, history: list[Line]) -> Iterator[tuple[str, bytes]]:
    if find_spec("matplotlib") is None:
        return
    yield "quality of each system", _quality(report)
    if curves := _curves(history):
        yield "held-out measure while learning", curves


def _quality(report: Report) -> bytes:
    """A row for each system, the smallest at the bottom; a panel for each measure."""
    from matplotlib.figure import Figure

    rows = sorted(report.rows, key=lambda row: row.bytes)
    measured = {"recall of the uncompressed top 10": [row.nearest for row in rows]}
    measured |= {name: [row.labelled[name] for row in rows] for name in rows[0].labelled}
    figure = Figure(figsize=(2.8 + 3 * len(measured), 0.8 + 0.35 * len(rows)), layout="constrained")
    panels = figure.subplots(1, len(measured), squeeze=False, sharey=True)[0]
    for axis, (name, cells) in zip(panels, measured.items(), strict=True):
        for place, (row, cell) in enumerate(zip(rows, cells, strict=True)):
            own = row.name.startswith(OURS)
            style = {"fmt": "D" if own else "o", "color": "#d95f02" if own else "#555555", "capsize": 2}
            error = [[cell.mean - cell.interval[0]], [cell.interval[1] - cell.mean]]
            axis.errorbar([cell.mean], [place], xerr=error, **style)
        axis.set(xlabel=name)
        _tidy(axis)
    panels[0].set_yticks(range(len(rows)), [f"{row.name.split(' (')[0]}, {row.bytes:,.0f} bytes" for row in rows])
    return _svg(figure)


def _curves(history: list[Line]) -> bytes | None:
    from matplotlib.figure import Figure

    lines = [line for line in history if "step" in line and line.keys() & {NEAREST, "MRR@10"}]
    if not lines:
        return None
    measure = next(name for name in (NEAREST, "MRR@10") if name in lines[0])
    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    axis, start = figure.subplots(), 0
    for phase in dict.fromkeys(line["phase"] for line in lines):
        points = [(start + line["step"], line[measure]) for line in lines if line["phase"] == phase]
        axis.plot(*zip(*points, strict=True), marker=".", label=phase)
        start = points[-1][0]
    axis.set(xlabel="step", ylabel=f"{measure}, held-out dev queries")
    axis.legend(frameon=False)
    _tidy(axis)
    return _svg(figure)


def _tidy(axis: Any) -> None:
    axis.grid(alpha=0.3)
    axis.spines[["top", "right"]].set_visible(False)


def _svg(figure: Any) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format="svg", metadata={"Date": None})
    return content.getvalue()
