"""Tables as pure functions of the result lines.

python -m benchmarks.tables    prints the tables of the README
"""

from statistics import mean, stdev
from typing import Any

from benchmarks import results
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


def training_table(recipe: str) -> Table:
    """The ablation: means over seeds, with the standard deviation of MRR@10 where there are several."""
    groups: dict[tuple[str, int | None, str], list[dict[str, Any]]] = {}
    for line in results.read("training"):
        if line["recipe"] == recipe:
            groups.setdefault((line["dataset"], line["bytes"], line["row"]), []).append(line)
    dense = {key[0]: _mean(lines, "MRR@10") for key, lines in groups.items() if key[2] == "dense"}
    opq = {
        (line["dataset"], line["bytes"], line["seed"]): line["measures"]["MRR@10"]
        for (_, _, row), lines in groups.items()
        for line in lines
        if row == "OPQ"
    }
    rows = []
    for (dataset, size, row), lines in groups.items():
        mrr = [line["measures"]["MRR@10"] for line in lines]
        spread = f" ± {stdev(mrr):.3f}" if len(mrr) > 1 and stdev(mrr) >= 0.0005 else ""
        better = all(line["measures"]["MRR@10"] > opq.get((dataset, size, line["seed"]), 1.0) for line in lines)
        worst = max((line["p against OPQ"] for line in lines if "p against OPQ" in line), default=1.0)
        rows.append(
            [
                f"{dataset}, {row}",
                f"{size or lines[0]['bytes_per_document']:,}",
                f"{mean(mrr):.3f}{spread}{stars(worst) if better else ''}",
                f"{mean(mrr) / dense[dataset]:.1%}",
                f"{_mean(lines, 'R@100'):.3f}",
                f"{mean(line['seconds'] for line in lines):,.0f}",
            ]
        )
    return Table(["set and row", "bytes", "MRR@10", "of dense", "R@100", "seconds"], rows)


def _mean(lines: list[dict[str, Any]], measure: str) -> float:
    return float(mean(line["measures"][measure] for line in lines))


if __name__ == "__main__":
    print(baselines_table().render("markdown"))
    for name in ("static", "heads", "minilm-cpu"):
        print("\n" + training_table(name).render("markdown"))
