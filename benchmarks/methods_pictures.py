"""Tables and pictures of the comparison, as pure functions of its result lines.

python -m benchmarks.methods_tables    prints the main table as LaTeX
"""

from statistics import mean
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks import results
from benchmarks.cells import with_spread
from repconc.evaluation.significance import paired_t_test, stars
from repconc.evaluation.tables import Table

OURS = "RepCONC"
KINDS = {
    "uncompressed": (
        "BM25",
        "untrained",
        "RepBERT style",
        "STAR style",
        "ANCE style",
        "ADORE style",
        "uncompressed",
    ),
    "unsupervised": (
        *("PQ", "PCA + int8", "ScaNN", "ITQ + LSH", "OPQ", "OPQ + ScaNN"),
        *("binary (sentence-transformers)", "RaBitQ (faiss)", "int8 (sentence-transformers)"),
    ),
    "supervised": (
        *("BPR", "DPQ", "MoPQ", "Distill-VQ", "JPQ", "RepCONC without constraint", "RepCONC without stage 2", OURS),
    ),
}
SIXTY_FOURTH = {"static": 16, "heads": 24}
MARKERS = "osv^D<>pX*"
Line = dict[str, Any]


def lines_of(recipe: str, dataset: str) -> list[Line]:
    return [line for line in results.read("methods") if (line["recipe"], line["dataset"]) == (recipe, dataset)]


def main_table(recipe: str) -> Table:
    """All methods where codes are a 64th of the vectors; those of a fixed size at their own. Means over seeds."""
    datasets = list(dict.fromkeys(line["dataset"] for line in results.read("methods") if line["recipe"] == recipe))
    rows = []
    for kind, names in KINDS.items():
        for name in names:
            cells = [_cells(recipe, dataset, name) for dataset in datasets]
            if any(cells):
                size = next(cell[0] for cell in cells if cell)
                rows.append([f"{kind}: {name}", size, *(text for cell in cells for text in (cell or ("",) * 4)[1:])])
    columns = [f"{dataset} {what}" for dataset in datasets for what in ("MRR@10", "R@100", "ms a query")]
    return Table(["method", "bytes/document", *columns], rows, "*/**: RepCONC is better, p < 0.05/0.01 in every seed.")


def _cells(recipe: str, dataset: str, name: str) -> tuple[str, str, str, str] | None:
    lines = [line for line in lines_of(recipe, dataset) if line["bytes"] in (None, SIXTY_FOURTH[recipe])]
    own = [line for line in lines if line["method"] == name]
    if not own:
        return None
    ours = {line["seed"]: line for line in lines if line["method"] == OURS}
    tests = [_worse(line, ours[line["seed"]]) for line in own if line["seed"] in ours]
    mark = stars(max(tests)) if tests and name != OURS else ""
    values = [line["measures"]["MRR@10"] for line in own]
    return (
        f"{own[0]['bytes_per_document']:,.0f}",
        f"{with_spread(values)}{mark}",
        f"{mean(line['measures']['R@100'] for line in own):.3f}",
        f"{mean(line['milliseconds_a_query'] for line in own):.2f}",
    )


def _worse(line: Line, ours: Line) -> float:
    """The p-value of the paired test, 1 where it is no worse than ours."""
    theirs, best = (np.array([1 / rank if rank else 0.0 for rank in one["ranks"]]) for one in (line, ours))
    return paired_t_test(theirs, best) if theirs.mean() < best.mean() else 1.0


def by_ratio(recipe: str, *, per_kilobyte: bool = False) -> Figure:
    """MRR@10 against how many times smaller the index is, or against documents a kilobyte of all that is in memory."""
    datasets = list(dict.fromkeys(line["dataset"] for line in results.read("methods") if line["recipe"] == recipe))
    figure = Figure(figsize=(4.6 * len(datasets), 3.9), layout="constrained")
    for axis, dataset in zip(figure.subplots(1, len(datasets), squeeze=False)[0], datasets, strict=True):
        for number, name in enumerate(name for kind in ("unsupervised", "supervised") for name in KINDS[kind]):
            points: dict[float, list[float]] = {}
            for line in lines_of(recipe, dataset):
                if line["method"] == name:
                    points.setdefault(_place(line, recipe, per_kilobyte), []).append(line["measures"]["MRR@10"])
            places = sorted(points)
            style = {"linewidth": 2.2, "color": "black"} if name == OURS else {"linewidth": 1}
            marker = MARKERS[number % len(MARKERS)]
            axis.plot(
                places, [mean(points[place]) for place in places], marker=marker, markersize=4, label=name, **style
            )
        what = "documents a kilobyte" if per_kilobyte else "times smaller"
        axis.set(xscale="log", xlabel=what, title=dataset)
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.3)
    figure.axes[0].set_ylabel("MRR@10")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), frameon=False, loc="outside right upper", fontsize=8)
    return figure


DIMENSIONS = {"static": 256, "heads": 384}


def _place(line: Line, recipe: str, per_kilobyte: bool) -> float:
    if not per_kilobyte:
        return float(4 * DIMENSIONS[recipe] / line["bytes_per_document"])
    return float(1024 / (line["bytes_per_document"] + line["shared_bytes"] / line["documents"]))


if __name__ == "__main__":
    for recipe in SIXTY_FOURTH:
        print(main_table(recipe).render("latex"))
