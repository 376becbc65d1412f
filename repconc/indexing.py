"""Documents through a model into an index: build it, add to it."""

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from repconc.additive import with_beam
from repconc.codec import Codec
from repconc.data.dataset import RetrievalDataset
from repconc.errors import RepconcError
from repconc.indexes.ivf import Index
from repconc.indexes.manifest import Reference
from repconc.indexes.writing import Batches, Changes, Show, add, build, quietly
from repconc.models.encoder import Encoder
from repconc.models.repconc import RepconcModel
from repconc.packages import Progress
from repconc.records import Document
from repconc.search import encoder_of
from repconc.vectors import CorpusDigest, Vectors

DOCUMENTS_AT_A_TIME = 4096
"""That are encoded between two steps of a progress bar."""


def build_index(
    model: RepconcModel,
    documents: RetrievalDataset | None,
    output: Path | str,
    *,
    vectors: Path | str | None = None,
    lists: int | None = None,
    seed: int = 0,
    beam: int | None = None,
    show: Show = quietly,
) -> Index:
    """Code all documents of a data set and put them into an index.

    vectors: what `repconc encode MODEL` made of it; without a data set they give an index of ids alone. beam: how many
    partial codes are kept while these documents, and those that are added later, get additive codes.
    """
    progress, coding = show("coding"), model.coding if beam is None else with_beam(model.coding, beam)
    if vectors is not None:
        batches = _coded_vectors(model, coding, documents, Vectors(vectors), progress)
    elif documents is not None:
        batches = coded(model.encoder, coding, documents.documents, progress, documents.card.documents or 0)
    else:
        raise RepconcError("An index is built from a data set, or from vectors.")
    folder = Path(model.encoder.settings.documents)
    return build(
        Path(output),
        batches,
        coding=coding,
        scoring=model.scoring,
        model=Reference(name=str(folder.resolve()), fingerprint=model.manifest.fingerprint),
        lists=lists,
        seed=seed,
        show=show,
    )


def add_documents(
    folder: Path | str,
    documents: Iterable[Document],
    *,
    replace: bool = False,
    encoder: Encoder | None = None,
    progress: Progress = lambda done, total: None,
) -> Changes:
    """Code documents with the index's own encoder and add them, or put them in the place of those with their ids."""
    index = Index(folder)
    return add(Path(folder), coded(encoder or encoder_of(index), index.coding, documents, progress), replace=replace)


def add_vectors(
    folder: Path | str, given: Iterable[tuple[Sequence[Document], np.ndarray]], *, replace: bool = False
) -> Changes:
    """The same for documents whose vectors [n, D] are there, a group at a time."""
    coding = Index(folder).coding

    def coded_groups() -> Batches:
        for group, vectors in given:
            if coding.map is not None and coding.map.unit and not (lengths := vectors.any(axis=1)).all():
                id = group[int(np.flatnonzero(~lengths)[0])].id
                raise RepconcError(f"The vector of document {id!r} is all zeros and has no direction; leave it out.")
            yield group, coding.encode(vectors)

    return add(Path(folder), coded_groups(), replace=replace)


def coded(
    encoder: Encoder, coding: Codec, documents: Iterable[Document], progress: Progress, total: int = 0
) -> Batches:
    """Documents with their codes, as many at a time as are best coded together."""
    reader, done = iter(documents), 0
    while group := list(islice(reader, coding.at_a_time)):
        vectors = []
        for start in range(0, len(group), DOCUMENTS_AT_A_TIME):
            texts = [document.full_text for document in group[start : start + DOCUMENTS_AT_A_TIME]]
            vectors.append(encoder.embed_documents(texts))
            done += len(texts)
            progress(done, total)
        yield group, coding.encode(np.concatenate(vectors))


def _coded_vectors(
    model: RepconcModel, coding: Codec, dataset: RetrievalDataset | None, vectors: Vectors, progress: Progress
) -> Batches:
    """The same from vectors that were encoded before."""
    if vectors.plan.fingerprint != model.manifest.fingerprint:
        raise RepconcError(f"The vectors in {vectors.folder} were not made by this model; encode with it first.")
    vectors.verify()
    reader = iter(dataset.documents) if dataset else None
    done, digest = 0, CorpusDigest()
    for ids, block in zip(vectors.id_blocks(), vectors.blocks(), strict=True):
        for start in range(0, len(block), coding.at_a_time):
            names = ids[start : start + coding.at_a_time]
            group = [Document(name, "") for name in names] if reader is None else list(islice(reader, len(names)))
            if [document.id for document in group] != names:
                raise RepconcError(f"The vectors in {vectors.folder} are not those of this data set; encode it first.")
            for document in group:
                digest.add(document)
            yield group, coding.encode(block[start : start + coding.at_a_time])
            done += len(names)
            progress(done, len(vectors))
    if reader is not None and (next(reader, None) is not None or digest.hexdigest() != vectors.plan.corpus_sha256):
        raise RepconcError(f"The texts of the data set are not those of {vectors.folder}; encode it again.")
