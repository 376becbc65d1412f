"""Searcher: a question in, hits out. The one face of the product, whatever index lies behind it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from repconc.errors import RepconcError
from repconc.indexes.flat import FlatIndex
from repconc.records import Hit
from repconc.vectors import Vectors

if TYPE_CHECKING:
    from repconc.models.encoder import Encoder


class Searcher:
    """Encodes the query, searches the index."""

    def __init__(self, index: FlatIndex, encoder: "Encoder") -> None:
        self.index = index
        self.encoder = encoder

    @classmethod
    def open(cls, folder: Path | str, device: str | None = None) -> "Searcher":
        """Open a folder that `repconc encode` made, with the encoder that made it."""
        from repconc.models.encoder import Encoder

        vectors = Vectors(folder)
        vectors.verify()
        encoder = Encoder(vectors.plan.encoder, device)
        if encoder.fingerprint() != vectors.plan.fingerprint:
            raise RepconcError(
                f"The encoder {vectors.plan.encoder.documents!r} is not the one that made {folder}: its weights, "
                "tokenizer or settings changed; encode the corpus again."
            )
        return cls(FlatIndex(vectors.ids, list(vectors.blocks())), encoder)

    def search(self, texts: Sequence[str], k: int = 10, threads: int | None = None) -> list[list[Hit]]:
        """The k best documents of each question."""
        if isinstance(texts, str):
            raise RepconcError("Give a list of questions, also for a single one: search(['...']).")
        return self.index.search(self.encoder.embed_queries(texts), k, threads)
