"""Pictures as pure functions of the result lines.

python -m benchmarks.pictures    draws them into docs/figures/, as PNG for the pages and as SVG for print
"""

from collections.abc import Iterator
from pathlib import Path

from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks import results
from benchmarks.methods_pictures import against_memory, against_ratio

FOLDER = Path(__file__).parent.parent / "docs" / "figures"
COLOURS = {"OPQ": "#888888", "+ clustering": "#d95f02", "+ constraint": "#1f77b4"}
DASHES = {"OPQ": ":", "+ clustering": "--", "+ constraint": "-"}
LABELS = {"OPQ": "OPQ", "+ clustering": "RepCONC without the constraint", "+ constraint": "RepCONC"}


def codeword_frequencies(recipe: str = "static", size: int = 16) -> Figure:
    """How often each codeword is used in the whole corpus, the most frequent first (the paper's last figure)."""
    lines = [
        line
        for line in results.read("training")
        if (line["recipe"], line["bytes"], line["seed"]) == (recipe, size, 0) and line["row"] in COLOURS
    ]
    datasets = list(dict.fromkeys(line["dataset"] for line in lines))
    figure = Figure(figsize=(4.2 * len(datasets), 3.4), layout="constrained")
    for axis, dataset in zip(figure.subplots(1, len(datasets), squeeze=False, sharey=True)[0], datasets, strict=True):
        for line in (line for line in lines if line["dataset"] == dataset):
            frequencies = line["use"]["frequencies"]
            style = {"color": COLOURS[line["row"]], "linestyle": DASHES[line["row"]], "label": LABELS[line["row"]]}
            axis.plot(range(1, len(frequencies) + 1), frequencies, **style)
        axis.axhline(1, color="black", linewidth=0.8, linestyle=":")
        axis.set(title=f"{dataset}, {size} bytes", xlabel="codeword, most frequent first", yscale="log")
        _tidy(axis)
    figure.axes[0].set_ylabel("frequency (1 = uniform)")
    figure.axes[0].legend(frameon=False)
    return figure


def tradeoff() -> Figure:
    """MRR@10 against queries a second on one thread (the paper's figure of latency); a point is a number of lists.

    The last line of each point counts. Keyword search is one point.
    """
    keys = ("system", "batch", "probes")
    lines = list({tuple(line[key] for key in keys): line for line in results.read("tradeoff")}.values())
    batches = sorted({line["batch"] for line in lines})
    figure = Figure(figsize=(4.8 * len(batches), 3.8), layout="constrained")
    systems = dict(zip(dict.fromkeys(line["system"] for line in lines), SYSTEM_STYLES, strict=False))
    for axis, batch in zip(figure.subplots(1, len(batches), squeeze=False, sharey=True)[0], batches, strict=True):
        for system, (colour, dashes, beside) in systems.items():
            own = [line for line in lines if (line["system"], line["batch"]) == (system, batch)]
            speeds, quality = [line["queries a second"] for line in own], [line["MRR@10"] for line in own]
            axis.plot(speeds, quality, dashes, markersize=4, color=colour, label=system)
            for line in own[:: len(own) // 3 or 1]:
                place = (line["queries a second"], line["MRR@10"])
                axis.annotate(str(line["probes"] or ""), place, beside, textcoords="offset points", size=8)
        title = "one query at a time" if batch == 1 else f"batches of {batch}"
        axis.set(xscale="log", xlabel="queries a second, one thread", title=f"HotpotQA, {title}")
        _tidy(axis)
    figure.axes[0].set_ylabel("MRR@10")
    figure.axes[0].legend(frameon=False)
    return figure


SYSTEM_STYLES = (
    ("#1f77b4", "o-", (6, -8)),
    ("#2a9d8f", "^--", (-9, -11)),
    ("#888888", "s:", (4, 4)),
    ("black", "*", (4, 4)),
)
"""Colour, marker and dashes, and where numbers stand beside a point."""


def recall() -> Figure:
    """Recall@10 against queries a second on one thread; in the legend what each system keeps for a document."""
    lines = results.read("recall")
    figure = Figure(figsize=(8.4, 4.6), layout="constrained")
    axis = figure.add_subplot()
    axis.set_prop_cycle(color=colormaps["Paired"](range(12)))
    for system in dict.fromkeys(line["system"] for line in lines):
        own = {line["step"]: line for line in lines if line["system"] == system}.values()
        ours = system.startswith("RepCONC")
        size = next(iter(own))["bytes"] / next(iter(own))["documents"]
        axis.plot(
            [line["recall"] for line in own],
            [line["queries a second"] for line in own],
            "o-" if ours else "s--",
            markersize=4,
            linewidth=2 if ours else 1,
            label=f"{system} ({size:,.0f} bytes)",
        )
    axis.set(yscale="log", xlabel="recall@10 of exact search", ylabel="queries a second, one thread")
    _tidy(axis)
    figure.legend(frameon=False, loc="outside right upper", fontsize=8)
    return figure


def _tidy(axis: Axes) -> None:
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(alpha=0.3)


def pictures() -> Iterator[tuple[str, Figure]]:
    """All that there are lines for, by the names of their files."""
    if results.read("recall"):
        yield "recall", recall()
    if results.read("tradeoff"):
        yield "tradeoff", tradeoff()
    if results.read("training"):
        yield "codewords", codeword_frequencies()
    lines = results.read("methods")
    for recipe in dict.fromkeys(line["recipe"] for line in lines):
        for name, draw in (("ratio", against_ratio), ("memory", against_memory)):
            if figure := draw(lines, recipe):
                yield f"methods-{name}-{recipe}", figure


def keep(name: str, figure: Figure, folder: Path = FOLDER) -> None:
    """Both forms; the same lines give the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{name}.png", dpi=130)
    with rc_context({"svg.hashsalt": name}):
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    for name, figure in pictures():
        keep(name, figure)
