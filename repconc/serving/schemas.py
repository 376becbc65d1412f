"""What goes over the wire: requests, with the limits of each, and answers. The client speaks the same types."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

MOST_QUERIES = 256
MOST_DOCUMENTS = 256
LARGEST_K = 1000
MOST_HITS = 10_000
"""Of all queries of a request together."""
LONGEST_QUERY = 10_000
LONGEST_FILTER = 4_000
LONGEST_ID = 500
LONGEST_TITLE = 2_000
LONGEST_TEXT = 100_000
WIDEST_VECTOR = 16_384
LARGEST_VALUE = 1e15
"""Of a vector; larger ones could not be multiplied."""
DEEPEST_METADATA = 16

Value = Annotated[float, Field(ge=-LARGEST_VALUE, le=LARGEST_VALUE, allow_inf_nan=False)]
Vector = Annotated[list[Value], Field(fail_fast=True, min_length=1, max_length=WIDEST_VECTOR)]
Question = Annotated[str, Field(min_length=1, max_length=LONGEST_QUERY, pattern=r"\S")]
Id = Annotated[str, Field(min_length=1, max_length=LONGEST_ID, pattern=r"^[^\x00-\x1f\x7f]+$")]
K = Annotated[int, Field(ge=1, le=LARGEST_K, description="Results a query.")]
Probes = Annotated[int, Field(ge=1, le=10_000_000, description="Lists to read; as tuned where it is not given.")]
First = Annotated[
    int, Field(ge=1, le=65536, description="Bytes of each code that are scanned; all where it is not given.")
]
FilterText = Annotated[
    str, Field(min_length=1, max_length=LONGEST_FILTER, description='Over metadata: year >= 2020 and lang = "en"')
]


class Wire(BaseModel):
    """Unknown names are refused, so that a misspelt one is not overlooked."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SearchRequest(Wire):
    """One of query, queries, vector and vectors."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"query": "Which opera did the composer of Carmen leave unfinished?", "k": 3, "text": True},
                {"queries": ["who wrote Carmen?", "where is the Seine?"], "filter": "year >= 1900"},
            ]
        }
    )
    query: Question | None = None
    queries: Annotated[list[Question], Field(fail_fast=True, min_length=1, max_length=MOST_QUERIES)] | None = None
    vector: Vector | None = None
    vectors: Annotated[list[Vector], Field(fail_fast=True, min_length=1, max_length=MOST_QUERIES)] | None = None
    k: K = 10
    probes: Probes | None = None
    first: First | None = None
    filter: FilterText | None = None
    text: bool = Field(default=False, description="Whether hits come with title, text and metadata.")
    exact: bool = Field(default=False, description="Rank by uncompressed vectors, where the server has them.")

    @model_validator(mode="after")
    def _one_kind(self) -> "SearchRequest":
        given = [kind for kind in (self.query, self.queries, self.vector, self.vectors) if kind is not None]
        if len(given) != 1:
            raise ValueError("give one of query, queries, vector and vectors")
        if self.count * self.k > MOST_HITS:
            raise ValueError(f"k times the number of queries is more than {MOST_HITS:,}")
        if self.vectors and len({len(vector) for vector in self.vectors}) > 1:
            raise ValueError("the vectors have different lengths")
        return self

    @property
    def count(self) -> int:
        return len(self.queries or self.vectors or (None,))


class FoundDocument(Wire):
    """A hit; title, text and metadata where they were asked for."""

    id: str
    score: float
    title: str | None = None
    text: str | None = None
    metadata: dict[str, Any] | None = None


class QueryResult(Wire):
    """The hits of one query, best first."""

    hits: list[FoundDocument]


class SearchResponse(Wire):
    """A result for each query, in their order."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "index": "demo",
                    "version": 1,
                    "results": [{"hits": [{"id": "d17", "score": 0.62}]}],
                    "milliseconds": {"queue": 0.1, "encode": 0.8, "probe": 0.1, "scan": 0.3, "total": 1.4},
                }
            ]
        }
    )
    index: str
    version: int
    """Of the index; it grows with every write."""
    results: list[QueryResult]
    milliseconds: dict[str, float]
    """By step: queue, encode, probe, scan, documents, and the total. Queries that came together share them."""


class DocumentModel(Wire):
    """A document. An index without an encoder needs its vector, as the encoder of its documents gives it."""

    id: Id
    text: str = Field(max_length=LONGEST_TEXT)
    title: str = Field(default="", max_length=LONGEST_TITLE)
    metadata: dict[str, Any] = {}
    vector: Vector | None = None

    @field_validator("metadata")
    @classmethod
    def _not_too_deep(cls, value: dict[str, Any]) -> dict[str, Any]:
        if _depth(value) > DEEPEST_METADATA:
            raise ValueError(f"metadata may be nested {DEEPEST_METADATA} deep")
        return value


class DocumentsRequest(Wire):
    """Documents to add; those whose ids are there already are replaced."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "documents": [
                        {"id": "carmen", "title": "Carmen", "text": "An opera by Bizet.", "metadata": {"year": 1875}}
                    ]
                }
            ]
        }
    )
    documents: Annotated[list[DocumentModel], Field(fail_fast=True, min_length=1, max_length=MOST_DOCUMENTS)]

    @model_validator(mode="after")
    def _no_id_twice(self) -> "DocumentsRequest":
        if len({document.id for document in self.documents}) < len(self.documents):
            raise ValueError("an id comes twice")
        return self


class WriteResponse(Wire):
    """What a write did; once it is answered it is on the disk."""

    index: str
    version: int
    added: int = 0
    replaced: int = 0
    removed: int = 0


class IndexResponse(Wire):
    """What is in an index, and what it costs to search it."""

    name: str
    version: int
    documents: int
    removed: int
    segments: int
    model: str | None
    dimension: int
    lists: int
    probes: int
    bytes: dict[str, int]
    """On disk, by part."""
    search_bytes: int
    """To search: codes, lists, codebooks and removal bits; ids and texts lie beside."""
    bytes_per_document: float
    times_smaller: float
    """Than float32 vectors."""
    fields: list[str]
    """Of metadata, for filters."""
    reads_text: bool
    """Whether it has an encoder; else it is searched by vectors."""
    exact: bool
    """Whether uncompressed vectors are there."""


class IndexesResponse(Wire):
    """The names of all indexes; the first is the one that is asked where none is named."""

    indexes: list[str]


class StatusResponse(Wire):
    """Whether the server is there."""

    status: str


class ErrorDetail(Wire):
    """A code for machines and a sentence for people."""

    code: str
    message: str


class ErrorResponse(Wire):
    """Every answer that is not 200 has this shape."""

    error: ErrorDetail


def _depth(value: Any) -> int:
    """Level by level: what comes from a request must not decide how deep we call ourselves."""
    level, depth = [value], 0
    while level:
        depth += 1
        level = [
            below
            for one in level
            if isinstance(one, dict | list)
            for below in (one.values() if isinstance(one, dict) else one)
        ]
    return depth
