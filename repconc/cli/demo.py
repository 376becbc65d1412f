"""`repconc demo`: the whole job on built-in defaults — get a corpus, encode it, search it, measure it."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from repconc.cli.options import Json, Quiet, progress_bar, remark

if TYPE_CHECKING:
    from repconc.data.dataset import RetrievalDataset
    from repconc.evaluation.measures import Search
    from repconc.search import Searcher

DATASET = "hotpotqa"
TIMED_QUERIES = 200


class Row(NamedTuple):
    """One line of the demo's table."""

    system: str
    bytes_per_document: float
    times_smaller: float
    mrr_at_10: float
    recall_at_100: float
    queries_per_second: float


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for what the demo makes.")] = Path("demo"),
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run the main job on HotpotQA: 66,581 paragraphs, 1,000 test questions. What is already done is reused.

    Example: repconc demo
    """
    start = time.perf_counter()
    dataset = _dataset(quiet)
    searcher = _searcher(dataset, output / "vectors", quiet)
    rows = _measure(dataset, searcher, quiet)
    _print(rows, as_json)
    if not as_json:
        _print_answers(dataset, searcher)
        remark(f"\nDone in {time.perf_counter() - start:.0f} s; the vectors are in {output}/vectors.", quiet)


def _dataset(quiet: bool) -> "RetrievalDataset":
    from repconc.data.catalogue import folder_of, get
    from repconc.data.load import load_dataset

    if not folder_of(DATASET).is_dir():
        with progress_bar(f"fetching {DATASET}", quiet) as progress:
            get(DATASET, progress=progress)
    dataset = load_dataset(folder_of(DATASET))
    remark(f"Corpus: {dataset.card.documents:,} paragraphs, {dataset.card.queries['test']:,} test questions.", quiet)
    return dataset


def _searcher(dataset: "RetrievalDataset", folder: Path, quiet: bool) -> "Searcher":
    from repconc.models.encoder import Encoder
    from repconc.models.encoding import encode_corpus
    from repconc.search import Searcher

    with progress_bar("making the static encoder", quiet) as progress:
        encoder = Encoder("static", progress=progress)
    with progress_bar("encoding", quiet) as progress:
        encode_corpus(encoder, dataset, folder, batch_size=512, progress=progress)
    return Searcher.open(folder)


def _measure(dataset: "RetrievalDataset", searcher: "Searcher", quiet: bool) -> list[Row]:
    from repconc.baselines.bm25 import BM25

    remark("Building BM25 and measuring ...", quiet)
    keywords = BM25(dataset.documents)
    whole = searcher.index.nbytes / len(searcher.index)
    return [
        _row("BM25, keywords", keywords.search, keywords.nbytes / len(keywords), whole, dataset),
        _row(f"static encoder, {searcher.encoder.dimension} floats", searcher.search, whole, whole, dataset),
    ]


def _row(name: str, search: "Search", size: float, whole: float, dataset: "RetrievalDataset") -> Row:
    from repconc.evaluation.measures import answer, evaluate
    from repconc.evaluation.timing import queries_per_second

    queries = dataset.queries("test")
    means = evaluate(answer(search, queries, 100), dataset.qrels("test"), ["MRR@10", "R@100"]).means
    speed = queries_per_second(search, [query.text for query in queries[:TIMED_QUERIES]])
    return Row(name, size, whole / size, means["MRR@10"], means["R@100"], speed)


def _print(rows: list[Row], as_json: bool) -> None:
    from repconc.evaluation.tables import Table

    if as_json:
        typer.echo(json.dumps([row._asdict() for row in rows]))
        return
    formats = ("{}", "{:,.0f}", "{:.1f}x", "{:.3f}", "{:.3f}", "{:,.0f}")
    cells = [[form.format(value) for form, value in zip(formats, row, strict=True)] for row in rows]
    columns = ["system", "bytes/document", "times smaller", "MRR@10", "R@100", "queries/s"]
    typer.echo("\n" + Table(columns, cells).render("text"))


def _print_answers(dataset: "RetrievalDataset", searcher: "Searcher") -> None:
    """Three questions and the titles found; a dot marks the paragraphs that HotpotQA says are needed."""
    questions = dataset.queries("test")[:3]
    answers = searcher.search([question.text for question in questions], k=5)
    wanted = {hit.id for hits in answers for hit in hits}
    titles = {document.id: document.title for document in dataset.documents if document.id in wanted}
    qrels = dataset.qrels("test")
    for question, hits in zip(questions, answers, strict=True):
        typer.echo(f"\n{question.text}")
        for hit in hits:
            typer.echo(f"  {'●' if hit.id in qrels[question.id] else ' '} {hit.score:.3f}  {titles[hit.id]}")
    typer.echo("\n● a paragraph that the answer needs")
