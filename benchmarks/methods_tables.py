"""Tables of the comparison, as functions of its lines alone: what is missing is left out, and seeds are counted.

python -m benchmarks.methods_tables    writes them as LaTeX into benchmarks/results/
"""

from collections.abc import Sequence
from statistics import mean

from benchmarks import results
from benchmarks.cells import fastest, mean_of, with_spread
from benchmarks.methods_goals import ADDITIVE, MEASURES, OURS, Line, p_value
from repconc.evaluation.significance import stars
from repconc.evaluation.tables import Table

KINDS = {
    "uncompressed": ("BM25", "untrained", "RepBERT style", "STAR style", "ANCE style", "ADORE style", "uncompressed"),
    "unsupervised": (
        *("PQ", "ScaNN", "PCA + int8", "ITQ + LSH", "OPQ", "OPQ + ScaNN"),
        *("binary (sentence-transformers)", "RaBitQ (faiss)", "int8 (sentence-transformers)"),
    ),
    "supervised": (
        *("BPR", "DPQ", "MoPQ", "Distill-VQ", "JPQ"),
        *("RepCONC without constraint", "RepCONC without stage 2", OURS, ADDITIVE),
    ),
}
"""The paper's groups, and the order of its rows. A method that is not here stands at the end."""
ABLATION = ("DPQ", "JPQ", "OPQ", "RepCONC without stage 2", "RepCONC without constraint", OURS, ADDITIVE)
NOTE = "One or two stars: RepCONC is better in every seed, p < 0.05 or 0.01 (two-tailed paired t-test)."


def main_table(lines: Sequence[Line], recipe: str) -> Table:
    """All methods where codes are a 64th of the vectors; those of a fixed size at their own. Means over seeds."""
    own = [line for line in lines if line["recipe"] == recipe and at_ratio(line, 64)]
    datasets = sorted({line["dataset"] for line in own})
    rows = []
    for name, kind in named(own).items():
        found = [line for line in own if line["method"] == name]
        cells = [cell for dataset in datasets for cell in _cells(own, dataset, name)]
        rows.append([f"{kind}: {name}", _size(found), _ratio(found), *cells])
    columns = [f"{dataset} {what}" for dataset in datasets for what in (*MEASURES, "all bytes", "seeds")]
    return Table(["method", "bytes/document", "ratio", *columns], rows, NOTE if rows else "")


def named(lines: Sequence[Line]) -> dict[str, str]:
    """The methods that there are lines of, in the order of tables, with their kinds."""
    kinds = {name: kind for kind, names in KINDS.items() for name in names}
    there = dict.fromkeys(line["method"] for line in lines)
    known = {name: kind for name, kind in kinds.items() if name in there}
    return known | {name: "other" for name in there if name not in kinds}


def at_ratio(line: Line, ratio: int) -> bool:
    """Whether a line is of codes so many times smaller than the vectors, or of a method whose size is fixed."""
    return line["bytes"] is None or line["bytes"] * ratio == 4 * line["dimensions"]


def ratio_of(line: Line) -> float:
    """How many times smaller than its encoder's vectors."""
    return float(4 * line["dimensions"] / line["bytes_per_document"])


def _cells(lines: Sequence[Line], dataset: str, name: str) -> list[str]:
    own, ours = (
        [line for line in lines if (line["dataset"], line["method"]) == (dataset, one)] for one in (name, OURS)
    )
    if not own:
        return [""] * 4
    values = {measure: [line["measures"][measure] for line in own] for measure in MEASURES}
    marks = {measure: stars(p_value(own, ours, measure)) for measure in MEASURES}
    return [
        with_spread(values["MRR@10"]) + marks["MRR@10"],
        f"{mean(values['R@100']):.3f}{marks['R@100']}",
        f"{own[0]['bytes_per_document'] + own[0]['shared_bytes'] / own[0]['documents']:,.0f}",
        str(len(own)),
    ]


def _size(lines: Sequence[Line]) -> str:
    """Of all sets: only a keyword index has another size on each."""
    sizes = sorted({round(line["bytes_per_document"]) for line in lines})
    return " to ".join(f"{size:,}" for size in (sizes[:1] if len(sizes) == 1 else [sizes[0], sizes[-1]]))


def _ratio(lines: Sequence[Line]) -> str:
    return "" if lines[0]["method"] == "BM25" else f"{ratio_of(lines[0]):.0f}x"


def ablation_table(lines: Sequence[Line], recipe: str) -> Table:
    """MRR@10 of RepCONC's parts at every size, beside the two methods that it is built from; seeds behind."""
    own = [line for line in lines if line["recipe"] == recipe and line["method"] in ABLATION and line["bytes"]]
    columns = sorted({(line["dataset"], -line["bytes"]) for line in own})
    rows = []
    for name in ABLATION:
        cells = [
            _short([line for line in own if (line["dataset"], -line["bytes"], line["method"]) == (*column, name)])
            for column in columns
        ]
        if any(cells):
            rows.append([name, *cells])
    return Table(["method", *(f"{dataset}, {-size} bytes" for dataset, size in columns)], rows)


def by_ratio_table(lines: Sequence[Line], recipe: str, dataset: str) -> Table:
    """MRR@10 of every method at every size of a set."""
    own = [line for line in lines if (line["recipe"], line["dataset"]) == (recipe, dataset) and line["bytes"]]
    sizes = sorted({line["bytes"] for line in own}, reverse=True)
    rows = []
    for name in named(own):
        cells = [_short([line for line in own if (line["method"], line["bytes"]) == (name, size)]) for size in sizes]
        rows.append([name, *cells])
    heads = [f"{size} bytes ({4 * own[0]['dimensions'] / size:.0f}x)" for size in sizes]
    return Table(["method", *heads], rows)


def costs_table(lines: Sequence[Line], recipe: str, dataset: str) -> Table:
    """What each method costs where codes are a 64th of the vectors: memory, time to learn, to code, and to search."""
    own = [line for line in lines if (line["recipe"], line["dataset"]) == (recipe, dataset) and at_ratio(line, 64)]
    rows = []
    for name in named(own):
        alike = [line for line in own if line["method"] == name]
        times = [_time(alike, column) for column in ("fit_seconds", "code_seconds", "milliseconds_a_query")]
        rows.append([name, _size(alike), f"{alike[0]['shared_bytes'] / 1024:,.0f}", *times])
    columns = ["bytes/document", "kilobytes beside", "seconds to learn", "seconds to code", "ms a query"]
    return Table(["method", *columns], rows)


def _time(lines: Sequence[Line], column: str) -> str:
    known = fastest(lines, column)
    return "" if known is None else f"{known:,.{2 if column == 'milliseconds_a_query' else 0}f}"


def _short(lines: Sequence[Line]) -> str:
    """A mean, and of how many seeds."""
    return f"{mean_of(lines, 'MRR@10'):.3f} ({len(lines)})" if lines else ""


def latex(lines: Sequence[Line]) -> dict[str, str]:
    """All tables by the names of their files."""
    tables = {}
    for recipe in dict.fromkeys(line["recipe"] for line in lines):
        tables[f"methods-{recipe}.tex"] = main_table(lines, recipe).render("latex")
        tables[f"methods-{recipe}-ablation.tex"] = ablation_table(lines, recipe).render("latex")
        for dataset in dict.fromkeys(line["dataset"] for line in lines if line["recipe"] == recipe):
            tables[f"methods-{recipe}-{dataset}.tex"] = by_ratio_table(lines, recipe, dataset).render("latex")
    return tables


if __name__ == "__main__":
    for file, text in latex(results.read("methods")).items():
        (results.FOLDER / file).write_text(text + "\n", encoding="utf-8")
