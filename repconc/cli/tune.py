"""`repconc tune`: the quality or the latency that a user wants, to the number of lists that gives it."""

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from repconc.cli.options import Dataset, IndexFolder, IndexModel, Json, Quiet, Split, progress_bar, remark
from repconc.errors import RepconcError, import_extra

if TYPE_CHECKING:
    from repconc.indexes.tune import Point


def tune(
    folder: IndexFolder,
    dataset: Dataset,
    target: Annotated[
        float | None, typer.Option(min=0, max=1, help="Share of the exhaustive result's quality, such as 0.98.")
    ] = None,
    latency: Annotated[str | None, typer.Option(help="Longest time for one query on one thread, such as 2ms.")] = None,
    measure: Annotated[str, typer.Option(help="What quality means: any that ir-measures knows.")] = "MRR@10",
    split: Split = "dev",
    queries: Annotated[int, typer.Option(min=1, help="How many queries are asked at most.")] = 500,
    model: IndexModel = None,
    plot: Annotated[Path | None, typer.Option(help="The curve. [default: INDEX.tuning.png]")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Find how many lists a search should read, and store it in the index.

    Example: repconc tune index/ hotpotqa --target 0.98
    """
    from repconc.data.load import load_dataset
    from repconc.evaluation.measures import evaluate
    from repconc.indexes.folder import refuse_inside
    from repconc.indexes.ivf import Index
    from repconc.indexes.tune import choose, measure_curve, refine
    from repconc.indexes.tune import measure as measure_point
    from repconc.indexes.writing import set_probes
    from repconc.search import encoder_of

    if (target is None) == (latency is None):
        raise RepconcError("Say what you want: --target SHARE (such as 0.98) or --latency TIME (such as 2ms).")
    longest = None if latency is None else _milliseconds(latency)
    import_extra("matplotlib", extra="bench")
    loaded, index = load_dataset(dataset), Index(folder)
    asked, qrels = loaded.queries(split)[:queries], loaded.qrels(split)
    judged = {query.id: qrels[query.id] for query in asked}

    def quality(hits: list[Any]) -> float:
        run = {query.id: found for query, found in zip(asked, hits, strict=True)}
        return next(iter(evaluate(run, judged, [measure], loaded.relevance(split)).means.values()))

    image = plot or folder.resolve().with_name(f"{folder.resolve().name}.tuning.png")
    refuse_inside(folder, image)
    vectors = encoder_of(index, name=model).embed_queries([query.text for query in asked])
    with progress_bar("measuring", quiet) as progress:
        points = measure_curve(index, vectors, _depth(measure), quality, progress)
    at = partial(measure_point, index, vectors, _depth(measure), quality)
    points = refine(points, at, target=target, latency=longest)
    chosen = choose(points, target=target, latency=longest)
    _draw(points, chosen, measure, image)
    set_probes(folder, chosen.probes)
    if as_json:
        typer.echo(json.dumps({"probes": chosen.probes, "points": [point._asdict() for point in points]}))
        return
    _print(points, chosen, measure)
    remark(f"{len(asked)} queries of {loaded.name}/{split}; the index keeps probes = {chosen.probes}; {image}", quiet)


def _milliseconds(text: str) -> float:
    for unit, factor in (("ms", 1.0), ("us", 1e-3), ("s", 1e3)):
        if text.endswith(unit):
            try:
                value = float(text.removesuffix(unit)) * factor
            except ValueError:
                break
            if value > 0:
                return value
    raise RepconcError(f"The latency {text!r} is no time; write it like 2ms.")


def _depth(measure: str) -> int:
    """How many results a measure looks at."""
    cut = measure.rpartition("@")[2]
    return int(cut) if cut.isdecimal() else 100


def _print(points: "list[Point]", chosen: "Point", measure: str) -> None:
    from repconc.evaluation.tables import Table

    best = points[-1].quality
    rows = [
        [
            f"{point.probes}{' *' if point == chosen else ''}",
            f"{point.quality:.4f}",
            f"{point.quality / best:.1%}" if best else "",
            f"{point.milliseconds:.2f}",
        ]
        for point in points
    ]
    typer.echo(Table(["probes", measure, "of all lists", "ms a query"], rows).render("text"))


def _draw(points: "list[Point]", chosen: "Point", measure: str, path: Path) -> None:
    """Quality against latency, the chosen point marked."""
    import io

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from repconc.files import atomic_write

    figure = Figure(figsize=(6.4, 4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.plot([point.milliseconds for point in points], [point.quality for point in points], "o-", color="#1f6f8b")
    axes.plot(chosen.milliseconds, chosen.quality, "o", color="#c8553d", markersize=10, label=f"{chosen.probes} lists")
    for point in points:
        place = (point.milliseconds, point.quality)
        axes.annotate(str(point.probes), place, (4, -10), textcoords="offset points", size=8)
    axes.set(xscale="log", xlabel="milliseconds a query, one thread", ylabel=measure)
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=130)
    with atomic_write(path) as file:
        file.write(content.getbuffer())
