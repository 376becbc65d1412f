"""The routes: what a request says, in terms of an index that is served, and back."""

import asyncio
import base64
import re
import time
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import parse_qsl

import numpy as np
from fastapi import APIRouter, Path, Query, Response
from pydantic import ValidationError
from pydantic_core import to_json

from repconc.records import Document, Hit
from repconc.serving import schemas
from repconc.serving.answering import Answer, Asked, Wanted
from repconc.serving.gate import Direct, Route
from repconc.serving.openai import EmbeddingsRequest, EmbeddingsResponse
from repconc.serving.refusals import Refusal, answer_too_large, invalid, misunderstood
from repconc.serving.served import Served
from repconc.serving.writes import Removal, read_upsert

IndexName = Annotated[
    str | None, Query(max_length=schemas.LONGEST_ID, description="Which index; the first where none is named.")
]
DocumentId = Annotated[str, Path(min_length=1, max_length=schemas.LONGEST_ID)]
SEARCH = "/v1/search"
JSON_TYPE = re.compile(rb"\s*application/(json|[\w.+-]*\+json)\s*(;|$)", re.IGNORECASE)
NEEDS_TOKEN: dict[str, Any] = {"security": [{"token": []}]}


def json_response(content: Any, most: int | None = None) -> Response:
    """Without checking our own answers against their schema, which the tests do. most: bytes, where it may be large."""
    return Response(as_json(content, most), media_type="application/json")


def as_json(content: Any, most: int | None = None) -> bytes:
    body = to_json(content)
    if most is not None and len(body) > most:
        raise answer_too_large(most)
    return body


def chosen(indexes: Mapping[str, Served], name: str | None) -> Served:
    if name is None:
        return next(iter(indexes.values()))
    if name not in indexes:
        raise Refusal(404, "unknown_index", "There is no index of this name; GET /v1/indexes lists them.")
    return indexes[name]


async def answer_to(served: Served, asked: Asked) -> bytes:
    """As JSON, unless it is too large."""
    began = time.perf_counter()
    answered = await served.ask(asked)
    return as_json(_content(served.source.name, answered, time.perf_counter() - began), served.limits.answer)


def direct_routes(indexes: Mapping[str, Served]) -> dict[Route, Direct]:
    """The same as the route of this name below, which describes it, but past the framework: at the gate."""

    async def search(query: bytes, headers: Mapping[bytes, bytes], body: bytes) -> bytes:
        index = dict(parse_qsl(query.decode("latin-1"))).get("index") if query else None
        if not JSON_TYPE.match(headers.get(b"content-type", b"")):
            raise invalid("The request is no JSON, or does not say so: send Content-Type: application/json.")
        try:
            request = schemas.SearchRequest.model_validate_json(body)
        except ValidationError as error:
            raise misunderstood(error.errors(include_url=False, include_input=False)[0]) from None
        return await answer_to(chosen(indexes, index), _asked(request))

    return {("POST", SEARCH): Direct(SEARCH, search)}


def search_routes(indexes: Mapping[str, Served]) -> APIRouter:
    router = APIRouter(tags=["search"])

    async def answer(index: str | None, asked: Asked) -> Response:
        return Response(await answer_to(chosen(indexes, index), asked), media_type="application/json")

    @router.post(SEARCH, response_model=schemas.SearchResponse, summary="Search by text or vector")
    async def search(request: schemas.SearchRequest, index: IndexName = None) -> Response:
        """One query or several, as texts or as vectors. Queries that arrive together are worked on together."""
        return await answer(index, _asked(request))

    @router.get(SEARCH, response_model=schemas.SearchResponse, summary="Search by text")
    async def search_by_address(
        q: Annotated[schemas.Question, Query(description="The question.", examples=["who wrote Carmen?"])],
        k: schemas.K = 10,
        probes: schemas.Probes | None = None,
        filter: schemas.FilterText | None = None,
        text: bool = False,
        exact: bool = False,
        first: schemas.First | None = None,
        index: IndexName = None,
    ) -> Response:
        """The same for one text, in an address that can be shared."""
        return await answer(index, Asked([q], None, Wanted(k, probes, filter, text, exact, first)))

    return router


def document_routes(indexes: Mapping[str, Served]) -> APIRouter:
    router = APIRouter(tags=["documents"])

    @router.post(
        "/v1/documents", response_model=schemas.WriteResponse, summary="Add or replace", openapi_extra=NEEDS_TOKEN
    )
    async def upsert(request: schemas.DocumentsRequest, index: IndexName = None) -> Response:
        """Add documents, and replace those whose ids are there already. Once it is answered it is on the disk."""
        served = chosen(indexes, index)
        documents = [Document(one.id, one.text, one.title, one.metadata) for one in request.documents]
        change = read_upsert(served.snapshot, documents, [one.vector for one in request.documents])
        changes, version = await served.change(change)
        return json_response({"index": served.source.name, "version": version, **changes._asdict()})

    @router.delete(
        "/v1/documents/{id:path}", response_model=schemas.WriteResponse, summary="Remove", openapi_extra=NEEDS_TOKEN
    )
    async def remove(id: DocumentId, index: IndexName = None) -> Response:
        """Remove a document for good."""
        served = chosen(indexes, index)
        changes, version = await served.change(Removal(id))
        if not changes.removed:
            raise _no_document()
        return json_response({"index": served.source.name, "version": version, **changes._asdict()})

    @router.get("/v1/documents/{id:path}", response_model=schemas.DocumentModel, summary="Read")
    async def get(id: DocumentId, index: IndexName = None) -> Response:
        """A document by its id."""
        snapshot = chosen(indexes, index).snapshot
        found = await asyncio.to_thread(snapshot.index.get, id)
        if found is None:
            raise _no_document()
        return json_response({"id": found.id, **_content_of(found)})

    return router


def index_routes(indexes: Mapping[str, Served]) -> APIRouter:
    router = APIRouter(tags=["indexes"])

    @router.get("/v1/indexes", response_model=schemas.IndexesResponse, summary="Names")
    async def names() -> Response:
        """The names of all indexes."""
        return json_response({"indexes": list(indexes)})

    @router.get("/v1/index", response_model=schemas.IndexResponse, summary="What is in an index")
    async def describe(index: IndexName = None) -> Response:
        """Counts, bytes by part and the model."""
        return json_response(chosen(indexes, index).snapshot.described)

    @router.post("/v1/embeddings", response_model=EmbeddingsResponse, summary="Embed texts")
    async def embed(request: EmbeddingsRequest) -> Response:
        """Vectors of texts, in the shape that OpenAI's clients speak; the model is the name of an index."""
        served = chosen(indexes, request.model)
        encoder, dimension = served.snapshot.encoder, served.snapshot.index.manifest.dimension
        if encoder is None:
            raise invalid("This index was built from vectors and has no encoder.", "needs_vectors")
        if request.dimensions not in (None, dimension):
            raise invalid(f"This model gives {dimension} dimensions and no other number of them.")
        texts = [request.input] if isinstance(request.input, str) else request.input
        vectors, tokens = await served.embed(texts, request.input_type)
        as_base64 = request.encoding_format == "base64"
        data = [
            {"object": "embedding", "index": place, "embedding": _in_base64(vector) if as_base64 else vector.tolist()}
            for place, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        content = {"object": "list", "data": data, "model": served.source.name, "usage": usage}
        return json_response(content, served.limits.answer)

    return router


def _asked(request: schemas.SearchRequest) -> Asked:
    wanted = Wanted(request.k, request.probes, request.filter, request.text, request.exact, request.first)
    if request.query is not None or request.queries is not None:
        return Asked([request.query] if request.query is not None else request.queries, None, wanted)
    vectors = [request.vector] if request.vector is not None else request.vectors
    return Asked(None, np.array(vectors, np.float32), wanted)


def _content(name: str, answered: Answer, seconds: float) -> dict[str, Any]:
    return {
        "index": name,
        "version": answered.version,
        "results": [{"hits": [_hit(hit) for hit in found]} for found in answered.hits],
        "milliseconds": {step: round(1e3 * value, 3) for step, value in (answered.steps | {"total": seconds}).items()},
    }


def _hit(hit: Hit) -> dict[str, Any]:
    if hit.document is None:
        return {"id": hit.id, "score": hit.score}
    return {"id": hit.id, "score": hit.score, **_content_of(hit.document)}


def _content_of(document: Document) -> dict[str, Any]:
    return {"title": document.title, "text": document.text, "metadata": document.metadata}


def _in_base64(vector: np.ndarray) -> str:
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()


def _no_document() -> Refusal:
    return Refusal(404, "unknown_document", "There is no document with this id in the index.")
