"""Plain typed values that every part of the package speaks of, and the one order of results."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np


@dataclass(frozen=True, slots=True)
class Document:
    """One unit of retrieval: a passage, a paragraph, an answer."""

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def full_text(self) -> str:
        """What an encoder or BM25 reads: title and text, as BEIR joins them."""
        return f"{self.title} {self.text}".strip()


class Query(NamedTuple):
    """A question with its id."""

    id: str
    text: str


class Judgement(NamedTuple):
    """A person's word on how relevant a document is to a query; 0 means not relevant."""

    query_id: str
    document_id: str
    relevance: int


class Hit(NamedTuple):
    """One search result."""

    id: str
    score: float
    document: Document | None = None
    """Where it was asked for."""


Hits: TypeAlias = list[Hit]
"""The results of one query, best first."""

Qrels: TypeAlias = dict[str, dict[str, int]]
"""Query id -> document id -> relevance."""

Run: TypeAlias = dict[str, list[Hit]]
"""Query id -> hits, best first."""


def in_order(hits: Iterable[Hit]) -> list[Hit]:
    """The one order of results: float32 score descending, then document id descending, which is trec_eval's order.

    Compressed vectors tie often, so that an order left to chance would move the measures.
    """
    hits = list(hits)
    with np.errstate(over="ignore"):
        scores = np.array([hit.score for hit in hits], dtype=np.float32).tolist()
    places = sorted(range(len(hits)), key=lambda place: (scores[place], hits[place].id), reverse=True)
    return [hits[place] for place in places]
