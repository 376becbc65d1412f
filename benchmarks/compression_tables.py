"""The tables of given vectors (`benchmarks/compression.py`), means over seeds."""

from statistics import mean
from typing import Any

from benchmarks import results
from benchmarks.cells import with_spread
from repconc.evaluation.significance import stars
from repconc.evaluation.tables import Table

RIVALS = (
    "uncompressed",
    "int8 (sentence-transformers)",
    "RaBitQ (faiss)",
    "binary (sentence-transformers)",
    "PQ",
    "OPQ",
)
MODES = ("documents", "queries", "labels")
Lines = list[dict[str, Any]]


def modes_table() -> Table:
    """Rivals, the three modes, and what the maps of the last one do without codes."""
    return _table([*RIVALS, *MODES, "labels, maps uncompressed"], results.read("compression"))


def ablation_table() -> Table:
    """What each part brings: the mode with labels, of the same seeds, and rows of it that leave one thing out."""
    lines = results.read("compression")
    left_out = sorted({line["row"] for line in lines if _is_ablation(line)})
    measured = {_problem(line) for line in lines if _is_ablation(line)}
    return _table(["labels", "labels, stage 1", *left_out], [line for line in lines if _problem(line) in measured])


def _is_ablation(line: dict[str, Any]) -> bool:
    parts = line["row"].split(", ")
    return len(parts) == 2 and parts[0] == "labels" and parts[1] not in ("stage 1", "maps uncompressed")


def _problem(line: dict[str, Any]) -> tuple[str, int, int]:
    return line["dataset"], line["bytes"], line["seed"]


def _table(wanted: list[str], lines: Lines) -> Table:
    groups: dict[tuple[str, int], dict[str, Lines]] = {}
    for line in lines:
        groups.setdefault((line["dataset"], line["bytes"]), {}).setdefault(line["row"], []).append(line)
    rows = [
        [f"{dataset}, {size} bytes: {row}", *_cells(group[row], group["uncompressed"], group["OPQ"])]
        for (dataset, size), group in sorted(groups.items())
        for row in wanted
        if row in group
    ]
    columns = [
        "set, bytes asked for, row",
        "bytes/document",
        "kilobytes beside",
        "MRR@10",
        "of OPQ's gap",
        "R@100",
        "R@100 - uncompressed, points",
        "seconds",
    ]
    return Table(columns, rows)


def _cells(lines: Lines, whole: Lines, opq: Lines) -> list[str]:
    values, top, bottom = (_values(part, "MRR@10") for part in (lines, whole, opq))
    significant = stars(max(line.get("p against OPQ", 1.0) for line in lines)) if mean(values) > mean(bottom) else ""
    closed = (mean(values) - mean(bottom)) / (mean(top) - mean(bottom))
    difference, low, high = (100 * mean(line["R@100 against uncompressed"][n] for line in lines) for n in range(3))
    seconds = [line["seconds"] for line in lines if line["seconds"] is not None]
    return [
        f"{lines[0]['bytes_per_document']:,.0f}",
        f"{lines[0]['shared_bytes'] / 1024:,.0f}",
        f"{with_spread(values)}{significant}",
        f"{closed:.0%}" if lines not in (whole, opq) else "",
        f"{mean(_values(lines, 'R@100')):.3f}",
        f"{difference:+.1f} ({low:+.1f} to {high:+.1f})" if lines is not whole else "",
        f"{mean(seconds):,.0f}" if seconds else "",
    ]


def _values(lines: Lines, measure: str) -> list[float]:
    return [line["measures"][measure] for line in lines]
