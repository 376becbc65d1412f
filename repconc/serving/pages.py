"""The page and the description for people: files of the package, and nothing from elsewhere."""

from importlib.resources import files

from fastapi import APIRouter, Response

PAGES = {"/": "search.html", "/docs": "docs.html"}
ASSETS = {
    "search.js": "text/javascript",
    "results.js": "text/javascript",
    "docs.js": "text/javascript",
    "style.css": "text/css",
    "icon.svg": "image/svg+xml",
}


def page_routes() -> APIRouter:
    """A route for each file, whose content is read now: no name of a request ever reaches a path."""
    router = APIRouter(include_in_schema=False)
    for address, name in PAGES.items():
        _add(router, address, name, "text/html")
    for name, media_type in ASSETS.items():
        _add(router, f"/site/{name}", name, media_type)
    return router


def _add(router: APIRouter, address: str, name: str, media_type: str) -> None:
    content = (files("repconc.serving") / "site" / name).read_bytes()

    @router.get(address)
    async def show() -> Response:
        return Response(content, media_type=f"{media_type}; charset=utf-8", headers={"cache-control": "no-cache"})
