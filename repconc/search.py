"""Searcher: a question in, hits out. The one face of the product, whatever index lies behind it."""

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from repconc.errors import RepconcError
from repconc.indexes.codes import CodeIndex
from repconc.indexes.flat import FlatIndex
from repconc.indexes.ivf import Index
from repconc.indexes.manifest import MANIFEST
from repconc.packages import Progress
from repconc.records import Document, Hit
from repconc.vectors import Vectors

if TYPE_CHECKING:
    from repconc.models.encoder import Encoder
    from repconc.models.repconc import RepconcModel

DOCUMENTS_AT_A_TIME = 8192


class VectorIndex(Protocol):
    """What can be searched by vectors."""

    def __len__(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

    def search(self, queries: np.ndarray, k: int = 10, threads: int | None = None) -> list[list[Hit]]: ...


class Searcher:
    """Encodes the query, searches the index."""

    def __init__(self, index: VectorIndex, encoder: "Encoder", **options: Any) -> None:
        """options: for every search, such as probes; what the index takes."""
        own = index.manifest.model if isinstance(index, Index) else None
        if own is not None and encoder.fingerprint() != own.fingerprint:
            raise RepconcError("This encoder is not the one that the index was built with: it would find other things.")
        self.index = index
        self.encoder = encoder
        self.options = options

    @classmethod
    def open(cls, folder: Path | str, device: str | None = None, model: Path | str | None = None) -> "Searcher":
        """Open an index, or a folder that `repconc encode` made, with the encoder that belongs to it.

        model: the index's own, where it has moved.
        """
        from repconc.models.encoder import Encoder

        if (Path(folder) / MANIFEST).exists():
            index = Index(folder)
            return cls(index, encoder_of(index, device, model))
        vectors = Vectors(folder)
        vectors.verify()
        encoder = Encoder(vectors.plan.encoder, device)
        if encoder.fingerprint() != vectors.plan.fingerprint:
            raise RepconcError(
                f"The encoder {vectors.plan.encoder.documents!r} is not the one that made {folder}: its weights, "
                "tokenizer or settings changed; encode the corpus again."
            )
        return cls(FlatIndex(vectors.ids, list(vectors.blocks())), encoder)

    @classmethod
    def over(
        cls,
        model: "RepconcModel",
        documents: Iterable[Document],
        total: int = 0,
        progress: Progress | None = None,
        batch_size: int = 64,
    ) -> "Searcher":
        """Encode documents with a trained model and hold them in memory: as codes, or as vectors if it has none."""
        embed = model.encode_documents if model.is_compressed else model.encoder.embed_documents
        ids: list[str] = []
        blocks, reader = [], iter(documents)
        while group := list(islice(reader, DOCUMENTS_AT_A_TIME)):
            blocks.append(embed([document.full_text for document in group], batch_size))
            ids += [document.id for document in group]
            if progress:
                progress(len(ids), total)
        if not ids:
            raise RepconcError("There are no documents to search.")
        if model.is_compressed:
            return cls(CodeIndex(ids, np.concatenate(blocks), model.scoring, model.coding), model.encoder)
        return cls(FlatIndex(ids, blocks), model.encoder)

    def search(self, texts: Sequence[str], k: int = 10, threads: int | None = None, **options: Any) -> list[list[Hit]]:
        """The k best documents of each question. options: what the index takes, such as probes, filter, documents."""
        if isinstance(texts, str):
            raise RepconcError("Give a list of questions, also for a single one: search(['...']).")
        if blank := [number for number, text in enumerate(texts, start=1) if not text.strip()]:
            raise RepconcError(f"Question {blank[0]} is empty; ask something.")
        try:
            "".join(texts).encode()
        except UnicodeEncodeError as error:
            raise RepconcError("A question holds bytes that are no text in UTF-8.") from error
        search: Callable[..., list[list[Hit]]] = self.index.search
        return search(self.encoder.embed_queries(texts), k, threads, **self.options | options)


def encoder_of(index: Index, device: str | None = None, name: Path | str | None = None) -> "Encoder":
    """The encoder of an index, or the one named if it is the same; any other would find other documents."""
    from repconc.models.encoder import Encoder
    from repconc.models.manifest import MANIFEST as TRAINED
    from repconc.models.repconc import RepconcModel

    reference = index.manifest.model
    if reference is None:
        raise RepconcError(f"{index.folder} was built from vectors: it is searched by vectors, not by text.")
    if name is None and Path(reference.name).is_absolute() and not Path(reference.name).is_dir():
        raise RepconcError(f"The model of this index, {reference.name}, is not there any more; give it by --model.")
    chosen = str(name or reference.name)
    # Where vectors were given, the encoder is one that we did not train.
    trained = (Path(reference.name) / TRAINED).exists() or (Path(chosen) / TRAINED).exists()
    encoder = RepconcModel.load(chosen, device).encoder if trained else Encoder(chosen, device)
    if encoder.fingerprint() != reference.fingerprint:
        raise RepconcError(
            f"The model {encoder.settings.documents} is not the one that {index.folder} was built with; "
            "give that one, or build the index again."
        )
    return encoder
