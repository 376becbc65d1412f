"""The curves of a run in one picture: losses, dev MRR@10, balance of the codes, phase after phase."""

import io
from importlib.util import find_spec

from repconc.training.loop import Line

LOSSES = ("ranking", "clustering")
BALANCE = ("entropy (batch)", "entropy (nearest)")
COLOURS = ("#1f77b4", "#d95f02", "#1b9e77", "#7570b3")


def draw_report(history: list[Line]) -> dict[str, bytes]:
    """{"report.png": ...}; empty where matplotlib is not installed or nothing was trained."""
    phases = list(dict.fromkeys(line["phase"] for line in history if "MRR@10" in line))
    if not phases or find_spec("matplotlib") is None:
        return {}
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.4 * len(phases) + 1, 8), layout="constrained")
    axes = figure.subplots(3, len(phases), squeeze=False, sharex="col")
    for column, phase in enumerate(phases):
        lines = [line for line in history if line["phase"] == phase]
        for row, names in enumerate((LOSSES, ("MRR@10",), BALANCE)):
            axis = axes[row][column]
            for name, colour in zip(names, COLOURS, strict=False):
                points = [(line["step"], line[name]) for line in lines if name in line]
                if points:
                    axis.plot(*zip(*points, strict=True), label=name, color=colour, marker="." if row else None)
            if axis.lines:
                axis.legend(frameon=False, fontsize=8)
            else:
                axis.set_axis_off()
            axis.spines[["top", "right"]].set_visible(False)
            axis.grid(alpha=0.3)
        _mark_best(axes[1][column], lines)
        axes[0][column].set_title(phase)
        axes[1][column].set_xlabel("step")
    for row, label in enumerate(("loss", "MRR@10 on dev", "entropy of codes (1 = uniform)")):
        axes[row][0].set_ylabel(label)
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=120)
    return {"report.png": content.getvalue()}


def _mark_best(axis: object, lines: list[Line]) -> None:
    """A ring around the checkpoint that was kept."""
    step, value = max(
        ((line["step"], line["MRR@10"]) for line in lines if "MRR@10" in line), key=lambda point: point[1]
    )
    axis.plot(step, value, "o", markersize=10, markerfacecolor="none", color="#444444")  # type: ignore[attr-defined]
    axis.annotate(f"{value:.3f}", (step, value), xytext=(0, -16), textcoords="offset points", ha="center")  # type: ignore[attr-defined]
