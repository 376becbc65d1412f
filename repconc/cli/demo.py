"""`repconc demo`: the whole job on built-in defaults — get a corpus, train, compress, search, measure."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from repconc.cli.options import Json, Quiet, progress_bar, progress_bars, remark
from repconc.training.view import TrainingView

if TYPE_CHECKING:
    from repconc.data.dataset import RetrievalDataset
    from repconc.evaluation.measures import Search
    from repconc.indexes.ivf import Index
    from repconc.models.repconc import RepconcModel
    from repconc.search import Searcher

DATASET = "hotpotqa"
ENCODER = "static"
BYTES = 16
TIMED_QUERIES = 200
NEXT = """\
  repconc search {output}/index "Which opera did the composer of Carmen leave unfinished?"
Or start the server, and open its page at http://127.0.0.1:8080:
  repconc serve {output}/index
To see there what compression did to the ranking, give it the uncompressed vectors too:
  repconc encode {output}/repconc {dataset} -o {output}/vectors
  repconc serve {output}/index --vectors {output}/vectors"""
"""What to do with what the demo built."""


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
    from repconc.models.named import folder_of_named
    from repconc.search import Searcher

    start = time.perf_counter()
    dataset = _dataset(quiet)
    with progress_bar("making the static encoder", quiet) as progress:
        folder_of_named(ENCODER, progress)
    remark("Training the encoder, uncompressed ...", quiet)
    dense = _model(dataset, output / "dense", quiet, method="dense")
    from_dense = {"encoder": {"documents": str(output / "dense")}, "dense": [], "quantizer": {"bytes": BYTES}}
    remark(f"Compressing it to {BYTES} bytes a document with OPQ, after the fact ...", quiet)
    opq = _model(dataset, output / "opq", quiet, method="opq", **from_dense)
    remark(f"Learning encoders and {BYTES}-byte codes together with RepCONC ...", quiet)
    repconc = _model(dataset, output / "repconc", quiet, method="repconc", **from_dense)
    remark("Putting the codes into an index ...", quiet)
    index = _index(repconc, dataset, output / "index", quiet)
    remark("Building BM25 and measuring ...", quiet)
    systems = {
        "static encoder, trained": _searcher(dense, dataset, quiet),
        "the same, OPQ": _searcher(opq, dataset, quiet),
        "the same, RepCONC": Searcher(index, repconc.encoder, probes=index.manifest.lists),
        "RepCONC, inverted file": Searcher(index, repconc.encoder),
    }
    _print(_measure(dataset, systems), as_json)
    if not as_json:
        _print_answers(dataset, systems["RepCONC, inverted file"])
        remark(f"\nDone in {time.perf_counter() - start:.0f} s; models and index are in {output}/. Ask it:", quiet)
        for line in NEXT.splitlines():
            remark(line.format(output=output, dataset=DATASET), quiet)


def _model(dataset: "RetrievalDataset", folder: Path, quiet: bool, **changes: Any) -> "RepconcModel":
    """Train it, or load it if an earlier demo did."""
    from repconc.models.repconc import RepconcModel
    from repconc.training.pipeline import train
    from repconc.training.recipe import make_recipe, read_recipe

    if folder.exists():
        return RepconcModel.load(folder)
    with TrainingView(quiet) as view:
        return train(dataset, folder, make_recipe(read_recipe(ENCODER) | changes), observe=view)


def _index(model: "RepconcModel", dataset: "RetrievalDataset", folder: Path, quiet: bool) -> "Index":
    """Build it, or open what an earlier demo built."""
    from repconc.indexes.ivf import Index
    from repconc.indexes.manifest import MANIFEST
    from repconc.indexing import build_index

    if (folder / MANIFEST).exists():
        return Index(folder)
    with progress_bars(quiet) as show:
        return build_index(model, dataset, folder, show=show)


def _searcher(model: "RepconcModel", dataset: "RetrievalDataset", quiet: bool) -> "Searcher":
    from repconc.search import Searcher

    with progress_bar("encoding", quiet) as progress:
        return Searcher.over(model, dataset.documents, dataset.card.documents or 0, progress, batch_size=512)


def _dataset(quiet: bool) -> "RetrievalDataset":
    from repconc.data.catalogue import folder_of, get
    from repconc.data.load import load_dataset

    if not folder_of(DATASET).is_dir():
        with progress_bar(f"fetching {DATASET}", quiet) as progress:
            get(DATASET, progress=progress)
    dataset = load_dataset(folder_of(DATASET))
    remark(f"Corpus: {dataset.card.documents:,} paragraphs, {dataset.card.queries['test']:,} test questions.", quiet)
    return dataset


def _measure(dataset: "RetrievalDataset", systems: dict[str, "Searcher"]) -> list[Row]:
    from repconc.baselines.bm25 import BM25

    keywords = BM25(dataset.documents)
    sizes = {name: searcher.index.nbytes / len(searcher.index) for name, searcher in systems.items()}
    whole = max(sizes.values())
    rows = [_row("BM25, keywords", keywords.search, keywords.nbytes / len(keywords), whole, dataset)]
    return rows + [_row(name, searcher.search, sizes[name], whole, dataset) for name, searcher in systems.items()]


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
