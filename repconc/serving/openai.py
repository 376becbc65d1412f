"""The shape in which OpenAI's clients ask for embeddings."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from repconc.serving.schemas import LONGEST_ID, MOST_QUERIES, Question, Wire


class EmbeddingsRequest(Wire):
    """The shape that OpenAI's clients send; the model is the name of an index, whose encoder is used."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"examples": [{"input": ["who wrote Carmen?"]}]})
    input: Question | Annotated[list[Question], Field(fail_fast=True, min_length=1, max_length=MOST_QUERIES)]
    model: Annotated[str, Field(max_length=LONGEST_ID)] | None = None
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None
    input_type: Literal["query", "document"] = "query"
    """Not OpenAI's: which side of the model."""


class Embedding(Wire):
    """One vector; as base64 it is float32, little-endian."""

    object: Literal["embedding"] = "embedding"
    index: int
    embedding: list[float] | str


class Usage(Wire):
    """Tokens that were read."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingsResponse(Wire):
    """Vectors in the order of the input."""

    object: Literal["list"] = "list"
    data: list[Embedding]
    model: str
    usage: Usage
