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
    return _table([*RIVALS, *MODES, "labels, maps uncompressed"])


def ablation_table() -> Table:
    """What each part brings: rows of the mode with labels that leave one thing out."""
    known = {line["row"] for line in results.read("compression")}
    left_out = sorted(row for row in known if row.startswith("labels, ") and row.count(",") == 1)
    return _table(["labels", *(row for row in left_out if row != "labels, maps uncompressed")])


def _table(wanted: list[str]) -> Table:
    groups: dict[tuple[str, int], dict[str, Lines]] = {}
    for line in results.read("compression"):
        groups.setdefault((line["dataset"], line["bytes"]), {}).setdefault(line["row"], []).append(line)
    rows = [
        [f"{dataset}, {row}", *_cells(group[row], group["uncompressed"], group["OPQ"])]
        for (dataset, _), group in sorted(groups.items())
        for row in wanted
        if row in group
    ]
    columns = [
        "set and row",
        "bytes/document",
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
        f"{with_spread(values)}{significant}",
        f"{closed:.0%}" if lines not in (whole, opq) else "",
        f"{mean(_values(lines, 'R@100')):.3f}",
        f"{difference:+.1f} ({low:+.1f} to {high:+.1f})" if lines is not whole else "",
        f"{mean(seconds):,.0f}" if seconds else "",
    ]


def _values(lines: Lines, measure: str) -> list[float]:
    return [line["measures"][measure] for line in lines]
