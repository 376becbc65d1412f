"""One retrieval data set: documents, queries and judgements by split, whatever it was read from.

Everything is lazy and can be iterated again: a corpus of millions of passages never sits in memory as Python objects.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, Protocol, TypeVar

from pydantic import Field, PositiveInt

from repconc.config import Settings
from repconc.lines import InputError, Place, Problem, Report, refuse
from repconc.records import Document, Judgement, Qrels, Query

Record = TypeVar("Record", covariant=True)


class Card(Settings):
    """What one must know about a data set before trusting a number measured on it."""

    name: str
    title: str = ""
    source: str = ""
    sha256: str = ""
    licence: str = ""
    notes: str = ""
    documents: int | None = None
    queries: dict[str, int] = Field(default_factory=dict)
    split_seed: int | None = None
    relevance: dict[str, PositiveInt] = Field(default_factory=dict)
    """Lowest grade that counts as relevant, for splits where it is not 1 (TREC DL passage: 2)."""


class Source(Protocol):
    """What a reader of one format provides. A record comes with its place, so that a check can name it."""

    @property
    def card(self) -> Card: ...

    @property
    def splits(self) -> tuple[str, ...]: ...

    def file_of(self, split: str | None) -> str:
        """The file of a split's judgements, or of the documents; for messages."""
        ...

    def documents(self, report: Report) -> Iterator[tuple[Place, Document]]: ...

    def queries(self, split: str, report: Report) -> Iterator[tuple[Place, Query]]:
        """The queries of a split; it may give more than those that have judgements."""
        ...

    def judgements(self, split: str, report: Report) -> Iterator[tuple[Place, Judgement]]: ...


class Lazy(Generic[Record]):
    """A sequence of records that is read anew each time it is iterated."""

    def __init__(self, read: Callable[[Report], Iterator[tuple[Place, Record]]]) -> None:
        self._read = read

    def __iter__(self) -> Iterator[Record]:
        for _, record in self._read(refuse):
            yield record


class RetrievalDataset:
    """Documents to search, and by split the queries to ask and the judgements to measure with."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def __repr__(self) -> str:
        return f"RetrievalDataset({self.name!r}, splits={list(self.splits)})"

    @property
    def name(self) -> str:
        return self.card.name

    @property
    def card(self) -> Card:
        return self.source.card

    @property
    def splits(self) -> tuple[str, ...]:
        return self.source.splits

    @property
    def documents(self) -> Iterable[Document]:
        return Lazy(self.source.documents)

    def queries(self, split: str) -> list[Query]:
        """The queries of a split that have judgements, in the order of the file: all of them count in a measure."""
        judged = self.qrels(split).keys()
        queries = [query for _, query in self.source.queries(split, refuse) if query.id in judged]
        missing = judged - {query.id for query in queries}
        if missing:
            raise InputError(
                f"{self.name}: split {split!r} judges {len(missing)} queries without text (one: {min(missing)!r}); "
                "add them to the queries or remove their judgements."
            )
        return queries

    def qrels(self, split: str) -> Qrels:
        self._require(split)
        qrels: Qrels = {}
        for place, judgement in self.source.judgements(split, refuse):
            judged = qrels.setdefault(judgement.query_id, {})
            if judgement.document_id in judged:
                refuse(duplicate_judgement(place, judgement))
            judged[judgement.document_id] = judgement.relevance
        if not qrels:
            raise InputError(f"{self.source.file_of(split)}: split {split!r} has no judgements.")
        return qrels

    def relevance(self, split: str) -> int:
        """The lowest grade that counts as relevant in binary measures."""
        return self.card.relevance.get(split, 1)

    def _require(self, split: str) -> None:
        if split not in self.splits:
            known = ", ".join(self.splits) or "none"
            raise InputError(f"{self.name} has no split {split!r}; its splits are: {known}.")


def duplicate_judgement(place: Place, judgement: Judgement) -> Problem:
    return Problem(place, f"query {judgement.query_id!r} judges document {judgement.document_id!r} a second time.")
