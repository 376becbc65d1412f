"""Additive beside product codes of the same bytes, as a function of the lines of the comparison.

Codebooks of additive codes are larger, which counts in a small corpus. So the table has all bytes a document too, and
says how many documents a corpus must have for additive codes to win per byte of all that is in memory: product codes
that rank as well would need more bytes a document, by interpolation between the sizes that were measured, and at that
many documents the two are even.
"""

from collections.abc import Sequence
from statistics import mean

import numpy as np

from benchmarks.methods_goals import OURS, Line, p_value
from repconc.evaluation.significance import stars
from repconc.evaluation.tables import Table

ADDITIVE = "RepCONC with additive codes"
NOTE = "Stars: better than product codes in every seed, p < 0.05 or 0.01 (two-tailed paired t-test)."


def structures_table(lines: Sequence[Line]) -> Table:
    """A row for each set, encoder and size at which both were measured, over the seeds that both have."""
    rows = []
    for dataset, recipe in dict.fromkeys((line["dataset"], line["recipe"]) for line in lines):
        here = [line for line in lines if (line["dataset"], line["recipe"]) == (dataset, recipe)]
        products, additive = _by_size(here, OURS), _by_size(here, ADDITIVE)
        for size in sorted(products.keys() & additive.keys()):
            seeds = {line["seed"] for line in products[size]} & {line["seed"] for line in additive[size]}
            ours, theirs = ([line for line in own[size] if line["seed"] in seeds] for own in (additive, products))
            if seeds:
                rows.append([f"{dataset}, {recipe}", str(size), *_cells(theirs, ours, products)])
    columns = [
        "product MRR@10",
        "additive MRR@10",
        "",
        "product R@100",
        "additive R@100",
        "all bytes",
        "wins from",
        "seeds",
    ]
    return Table(["set and encoder", "bytes", *columns], rows, NOTE if rows else "")


def _by_size(lines: Sequence[Line], method: str) -> dict[int, list[Line]]:
    found: dict[int, list[Line]] = {}
    for line in lines:
        if line["method"] == method:
            found.setdefault(line["bytes"], []).append(line)
    return found


def _cells(product: Sequence[Line], additive: Sequence[Line], products: dict[int, list[Line]]) -> list[str]:
    low, high = (_mean(lines, "MRR@10") for lines in (product, additive))
    totals = [
        line["bytes_per_document"] + line["shared_bytes"] / line["documents"] for line in (product[0], additive[0])
    ]
    documents = winning_size(product[0], additive[0], high, products)
    return [
        f"{low:.3f}",
        f"{high:.3f}{stars(p_value(product, additive))}",
        f"{high / low - 1:+.1%}",
        f"{_mean(product, 'R@100'):.3f}",
        f"{_mean(additive, 'R@100'):.3f}{stars(p_value(product, additive, 'R@100'))}",
        " and ".join(f"{total:.0f}" for total in totals),
        f"{documents:,.0f} documents" if documents is not None else "",
        str(len(additive)),
    ]


def winning_size(product: Line, additive: Line, reached: float, products: dict[int, list[Line]]) -> float | None:
    """From how many documents on additive codes need fewer bytes in all than product codes that rank as well.

    reached: their MRR@10. None where no size of product codes that was measured ranks as well, or a smaller one does.
    """
    sizes = sorted(products)
    known = np.maximum.accumulate([_mean(products[size], "MRR@10") for size in sizes])
    if not known[0] <= reached <= known[-1]:
        return None
    more = float(np.interp(reached, known, sizes)) - additive["bytes"]
    return round((additive["shared_bytes"] - product["shared_bytes"]) / more, -3) if more > 0 else None


def _mean(lines: Sequence[Line], measure: str) -> float:
    return float(mean(line["measures"][measure] for line in lines))
