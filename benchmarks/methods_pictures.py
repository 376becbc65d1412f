"""Pictures of the comparison, as functions of its lines alone; a method that has no line yet is left out.

Markers and dashes tell the methods apart where there is no colour.
"""

from collections.abc import Callable, Sequence
from statistics import mean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.methods_goals import ADDITIVE, OURS, Line
from benchmarks.methods_tables import KINDS, named, ratio_of

STYLES: dict[str, dict[str, Any]] = {
    OURS: {"color": "black", "marker": "*", "linestyle": "-", "linewidth": 2.2, "markersize": 9, "zorder": 4},
    ADDITIVE: {"color": "#c1121f", "marker": "X", "linestyle": "-", "markersize": 8, "zorder": 4},
    "JPQ": {"color": "#1f77b4", "marker": "o", "linestyle": "-"},
    "DPQ": {"color": "#d95f02", "marker": "s", "linestyle": "-"},
    "MoPQ": {"color": "#2a9d8f", "marker": "D", "linestyle": "--"},
    "Distill-VQ": {"color": "#9467bd", "marker": "^", "linestyle": "--"},
    "OPQ + ScaNN": {"color": "#8c564b", "marker": "P", "linestyle": "-."},
    "OPQ": {"color": "#555555", "marker": "v", "linestyle": "-."},
    "ITQ + LSH": {"color": "#b8860b", "marker": "<", "linestyle": ":"},
    "ScaNN": {"color": "#e377c2", "marker": ">", "linestyle": ":"},
    "PQ": {"color": "#888888", "marker": "x", "linestyle": ":"},
    "PCA + int8": {"color": "#bbbbbb", "marker": "+", "linestyle": ":"},
    "BPR": {"color": "#d62728", "marker": "H", "markersize": 12, "markerfacecolor": "none"},
    "binary (sentence-transformers)": {"color": "black", "marker": r"$\pm$", "markersize": 9},
    "RaBitQ (faiss)": {"color": "#006400", "marker": "d"},
    "int8 (sentence-transformers)": {"color": "#4b0082", "marker": "p"},
    "BM25": {"color": "black", "marker": "$B$"},
    "RepBERT style": {"color": "#1f77b4", "marker": "1", "markersize": 9},
    "ANCE style": {"color": "#d95f02", "marker": "2", "markersize": 9},
    "STAR style": {"color": "#2a9d8f", "marker": "3", "markersize": 9},
    "ADORE style": {"color": "black", "marker": "4", "markersize": 9},
}
OTHER = {"color": "#ff1493", "marker": "$?$", "linestyle": (0, (5, 1, 1, 1))}
"""A method that somebody added."""
PARTS = ("RepCONC without constraint", "RepCONC without stage 2")
"""These are in the table of parts; here they would hide the rest."""
DENSE = ("RepBERT style", "STAR style", "ANCE style", "ADORE style")
LATER = ("ScaNN", "binary (sentence-transformers)", "RaBitQ (faiss)", "int8 (sentence-transformers)")
FIRST_STAGE = (OURS, ADDITIVE, "JPQ", "OPQ", "BPR", *LATER, "BM25", *DENSE)
"""What the paper draws against memory: retrieval models as they are, and the compressed ones beside them; and those of
others that need next to nothing beside codes."""


def against_ratio(lines: Sequence[Line], recipe: str) -> Figure | None:
    """MRR@10 of the compression methods against how many times smaller their codes are, from about 32 times on."""
    left_out = (*KINDS["uncompressed"], "int8 (sentence-transformers)", *PARTS)
    compressed = [name for name in dict.fromkeys([*STYLES, *named(lines)]) if name not in left_out]
    figure = _drawn(lines, recipe, compressed, ratio_of, "compression ratio")
    for axis in figure.axes if figure else []:
        whole = [line["measures"]["MRR@10"] for line in lines if _is_whole(line, recipe, axis.get_title())]
        if whole:
            axis.axhline(mean(whole), color="black", linewidth=0.8, linestyle=(0, (1, 3)))
            axis.annotate(
                "uncompressed",
                (1, mean(whole)),
                (0, -10),
                ("axes fraction", "data"),
                "offset points",
                ha="right",
                size=8,
            )
    return figure


def _is_whole(line: Line, recipe: str, dataset: str) -> bool:
    return (line["recipe"], line["dataset"], line["method"]) == (recipe, dataset, "uncompressed")


def against_memory(lines: Sequence[Line], recipe: str) -> Figure | None:
    """MRR@10 against documents a kilobyte, of all that must be in memory to search."""
    return _drawn(lines, recipe, FIRST_STAGE, _documents_per_kilobyte, "documents per kilobyte")


def _documents_per_kilobyte(line: Line) -> float:
    return float(1024 / (line["bytes_per_document"] + line["shared_bytes"] / line["documents"]))


def _drawn(
    lines: Sequence[Line], recipe: str, names: Sequence[str], place: Callable[[Line], float], label: str
) -> Figure | None:
    own = [line for line in lines if line["recipe"] == recipe and line["method"] in names]
    datasets = sorted({line["dataset"] for line in own})
    if not own:
        return None
    figure = Figure(figsize=(3.9 * len(datasets) + 2.6, 4.2), layout="constrained")
    for axis, dataset in zip(figure.subplots(1, len(datasets), squeeze=False)[0], datasets, strict=True):
        for name in names:
            _curve(axis, name, [line for line in own if (line["dataset"], line["method"]) == (dataset, name)], place)
        axis.set(xscale="log", xlabel=label, title=dataset)
        _plain_ticks(axis, [place(line) for line in own if line["bytes"] and place is ratio_of])
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.3)
    figure.axes[0].set_ylabel("MRR@10")
    handles = {
        name: handle for axis in figure.axes for handle, name in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(list(handles.values()), list(handles), frameon=False, loc="outside right upper", fontsize=8)
    return figure


def _curve(axis: Axes, name: str, lines: Sequence[Line], place: Callable[[Line], float]) -> None:
    """Means over seeds, by size; a method of one size is a point."""
    points: dict[float, list[float]] = {}
    for size in sorted({line["bytes_per_document"] for line in lines}):
        alike = [line for line in lines if line["bytes_per_document"] == size]
        points.setdefault(mean(map(place, alike)), []).extend(line["measures"]["MRR@10"] for line in alike)
    if points:
        style: dict[str, Any] = {"linewidth": 1.2, "markersize": 6, "linestyle": "none", "label": name} | STYLES.get(
            name, OTHER
        )
        places = sorted(points)
        axis.plot(places, [mean(points[at]) for at in places], **style)


def _plain_ticks(axis: Axes, chosen: Sequence[float]) -> None:
    """Numbers as they are said, not powers of ten: the chosen ones, or as many as have room."""
    low, high = axis.get_xlim()
    usual = [base * 10.0**power for power in range(-2, 5) for base in (1, 2, 5)]
    ticks = sorted(set(chosen)) if len(set(chosen)) > 2 else [tick for tick in usual if low <= tick <= high]
    axis.set_xticks(ticks, [f"{tick:.3g}" for tick in ticks])
    axis.minorticks_off()
