"""The paper's own figures (Zhan et al., 2022: its main table and its ablation, MS MARCO passage ranking), beside ours.

Corpus, encoder and size differ, so the values do not compare; what is kept of the uncompressed model's may.
"""

from collections.abc import Sequence
from statistics import mean

from benchmarks.methods_goals import OURS, Line
from benchmarks.methods_tables import at_ratio
from repconc.evaluation.tables import Table

MAIN = {
    "ANCE style": ("0.338", "0.862"),
    "ADORE style": ("0.347", "0.876"),
    "PQ": ("0.028**", "0.193**"),
    "ScaNN": ("0.034**", "0.402**"),
    "ITQ + LSH": ("0.271**", "0.782**"),
    "OPQ": ("0.290**", "0.830**"),
    "OPQ + ScaNN": ("0.310**", "0.837**"),
    "DPQ": ("0.305**", "0.840**"),
    "JPQ": ("0.332**", "0.863"),
    OURS: ("0.340", "0.864"),
}
"""MRR@10 and R@100 at 64x (48 bytes); the first two are uncompressed. Stars: RepCONC is significantly better."""
BY_BYTES = {
    "DPQ": ("0.244", "0.305"),
    "JPQ": ("0.273", "0.332"),
    "OPQ": ("0.234", "0.290"),
    "OPQ + clustering": ("0.275", "0.332"),
    "+ constraint": ("0.284", "0.337"),
    "+ dynamic negatives": ("0.294", "0.340"),
}
"""MRR@10 at 16 and 48 bytes, 192x and 64x."""
UNCOMPRESSED = 0.347
"""MRR@10 of ADORE, from which the paper reckons what is kept."""


def by_bytes_table() -> Table:
    """The paper's ablation, its only figures by ratio that are printed as numbers."""
    rows = [[name, *values] for name, values in BY_BYTES.items()]
    return Table(["the paper, MRR@10", "16 bytes (192x)", "48 bytes (64x)"], rows)


def beside_table(lines: Sequence[Line]) -> Table:
    """The paper's rows at 64x, and for each of our encoders and sets what is kept of the uncompressed MRR@10."""
    ours = [line for line in lines if at_ratio(line, 64)]
    settings = sorted({(line["recipe"], line["dataset"]) for line in ours})
    rows = []
    for name, (mrr, recall) in MAIN.items():
        kept = f"{float(mrr.rstrip('*')) / UNCOMPRESSED:.0%}"
        rows.append([name, mrr, recall, kept, *(_kept(ours, *setting, name) for setting in settings)])
    columns = [
        "the paper's rows, 64x",
        "MRR@10",
        "R@100",
        "kept",
        *(f"ours, {data}, {recipe}" for recipe, data in settings),
    ]
    return Table(columns, rows)


def _kept(lines: Sequence[Line], recipe: str, dataset: str, name: str) -> str:
    """Of the seeds that both have."""
    by_seed: dict[str, dict[int, float]] = {name: {}, "uncompressed": {}}
    for line in lines:
        if (line["recipe"], line["dataset"]) == (recipe, dataset) and line["method"] in by_seed:
            by_seed[line["method"]][line["seed"]] = line["measures"]["MRR@10"]
    own, whole = by_seed[name], by_seed["uncompressed"]
    shares = [value / whole[seed] for seed, value in own.items() if seed in whole]
    return f"{mean(shares):.0%}" if shares else ""
