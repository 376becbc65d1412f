"""What compression did, on queries that were held out of training: one page with a table, a plot, and plain sentences.

The page stands alone: the plot is inside it, and it asks nothing of any other place.
"""

import base64
import html
import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path

from repconc.additive import AdditiveCodec
from repconc.compression.compress import Result
from repconc.compression.learning import nearest_of, relevant_to
from repconc.compression.pictures import NEAREST, OURS, Report, Row, pictures
from repconc.compression.rivals import DEPTH, System, coded, mapped, rivals, unlearned
from repconc.evaluation.compare import cell_text, compare
from repconc.evaluation.tables import Table
from repconc.files import atomic_write
from repconc.records import Run

LABELLED = ("MRR@10", "nDCG@10", "R@100")
OPQ = "OPQ"


def make_report(result: Result, seed: int = 0, say: Callable[[str], None] = lambda sentence: None) -> Report:
    """Measure ours and its rivals over the sample, which is all documents where they are not very many."""
    sample, asked, learned = result.sample, result.splits.test, result.learned
    coding = learned.coding
    same = [unlearned(sample, asked, coding, seed)] if isinstance(coding, AdditiveCodec) else []
    systems = [
        *rivals(sample, asked, coding.blocks, coding.codewords, seed, say),
        *same,
        coded(OURS, sample, asked, learned.coding, learned.scoring),
        *_beside(result),
    ]
    names = [system.name for system in systems]
    reference = same[0].name if same else OPQ
    names.insert(0, names.pop(names.index(reference)))
    runs: dict[str, Run] = {name: next(s.run for s in systems if s.name == name) for name in names}
    nearest = compare(runs, nearest_of(asked, sample), [NEAREST], seed=seed)
    labelled = {}
    qrels = result.given.qrels or {}
    judged = {id: qrels[id] for id in asked.ids if relevant_to(result.given, id)}
    if judged and result.mode != "documents":
        labelled = compare(runs, judged, LABELLED, seed=seed)
    if find_spec("matplotlib") is None:
        say("The report has no plots: matplotlib is not installed (pip install 'repconc[bench]').")
    whole = 4 * sample.vectors.shape[1]
    rows = [
        Row(s.name, s.bytes, s.shared, whole / s.bytes, nearest[s.name][NEAREST], labelled.get(s.name, {}))
        for s in systems
    ]
    about = f"{len(result.given.matrix):,} vectors of {sample.vectors.shape[1]} dimensions, mode {result.mode}"
    sentences = list(_sentences(rows, reference, result))
    return Report(about, reference, rows, sentences, len(asked.ids), len(sample.ids))


def _beside(result: Result) -> Iterator[System]:
    """What our maps do alone, and what the index finds as it is searched by default."""
    sample, asked, learned = result.sample, result.splits.test, result.learned
    yield mapped("uncompressed, our maps", sample, asked, learned.coding, learned.scoring)
    index, manifest = result.index, result.index.manifest
    if len(index) == len(sample.ids):
        run = dict(zip(asked.ids, index.search(asked.vectors, DEPTH), strict=True))
        name = f"ours, {manifest.probes} of {manifest.lists} lists"
        yield System(name, index.nbytes / len(index), 0, run)


def _sentences(rows: list[Row], reference: str, result: Result) -> Iterator[str]:
    by_name = {row.name: row for row in rows}
    ours, unlearnt, whole = by_name[OURS], by_name[reference], by_name["uncompressed"]
    if len(result.sample.ids) < len(result.given.matrix):
        yield f"Measured over {len(result.sample.ids):,} of the {len(result.given.matrix):,} documents."
    if result.mode == "documents":
        yield "No queries were given: documents that were moved a little are what is searched with here."
    cells = [("recall of the uncompressed top 10", ours.nearest, unlearnt.nearest, 1.0)]
    if ours.labelled:
        cells.append(("MRR@10", ours.labelled["MRR@10"], unlearnt.labelled["MRR@10"], whole.labelled["MRR@10"].mean))
    for name, own, other, upper in cells:
        figures = f"{name} {other.mean:.3f} with {reference}, {own.mean:.3f} with ours at the same bytes"
        if own.p_holm is None or own.p_holm >= 0.05:
            count = len(result.splits.test.ids)
            yield f"Learning does not help here as far as {count} queries can tell: {figures}."
        elif own.mean < other.mean:
            without = '; a recipe with method = "opq" and dense = [] leaves it out' if reference == OPQ else ""
            yield f"Learning hurts here: {figures}{without}."
        else:
            share = (own.mean - other.mean) / (upper - other.mean) if upper > other.mean else 1.0
            yield f"Learning helps: {figures}, which closes {share:.0%} of the gap to the uncompressed vectors."


def as_table(report: Report) -> Table:
    measures = list(report.rows[0].labelled)
    columns = ["system", "bytes/document", "times smaller", "and once", "recall of top 10", *measures]
    rows = [
        [
            row.name,
            f"{row.bytes:,.1f}".removesuffix(".0"),
            f"{row.ratio:.1f}x",
            f"{row.shared / 1e6:.2f} MB" if row.shared else "",
            cell_text(row.nearest, 3),
            *(cell_text(row.labelled[measure], 3) for measure in measures),
        ]
        for row in report.rows
    ]
    note = (
        f"{report.queries} held-out queries; [95 % bootstrap interval]; */** differs from {report.reference} at "
        "p < 0.05/0.01, two-tailed paired t-test, Holm-corrected."
    )
    return Table(columns, rows, note)


def write_report(report: Report, result: Result, path: Path) -> None:
    """path: .html for a page, .md for Markdown with pictures beside it, .json for the figures."""
    if path.suffix == ".json":
        content = json.dumps(asdict(report), indent=2)
    elif path.suffix == ".md":
        parts = [f"# Compressed: {report.about}", *report.sentences, as_table(report).render("markdown")]
        for number, (name, drawn) in enumerate(pictures(report, result.learned.history)):
            place = path.with_suffix(f".{number}.svg")
            with atomic_write(place) as file:
                file.write(drawn)
            parts.append(f"![{name}]({place.name})")
        content = "\n\n".join(parts) + "\n"
    else:
        content = _page(report, result)
    with atomic_write(path, "w") as file:
        file.write(content)


def _page(report: Report, result: Result) -> str:
    table = as_table(report)
    head = "".join(f"<th>{html.escape(column)}</th>" for column in table.columns)
    body = "".join(
        f"<tr{' class=ours' if row[0].startswith('ours') else ''}>"
        + "".join(f"<td>{html.escape(cell)}</td>" for cell in row)
        + "</tr>"
        for row in table.rows
    )
    drawn = "".join(
        f'<img alt="{name}" src="data:image/svg+xml;base64,{base64.b64encode(content).decode()}">'
        for name, content in pictures(report, result.learned.history)
    )
    sentences = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in report.sentences)
    return PAGE.format(
        title=html.escape(report.about),
        sentences=sentences,
        head=head,
        body=body,
        note=html.escape(table.note),
        pictures=drawn,
    )


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Compressed: {title}</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #222; }}
table {{ border-collapse: collapse; font-size: 0.9rem; }} .wide {{ overflow-x: auto; }}
th, td {{ padding: 0.3rem 0.8rem; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap; }}
th:first-child, td:first-child {{ text-align: left; }} tr.ours {{ font-weight: 600; background: #fff4ea; }}
small {{ color: #666; }} img {{ max-width: 100%; margin: 1rem 0; display: block; }}
</style></head><body>
<h1>What compression did</h1><p>{title}</p>{sentences}
<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>
<p><small>{note} Bytes a document are those of the code, for ours with lists those of the whole index; "and once" is
what must be in memory beside them, whatever the number of documents.</small></p>
{pictures}
</body></html>
"""
