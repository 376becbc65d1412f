"""A client of the service, typed, with the standard library only. It keeps one connection: one client a thread."""

import http.client
import json
import selectors
import socket
import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any, Literal, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import numpy as np
from pydantic import BaseModel, ValidationError

from repconc.errors import RepconcError, first_line
from repconc.records import Document, Hit, Hits
from repconc.serving import schemas
from repconc.serving.openai import EmbeddingsResponse

Answer = TypeVar("Answer", bound=BaseModel)
AGAIN = (409, 429)
"""Another process writes, or the server is busy: nothing was done, and in a second it may go."""
LONGEST_WAIT = 60.0


class ServiceError(RepconcError):
    """The server did not answer the request; its code and status say why."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class Client:
    """Asks a server about one of its indexes."""

    def __init__(
        self,
        address: str = "http://127.0.0.1:8080",
        *,
        index: str | None = None,
        token: str | None = None,
        timeout: float = 30.0,
        patience: int = 3,
    ) -> None:
        """address: may have a path, where a proxy serves it under one. index: the server's first where none is named.
        patience: how often a busy server is asked again."""
        scheme, host, port, self._prefix = _parts_of(address)
        kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
        self._connection = kind(host, port, timeout=timeout)
        self._index, self._patience = index, patience
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def search(
        self,
        queries: Sequence[str] | np.ndarray,
        k: int = 10,
        *,
        probes: int | None = None,
        filter: str | None = None,
        documents: bool = False,
        exact: bool = False,
        first: int | None = None,
    ) -> list[Hits]:
        """The k best documents of each question, given as texts or as vectors [B, D]; as `Searcher.search`."""
        if isinstance(queries, str):
            raise RepconcError("Give a list of questions, also for a single one: search(['...']).")
        kind = {"vectors": queries.tolist()} if isinstance(queries, np.ndarray) else {"queries": list(queries)}
        wanted = {"k": k, "probes": probes, "filter": filter, "text": documents, "exact": exact, "first": first}
        answer = self._ask("POST", "/v1/search", schemas.SearchResponse, kind | wanted)
        return [[_hit(found, documents) for found in result.hits] for result in answer.results]

    def add(self, documents: Iterable[Document], vectors: np.ndarray | None = None) -> schemas.WriteResponse:
        """Add documents, and replace those whose ids are there already. vectors: [n, D], where they are given."""
        rows: list[dict[str, Any]] = [
            {"id": document.id, "text": document.text, "title": document.title, "metadata": dict(document.metadata)}
            for document in documents
        ]
        if vectors is not None:
            rows = [row | {"vector": vector.tolist()} for row, vector in zip(rows, vectors, strict=True)]
        return self._ask("POST", "/v1/documents", schemas.WriteResponse, {"documents": rows})

    def remove(self, id: str) -> schemas.WriteResponse:
        """Remove a document; an id that is not there is refused."""
        return self._ask("DELETE", f"/v1/documents/{quote(id, safe='')}", schemas.WriteResponse)

    def get(self, id: str) -> Document | None:
        """A document by its id; None where there is none."""
        try:
            found = self._ask("GET", f"/v1/documents/{quote(id, safe='')}", schemas.DocumentModel)
        except ServiceError as error:
            if error.code == "unknown_document":
                return None
            raise
        return Document(found.id, found.text, found.title, found.metadata)

    def embed(self, texts: Sequence[str], side: Literal["query", "document"] = "query") -> np.ndarray:
        """[n, D] float32."""
        wanted = {"input": list(texts), "model": self._index, "input_type": side}
        answer = self._ask("POST", "/v1/embeddings", EmbeddingsResponse, wanted, named=False)
        return np.array([row.embedding for row in answer.data], np.float32)

    def info(self) -> schemas.IndexResponse:
        """Counts, bytes and model of the index."""
        return self._ask("GET", "/v1/index", schemas.IndexResponse)

    def names(self) -> list[str]:
        """Of all indexes of the server."""
        return self._ask("GET", "/v1/indexes", schemas.IndexesResponse, named=False).indexes

    def _ask(
        self, method: str, path: str, kind: type[Answer], content: dict[str, Any] | None = None, *, named: bool = True
    ) -> Answer:
        if named and self._index is not None:
            path = f"{path}?{urlencode({'index': self._index})}"
        body = None if content is None else json.dumps(content).encode()
        for attempt in range(self._patience + 1):
            status, headers, answer = self._exchange(method, path, body)
            if status not in AGAIN or attempt == self._patience:
                break
            time.sleep(_seconds_of(headers.get("Retry-After", "")))
        try:
            if status == 200:
                return kind.model_validate_json(answer)
            error = schemas.ErrorResponse.model_validate_json(answer).error
        except ValidationError as problem:
            raise RepconcError(f"The server's answer ({status}) is not ours: {first_line(problem)}") from problem
        raise ServiceError(status, error.code, error.message)

    def _exchange(self, method: str, path: str, body: bytes | None) -> tuple[int, http.client.HTTPMessage, bytes]:
        """One request, on a new connection where the server closed the old one while it was idle.

        Where it is closed just now, only what reads is sent again: a write may have been done.
        """
        if self._connection.sock is not None and _has_ended(self._connection.sock):
            self._connection.close()
        for attempt in range(2):
            fresh = self._connection.sock is None
            try:
                self._connection.request(method, self._prefix + path, body, self._headers)
                response = self._connection.getresponse()
                return response.status, response.headers, response.read()
            except (OSError, http.client.HTTPException) as error:
                self._connection.close()
                writes = path.startswith("/v1/documents") and method != "GET"
                if fresh or attempt or writes:
                    raise RepconcError(f"The server does not answer ({first_line(error)}).") from error
        raise AssertionError


def _parts_of(address: str) -> tuple[str, str, int | None, str]:
    """Scheme, host, port and path."""
    try:
        parts = urlsplit(address)
        known = parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc
        if known and parts.hostname and not parts.query and not parts.fragment:
            return parts.scheme, parts.hostname, parts.port, quote(parts.path.rstrip("/"), safe="/%")
    except ValueError:  # of a port that is none
        pass
    raise RepconcError(f"{address!r} is no address of a server; write it like http://127.0.0.1:8080.")


def _has_ended(connection: socket.socket) -> bool:
    """Whether the other side closed a connection on which nothing is due."""
    with selectors.DefaultSelector() as selector:
        selector.register(connection, selectors.EVENT_READ)
        return bool(selector.select(0))


def _seconds_of(header: str) -> float:
    """What a server says by Retry-After; a second where it says nothing, or gives a date."""
    try:
        return min(max(float(header), 0.0), LONGEST_WAIT)
    except ValueError:
        return 1.0


def _hit(found: schemas.FoundDocument, documents: bool) -> Hit:
    if not documents:
        return Hit(found.id, found.score)
    return Hit(found.id, found.score, Document(found.id, found.text or "", found.title or "", found.metadata or {}))
