"""The application: routes behind the gate, with a description of itself and the page."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from repconc.serving import schemas
from repconc.serving.gate import Gate
from repconc.serving.metrics import Metrics
from repconc.serving.pages import page_routes
from repconc.serving.refusals import Refusal, internal, invalid, misunderstood
from repconc.serving.routes import direct_routes, document_routes, index_routes, search_routes
from repconc.serving.served import Served
from repconc.serving.settings import Access, Limits

DESCRIPTION = """Dense retrieval with tiny indexes. Reading is open on loopback; writing needs the token, and elsewhere
everything does: `Authorization: Bearer TOKEN`. An answer that is not 200 has a code and a sentence; 429 and 503 say by
`Retry-After` when to come again."""

REFUSALS: dict[int, str] = {
    401: "The token is missing or wrong.",
    403: "The server has no token, so that nobody may write.",
    404: "There is no such index, document or route.",
    408: "The request did not arrive in time.",
    409: "Another process is writing; try again.",
    413: "The request, or its answer, is too large.",
    421: "The server does not answer under this name.",
    422: "The request cannot be understood; the sentence says why.",
    429: "The server is busy; try again after the seconds of Retry-After.",
    503: "The server is shutting down, or could not write.",
    504: "It took too long.",
    507: "The server has no room left to write.",
}


def create_app(
    indexes: Mapping[str, Served], access: Access | None = None, limits: Limits | None = None
) -> tuple[FastAPI, Gate]:
    """The application without its gate, to which routes may be added, and the gate, which is what is served."""
    metrics = Metrics(indexes)
    app = FastAPI(
        title="RepCONC",
        version="1",
        description=DESCRIPTION,
        docs_url=None,  # those of the library load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        lifespan=_lifespan(indexes),
        responses={status: {"model": schemas.ErrorResponse, "description": text} for status, text in REFUSALS.items()},
    )
    gate = Gate(app, access or Access(), limits or Limits(), metrics, direct_routes(indexes))
    for router in (search_routes(indexes), document_routes(indexes), index_routes(indexes), page_routes()):
        app.include_router(router)
    _add_status(app, gate, metrics)
    _add_refusals(app)
    _add_security(app)
    return app, gate


def _lifespan(indexes: Mapping[str, Served]) -> Any:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        for served in indexes.values():
            served.start()
        yield
        for served in indexes.values():
            await served.close()

    return lifespan


def _add_status(app: FastAPI, gate: Gate, metrics: Metrics) -> None:
    @app.get("/health", response_model=schemas.StatusResponse, tags=["status"], summary="Is the process there?")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/ready", response_model=schemas.StatusResponse, tags=["status"], summary="May requests be sent?")
    async def ready() -> dict[str, str]:
        """503 once the server shuts down; what it has taken it still finishes."""
        if gate.closing:
            raise Refusal(503, "shutting_down", "The server is shutting down.")
        return {"status": "ready"}

    @app.get("/metrics", tags=["status"], summary="For Prometheus", response_class=Response)
    async def show_metrics() -> Response:
        content, media_type = metrics.page()
        return Response(content, media_type=media_type)


def _add_refusals(app: FastAPI) -> None:
    """Every error in the one shape."""

    @app.exception_handler(Refusal)
    async def refused(_: Request, refusal: Refusal) -> Response:
        return _response(refusal)

    @app.exception_handler(RequestValidationError)
    async def not_understood(_: Request, error: RequestValidationError) -> Response:
        return _response(misunderstood(error.errors()[0]))

    @app.exception_handler(Exception)
    async def failed(_: Request, error: Exception) -> Response:
        return _response(internal())  # and the gate, which gets it next, logs it

    @app.exception_handler(HTTPException)
    async def not_found(_: Request, error: HTTPException) -> Response:
        refusal = {
            404: Refusal(404, "not_found", "There is nothing here; /docs lists what there is."),
            405: Refusal(405, "method_not_allowed", "This cannot be done here; /docs says what can."),
        }.get(error.status_code, invalid("The request cannot be read."))
        refusal.headers.update(error.headers or {})
        return _response(refusal)


def _response(refusal: Refusal) -> Response:
    return Response(refusal.body, refusal.status, refusal.headers, media_type="application/json")


def _add_security(app: FastAPI) -> None:
    """Tell the description of the token."""
    plain = app.openapi

    def described() -> dict[str, Any]:
        schema = plain()
        scheme = {"type": "http", "scheme": "bearer", "description": "REPCONC_TOKEN of the server."}
        schema.setdefault("components", {})["securitySchemes"] = {"token": scheme}
        return schema

    app.openapi = described  # type: ignore[method-assign]
