"""Tables as pure functions of the result lines.

python -m benchmarks.tables    prints the table of the README
"""

from benchmarks import results
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


if __name__ == "__main__":
    print(baselines_table().render("markdown"))
