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
COLOURS = {"OPQ": "#555555", "+ clustering": "#d95f02", "+ constraint": "#1f77b4"}
DASHES = {"OPQ": "-.", "+ clustering": "--", "+ constraint": "-"}
FREQUENCIES = (0.25, 0.5, 1, 2, 3)
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
        axis.axhline(1, color="black", linewidth=0.6)
        axis.set(title=f"{dataset}, {size} bytes", xlabel="codeword, most frequent first", yscale="log")
        axis.set_yticks(FREQUENCIES, map(str, FREQUENCIES))
        axis.minorticks_off()
        _tidy(axis)
    figure.axes[0].set_ylabel("frequency (1 = uniform)")
    figure.axes[0].legend(frameon=False)
    return figure


def tradeoff() -> Figure:
    """MRR@10 against queries a second on one thread (the paper's figure of latency); a point is a number of lists.

    The last line of each point counts. Keyword search is one point. All curves have the numbers that stand at one.
    """
    keys = ("system", "batch", "probes")
    lines = list({tuple(line[key] for key in keys): line for line in results.read("tradeoff")}.values())
    batches = sorted({line["batch"] for line in lines})
    figure = Figure(figsize=(4.8 * len(batches), 3.8), layout="constrained")
    systems = dict(zip(dict.fromkeys(line["system"] for line in lines), SYSTEM_STYLES, strict=False))
    for axis, batch in zip(figure.subplots(1, len(batches), squeeze=False, sharey=True)[0], batches, strict=True):
        for system, (colour, dashes) in systems.items():
            own = [line for line in lines if (line["system"], line["batch"]) == (system, batch)]
            speeds, quality = [line["queries a second"] for line in own], [line["MRR@10"] for line in own]
            axis.plot(speeds, quality, dashes, markersize=9 if dashes == "*" else 4, color=colour, label=system)
            for line in own if system == "uncompressed" else []:
                place, lists = (line["queries a second"], line["MRR@10"]), line["probes"]
                text = "1 list" if lists == 1 else str(lists)
                side, offset = ("left", (4, 4)) if lists <= 2 else ("right", (-4, -11))  # away from the other curves
                axis.annotate(text, place, offset, textcoords="offset points", size=8, ha=side)
        title = "one query at a time" if batch == 1 else f"batches of {batch}"
        axis.set(xscale="log", xlabel="queries a second, one thread", title=f"HotpotQA, {title}")
        _tidy(axis)
    figure.axes[0].set_ylabel("MRR@10")
    figure.axes[0].legend(frameon=False)
    return figure


SYSTEM_STYLES = (("#1f77b4", "o-"), ("#2a9d8f", "^--"), ("#888888", "s:"), ("black", "*"))
"""Colour, marker and dashes."""
RIVAL_MARKS = "sD^vP<>X"


def recall() -> Figure:
    """Recall@10 against queries a second on one thread; in the legend what each system keeps for a document."""
    lines = results.read("recall")
    figure = Figure(figsize=(8.4, 4.6), layout="constrained")
    axis = figure.add_subplot()
    ours_left, theirs_left = iter("o*h"), iter(RIVAL_MARKS)
    colours = {True: iter(colormaps["Blues"]([0.45, 0.7, 1.0])), False: iter(colormaps["Dark2"](range(8)))}
    for system in dict.fromkeys(line["system"] for line in lines):
        own = {line["step"]: line for line in lines if line["system"] == system}.values()
        ours = system.startswith("RepCONC")
        size = next(iter(own))["bytes"] / next(iter(own))["documents"]
        axis.plot(
            [line["recall"] for line in own],
            [line["queries a second"] for line in own],
            marker=next(ours_left if ours else theirs_left),
            linestyle="-" if ours else ":" if "vectors" in system else "--",
            color=next(colours[ours]),
            markersize=6 if ours else 5,
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
