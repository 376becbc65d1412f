"""Documents through a model into an index: build it, add to it."""

from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

from repconc.data.dataset import RetrievalDataset
from repconc.errors import RepconcError
from repconc.indexes.ivf import Index
from repconc.indexes.manifest import Reference
from repconc.indexes.writing import Batches, Changes, add, build
from repconc.models.repconc import RepconcModel
from repconc.packages import Progress
from repconc.records import Document
from repconc.search import model_of
from repconc.vectors import Vectors

DOCUMENTS_AT_A_TIME = 4096

Show = Callable[[str], Progress]
"""A progress bar for each piece of work, by its name."""


def build_index(
    model: RepconcModel,
    dataset: RetrievalDataset,
    output: Path | str,
    *,
    vectors: Path | str | None = None,
    lists: int | None = None,
    seed: int = 0,
    show: Show = lambda work: lambda done, total: None,
) -> Index:
    """Code all documents of a data set and put them into an index. vectors: what `repconc encode MODEL` made of it."""
    total, coding = dataset.card.documents or 0, show("coding")
    if vectors is None:
        batches = coded(model, dataset.documents, coding, total)
    else:
        batches = _coded_vectors(model, dataset, Vectors(vectors), coding)
    folder = Path(model.encoder.settings.documents)
    return build(
        Path(output),
        batches,
        coding=model.coding,
        scoring=model.scoring,
        model=Reference(name=str(folder.resolve()), fingerprint=model.manifest.fingerprint),
        lists=lists,
        seed=seed,
        progress=show("filling lists"),
    )


def add_documents(
    folder: Path | str,
    documents: Iterable[Document],
    *,
    replace: bool = False,
    model: RepconcModel | None = None,
    progress: Progress = lambda done, total: None,
) -> Changes:
    """Code documents with the index's own model and add them, or put them in the place of those with their ids."""
    model = model or model_of(Index(folder))
    return add(Path(folder), coded(model, documents, progress), replace=replace)


def coded(
    model: RepconcModel, documents: Iterable[Document], progress: Progress, total: int = 0, batch_size: int = 64
) -> Batches:
    """Documents with their codes, some thousands at a time."""
    reader, done = iter(documents), 0
    while group := list(islice(reader, DOCUMENTS_AT_A_TIME)):
        yield group, model.encode_documents([document.full_text for document in group], batch_size)
        done += len(group)
        progress(done, total)


def _coded_vectors(model: RepconcModel, dataset: RetrievalDataset, vectors: Vectors, progress: Progress) -> Batches:
    """The same from vectors that were encoded before."""
    if vectors.plan.fingerprint != model.manifest.fingerprint:
        raise RepconcError(f"The vectors in {vectors.folder} were not made by this model; encode with it first.")
    vectors.verify()
    reader, done = iter(dataset.documents), 0
    ids = iter(vectors.ids)
    for block in vectors.blocks():
        for start in range(0, len(block), DOCUMENTS_AT_A_TIME):
            rows = block[start : start + DOCUMENTS_AT_A_TIME]
            group = list(islice(reader, len(rows)))
            if [document.id for document in group] != list(islice(ids, len(rows))):
                raise RepconcError(f"The vectors in {vectors.folder} are not those of {dataset.name}; encode it first.")
            yield group, model.coding.encode(rows)
            done += len(rows)
            progress(done, len(vectors))
    if next(reader, None) is not None:
        raise RepconcError(f"{dataset.name} has more documents than {vectors.folder}; encode it again.")
