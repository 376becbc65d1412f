"""The teacher: the encoders as they were before compression, whose scores the compressed ones learn to rank like."""

from functools import cached_property

from torch import Tensor

from repconc.models.dual import DualEncoder
from repconc.training.corpus import Corpus
from repconc.training.embedding import embed_all
from repconc.training.examples import Batch, Examples
from repconc.training.picked import picked_products
from repconc.training.ranks import Ranks


class Teacher:
    """Scores of the uncompressed encoders, scaled as the student's are."""

    def __init__(self, model: DualEncoder, examples: Examples, scale: float, ranks: Ranks, chunk: int) -> None:
        self._model, self._examples, self._scale = model, examples, scale
        self._ranks, self._chunk = ranks, chunk

    def of_batch(self, batch: Batch) -> Tensor:
        """[B, N]: this rank's queries with the documents of all ranks."""
        queries = embed_all(self._model, "query", self._examples.queries, batch.queries, self._chunk)
        own = embed_all(self._model, "document", self._examples.documents, batch.documents, self._chunk)
        return self._scale * queries @ self._ranks.gather(own).T

    def of_candidates(self, batch: Batch, candidates: Tensor) -> Tensor:
        """[B, n]: this rank's queries with the documents of these numbers, n for each."""
        queries = embed_all(self._model, "query", self._examples.queries, batch.queries, self._chunk)
        return self._scale * picked_products(queries, self._documents, candidates)

    @cached_property
    def _documents(self) -> Tensor:
        """[N, D] of the whole corpus, uncompressed: what stage 2 with a teacher needs in memory."""
        corpus = Corpus(self._model, self._examples, self._ranks, self._chunk)
        return corpus.vectors(corpus.everything)
