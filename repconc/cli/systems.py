"""What can be measured: an index, a trained model, a folder of vectors, or a baseline by its name."""

from pathlib import Path

from repconc.cli.options import progress_bar
from repconc.data.check import ensure_sound
from repconc.data.dataset import RetrievalDataset
from repconc.errors import RepconcError
from repconc.evaluation.measures import Search
from repconc.vectors import CorpusDigest


def open_system(name: str, dataset: RetrievalDataset, corpus: CorpusDigest, quiet: bool) -> Search:
    """The search function of a system over a data set, whose vectors must be those of this corpus."""
    if (Path(name) / "repconc.json").is_file():
        return _model(name, dataset, quiet)
    if (Path(name) / "index.json").is_file():
        from repconc.search import Searcher

        return Searcher.open(name).search
    if Path(name).is_dir():
        from repconc.search import Searcher
        from repconc.vectors import Vectors

        if Vectors(name).plan.corpus_sha256 != corpus.hexdigest():
            raise RepconcError(f"The vectors in {name} are of another corpus than {dataset.name}; encode it first.")
        return Searcher.open(name).search
    if name == "bm25":
        from repconc.baselines.bm25 import BM25

        return BM25(dataset.documents).search
    raise RepconcError(f"{name!r} is neither a run file nor an index nor a model nor a folder of vectors nor 'bm25'.")


def _model(name: str, dataset: RetrievalDataset, quiet: bool) -> Search:
    """Encode the corpus with a trained model and search it exhaustively."""
    from repconc.models.repconc import RepconcModel
    from repconc.search import Searcher

    model = RepconcModel.load(name)
    with progress_bar("encoding", quiet) as progress:
        return Searcher.over(model, dataset.documents, dataset.card.documents or 0, progress).search


def check_split(dataset: RetrievalDataset, split: str, quiet: bool) -> CorpusDigest:
    """Refuse a data set that is not sound, before anything is measured on it; gives the corpus's fingerprint."""
    digest = CorpusDigest()
    dataset.qrels(split)  # names the splits there are where this one is not
    with progress_bar("reading documents", quiet) as progress:
        ensure_sound(dataset, [split], digest.add, progress)
    return digest
