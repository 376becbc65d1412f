"""Additive beside product codes of the same bytes, as a function of the lines of the comparison.

Codebooks of additive codes are larger, which counts in a small corpus. So the table has the bytes of a whole index too,
and says how many documents a corpus must have for additive codes to win per byte of all that is in memory: product
codes that rank as well would need more bytes a document, by interpolation between the sizes that were measured, and at
that many documents the two are even.

Codebooks count twice, since an index keeps those that documents were coded with beside those that score. Lists of
additive codes are cut into classes, and each class has a place where it begins. What both have alike (centroids, where
lists begin) is not counted, nor what product codes could do without: their rotation, though it is in the lines, which
could be a part of the encoder's last layer, and the second form of their codebooks that tables are made from.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from benchmarks.cells import fastest, mean_of
from benchmarks.methods_goals import ADDITIVE, OURS, Line, p_value
from repconc.evaluation.significance import stars
from repconc.evaluation.tables import Table
from repconc.indexes.lists import default_lists
from repconc.lengths import CLASSES

SETS, OFFSET, TURNS = 2, 8, 100
"""Sets of codebooks, bytes of a number that says where a class begins, and turns until sizes come to rest."""
NOTE = "Stars: better than product codes in every seed, p < 0.05 or 0.01 (two-tailed paired t-test)."
Sizes = Mapping[int, Sequence[Line]]
"""Lines of one method by their bytes."""


def structures_table(lines: Sequence[Line]) -> Table:
    """A row for each set, encoder and size at which both were measured, over the seeds that both have."""
    rows = []
    cells = sorted({(line["dataset"], line["recipe"]) for line in lines})
    for dataset, recipe in sorted(cells, key=lambda cell: cell[1], reverse=True):  # the static encoder first
        here = [line for line in lines if (line["dataset"], line["recipe"]) == (dataset, recipe)]
        products, additive = _by_size(here, OURS), _by_size(here, ADDITIVE)
        for size in sorted(products.keys() & additive.keys()):
            theirs, ours = _of_same_seeds(products[size], additive[size])
            if ours:
                ends = [winning_size(ours, products), str(len(ours))]
                rows.append([f"{dataset}, {recipe}", str(size), *_cells(theirs, ours), *ends])
    measures = ["product MRR@10", "additive MRR@10", "", "product R@100", "additive R@100"]
    columns = ["set and encoder", "bytes", *measures, "index bytes", "ms a query", "wins from", "seeds"]
    return Table(columns, rows, NOTE if rows else "")


def _by_size(lines: Sequence[Line], method: str) -> dict[int, list[Line]]:
    found: dict[int, list[Line]] = {}
    for line in lines:
        if line["method"] == method:
            found.setdefault(line["bytes"], []).append(line)
    return found


def _of_same_seeds(*groups: Sequence[Line]) -> list[list[Line]]:
    """What is left of each group where only seeds that all have count."""
    seeds = set.intersection(*({line["seed"] for line in group} for group in groups))
    return [[line for line in group if line["seed"] in seeds] for group in groups]


def _cells(product: Sequence[Line], additive: Sequence[Line]) -> list[str]:
    low, high = (mean_of(lines, "MRR@10") for lines in (product, additive))
    both = product[0], additive[0]
    totals = [line["bytes_per_document"] + _beside(line, line["documents"]) / line["documents"] for line in both]
    return [
        f"{low:.3f}",
        f"{high:.3f}{stars(p_value(product, additive))}",
        f"{high / low - 1:+.1%}",
        f"{mean_of(product, 'R@100'):.3f}",
        f"{mean_of(additive, 'R@100'):.3f}{stars(p_value(product, additive, 'R@100'))}",
        " and ".join(f"{total:.0f}" for total in totals),
        " and ".join(f"{fastest(lines, 'milliseconds_a_query'):.2f}" for lines in (product, additive)),
    ]


def _beside(line: Line, documents: float) -> float:
    """Bytes beside codes in an index of so many documents."""
    rotation, classes = 4 * line["dimensions"] ** 2, (CLASSES - 1) * OFFSET * default_lists(round(documents))
    codebooks = line["shared_bytes"] - (rotation if line["method"] == OURS else 0)
    return float(SETS * codebooks + (classes if line["method"] == ADDITIVE else 0))


def winning_size(additive: Sequence[Line], products: Sizes) -> str:
    """From how many documents on additive codes need fewer bytes in all than product codes that rank as well.

    Only sizes of product codes count that have all seeds of the additive ones, the same bytes among them. Where no
    such size ranks as well, the largest of them gives a bound; where the same bytes do, additive codes never win.
    """
    size, reached = additive[0]["bytes"], mean_of(additive, "MRR@10")
    alike = {bytes: _of_same_seeds(additive, lines)[1] for bytes, lines in products.items()}
    sizes = sorted(bytes for bytes, lines in alike.items() if len(lines) == len(additive))
    known = np.maximum.accumulate([mean_of(alike[bytes], "MRR@10") for bytes in sizes])
    values, smallest = np.unique(known, return_index=True)  # of sizes that rank alike
    more = float(np.interp(reached, values, np.take(sizes, smallest))) - size
    if known[sizes.index(size)] >= reached:
        return "never"
    if more <= 0:
        return ""  # the largest that was measured
    documents = _even(additive[0], products[size][0], more)
    if documents <= 1:
        return "any size"
    bound = "at most " if reached > known[-1] else ""
    return f"{bound}{float(f'{documents:.2g}'):,.0f} documents"


def _even(additive: Line, product: Line, more: float) -> float:
    """How many documents there are where `more` bytes for each weigh as much as all that stands beside codes."""
    documents = 1.0
    for _ in range(TURNS):  # what stands beside grows with the root of the documents, so that this comes to rest
        documents = max(1.0, (_beside(additive, documents) - _beside(product, documents)) / more)
    return documents
