"""Speed at equal recall, from the lines of `benchmarks/recall.py`."""

from typing import Any

import numpy as np

from benchmarks import results
from repconc.evaluation.tables import Table

PAIRS = (
    ("RepCONC's index, OPQ 48 bytes", "faiss IVFPQFastScan, 48 bytes"),
    ("RepCONC's index, OPQ 48 bytes", "faiss IVFRaBitQFastScan"),
    ("RepCONC's index, OPQ 96 bytes", "faiss IVFPQFastScan, 96 bytes"),
    ("RepCONC's index, OPQ 96 bytes", "ScaNN, 96 bytes"),
)
"""Ours and a rival of about the same memory."""
RECALLS = (0.5, 0.55, 0.6, 0.65, 0.7, 0.72)


def recall_table() -> Table:
    """How many times as many queries a second ours answers where both find the same share; empty where one cannot."""
    lines: dict[str, list[dict[str, Any]]] = {}
    for line in results.read("recall"):
        lines.setdefault(line["system"], []).append(line)
    rows = [
        [
            f"{_named(lines[ours])} / {_named(lines[theirs])}",
            *(_ratio(lines[ours], lines[theirs], at) for at in RECALLS),
        ]
        for ours, theirs in PAIRS
        if ours in lines and theirs in lines
    ]
    return Table(["times as fast at recall@10 of", *(f"{recall:.2f}" for recall in RECALLS)], rows)


def _named(lines: list[dict[str, Any]]) -> str:
    return f"{lines[0]['system']} ({lines[0]['bytes'] / lines[0]['documents']:.0f} bytes)"


def _ratio(ours: list[dict[str, Any]], theirs: list[dict[str, Any]], recall: float) -> str:
    speeds = []
    for lines in (ours, theirs):
        recalls = [line["recall"] for line in lines]
        if not recalls[0] <= recall <= recalls[-1]:
            return ""
        speeds.append(np.exp(np.interp(recall, recalls, [np.log(line["queries a second"]) for line in lines])))
    return f"{speeds[0] / speeds[1]:.2f}x"
