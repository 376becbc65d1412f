"""Tables as pure functions of the result lines.

python -m benchmarks.tables    puts them into the pages that show them, between <!-- table: NAME --> and <!-- end -->
"""

import re
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks import methods_tables, results
from benchmarks.cells import mean_of, with_spread
from benchmarks.compression_tables import ablation_table, modes_table
from benchmarks.lengths import lengths_table
from benchmarks.methods_tables import by_ratio_table, costs_table, main_table
from benchmarks.nested import nested_table
from benchmarks.paper import beside_table, by_bytes_table
from benchmarks.recall_table import recall_table
from benchmarks.structures_table import structures_table
from benchmarks.training import ROWS, SUITES, UNCOMPRESSED
from benchmarks.trials import trials_table
from benchmarks.warmups import warmups_table
from repconc.evaluation.significance import stars
from repconc.evaluation.tables import Table

NAMES = {"bm25": "BM25", "static": "static, 256 dimensions", "minilm": "MiniLM-L6, 384 dimensions"}
MEASURES = ("MRR@10", "nDCG@10", "R@100", "R@1000")


def baselines_table() -> Table:
    """The last line of each system on each set."""
    lines = {(line["dataset"], line["system"]): line for line in results.read("baselines")}
    rows = [
        [
            f"{dataset}, {NAMES[system]}",
            f"{line['bytes_per_document']:,.0f}",
            *(f"{line['measures'][measure]:.3f}" for measure in MEASURES),
        ]
        for (dataset, system), line in lines.items()
    ]
    return Table(["set and system", "bytes/document", *MEASURES], rows)


def training_table(recipe: str, codes: str = "product") -> Table:
    """The ablation: means over seeds, with the standard deviation of MRR@10 where there are several."""
    groups: dict[tuple[str, int | None, str], list[dict[str, Any]]] = {}
    warmed = ROWS[codes][len(UNCOMPRESSED)]
    against = f"p against {warmed}"
    for line in results.read(SUITES[codes]):
        if line["recipe"] == recipe:
            groups.setdefault((line["dataset"], line["bytes"], line["row"]), []).append(line)
    dense = {key[0]: mean_of(lines, "MRR@10") for key, lines in groups.items() if key[2] == "dense"}
    before = {
        (line["dataset"], line["bytes"], line["seed"]): line["measures"]["MRR@10"]
        for (_, _, row), lines in groups.items()
        for line in lines
        if row == warmed
    }
    rows = []
    for (dataset, size, row), lines in groups.items():
        mrr = [line["measures"]["MRR@10"] for line in lines]
        better = all(line["measures"]["MRR@10"] > before.get((dataset, size, line["seed"]), 1.0) for line in lines)
        worst = max((line[against] for line in lines if against in line), default=1.0)
        rows.append(
            [
                f"{dataset}, {row}",
                f"{size or lines[0]['bytes_per_document']:,}",
                f"{with_spread(mrr)}{stars(worst) if better else ''}",
                f"{mean(mrr) / dense[dataset]:.1%}",
                f"{mean_of(lines, 'R@100'):.3f}",
                f"{mean(line['seconds'] for line in lines):,.0f}",
            ]
        )
    return Table(["set and row", "bytes", "MRR@10", "of dense", "R@100", "seconds"], rows)


def summary_table() -> Table:
    """RepCONC beside OPQ and the uncompressed encoder, means of MRR@10 over seeds."""
    values: dict[tuple[str, str, int | None, str], list[dict[str, Any]]] = {}
    for line in results.read("training"):
        values.setdefault((line["dataset"], line["recipe"], line["bytes"], line["row"]), []).append(line)
    rows = []
    for (dataset, recipe, size, row), lines in values.items():
        if row != "+ dynamic negatives" or size is None:
            continue
        whole = values[dataset, recipe, None, "dense"]
        dense, opq, ours = (mean_of(part, "MRR@10") for part in (whole, values[dataset, recipe, size, "OPQ"], lines))
        worst = max(line["p against OPQ"] for line in lines)
        rows.append(
            [
                f"{dataset}, {ENCODERS[recipe]}",
                f"{size} ({whole[0]['bytes_per_document'] // size}x)",
                f"{dense:.3f}",
                f"{opq:.3f}",
                f"{ours:.3f}{stars(worst) if ours > opq else ''}",
                f"{ours / dense:.1%}",
                f"{(ours - opq) / (dense - opq):.0%}",
                str(len(lines)),
            ]
        )
    columns = ["set and encoder", "bytes", "uncompressed", "OPQ", "RepCONC", "kept", "of OPQ's gap", "seeds"]
    return Table(columns, rows)


ENCODERS = {"static": "static", "heads": "MiniLM-L6 with heads", "minilm-cpu": "MiniLM-L6, whole"}


def figures_table(suite: str) -> Table:
    """The last run of a suite of measurements."""
    lines = {(line["figure"], line["unit"], line["rival"]): line for line in results.read(suite)}
    rows = [
        [
            line["figure"],
            f"{line['value']:,.4g} {line['unit']}",
            line["goal"] or "",
            {True: "met", False: "missed", None: ""}[line["met"]],
            line["rival"] or "",
        ]
        for line in lines.values()
    ]
    return Table(["figure", "value", "goal", "", "against"], rows)


SCAN_RIVALS = {
    "faiss IndexPQ ": "IndexPQ",
    "faiss IndexPQFastScan": "IndexPQFastScan",
    "faiss IndexIVFPQ": "IndexIVFPQ",
    "a sum over": "a plain sum",
}


def scan_table() -> Table:
    """One row a setting, one column a rival: how many times as fast we are; goals beside, where there are some."""
    settings: dict[str, dict[str, str]] = {}
    for line in results.read("scan"):
        value = f"{line['value']:,.3g}"
        cells = settings.setdefault(line["figure"], {})
        if line["rival"] is None:
            cells["ours"] = f"{value} {line['unit']}"
            continue
        column = next(name for start, name in SCAN_RIVALS.items() if line["rival"].startswith(start))
        goal = f" ({line['goal']} {'met' if line['met'] else 'missed'})" if line["goal"] else ""
        cells[column] = f"{value}x{goal}"
    columns = ["ours", *SCAN_RIVALS.values()]
    rows = [[name, *(cells.get(column, "") for column in columns)] for name, cells in settings.items()]
    return Table(["setting", *columns], rows)


def demo_table() -> str:
    """As the demo prints it; the last run."""
    forms = {
        "system": "{}",
        "bytes_per_document": "{:,.0f}",
        "times_smaller": "{:.1f}x",
        "mrr_at_10": "{:.3f}",
        "recall_at_100": "{:.3f}",
        "queries_per_second": "{:,.0f}",
    }
    rows = {line["system"]: [form.format(line[name]) for name, form in forms.items()] for line in results.read("demo")}
    columns = ["system", "bytes/document", "times smaller", "MRR@10", "R@100", "queries/s"]
    return f"```\n{Table(columns, list(rows.values())).render('text')}\n```"


def methods_table(kind: str, *where: str) -> str:
    """Of the paper's comparison, by its kind, then the recipe and the set where it is of one."""
    made: dict[str, Callable[..., Table]] = {
        "64x": main_table,
        "ablation": methods_tables.ablation_table,
        "ratio": by_ratio_table,
        "costs": costs_table,
        "beside": beside_table,
        "structures": structures_table,
    }
    return _shown(made[kind](results.read("methods"), *where))


def _shown(drawn: Table) -> str:
    return drawn.render("markdown") if drawn.rows else "(Not measured yet.)"


def table(name: str) -> str:
    """A table by the name in its mark."""
    if name == "demo":
        return demo_table()
    kind, _, rest = name.partition(" ")
    if kind == "figures":
        return _shown(figures_table(rest))
    if kind == "methods":
        return methods_table(*rest.split())
    if kind == "trials":
        return _shown(trials_table(*rest.split()))
    made = {
        "baselines": baselines_table,
        "summary": summary_table,
        "scan": scan_table,
        "recall": recall_table,
        "compression": modes_table,
        "compression ablation": ablation_table,
        "paper": by_bytes_table,
        "lengths": lengths_table,
        "nested": nested_table,
        "warmups": warmups_table,
    }.get(name)
    return _shown(made() if made else training_table(*rest.split()))


ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", ROOT / "docs" / "results.md")
MARKED = re.compile(r"<!-- table: ([^>]+) -->\n\n(.*?)\n\n<!-- end -->", re.DOTALL)


def filled(page: str) -> str:
    """A page with its tables as the results now are."""
    return MARKED.sub(lambda mark: f"<!-- table: {mark[1]} -->\n\n{table(mark[1])}\n\n<!-- end -->", page)


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
