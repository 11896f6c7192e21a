"""The addresses of the page."""

from __future__ import annotations

import mimetypes
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from memory_kb.web import deciding, entries, graphs, health, searching, sessions
from memory_kb.web.desk import STATIC, Desk, Handler

if TYPE_CHECKING:
    from starlette.requests import Request

_PAGES: dict[str, Handler] = {
    "/": searching.show_search,
    "/results": searching.show_results,
    "/browse": searching.show_browse,
    "/go": searching.go,
    "/entry": entries.show_entry,
    "/entry/links": entries.show_links,
    "/entry/exposure": entries.show_exposure,
    "/entry/changes": entries.show_changes,
    "/entry/hash": entries.show_hash,
    "/entry/edit": entries.show_form,
    "/review": deciding.show_review,
    "/review/item": deciding.show_item,
    "/graph": graphs.show_graph,
    "/graph.json": graphs.send_graph,
    "/sessions": sessions.show_sessions,
    "/session": sessions.show_session,
    "/health": health.show_health,
    "/health/findings": health.show_findings,
}
_FORMS: dict[str, Handler] = {
    "/entry/edit": entries.save,
    "/entry/forget": entries.forget,
    "/entry/open": entries.open_editor,
    "/review/judge": deciding.judge,
    "/undo": entries.undo,
}
#: The files that are sent, by their names; no other name leads to a file.
_ASSETS = {file.name: file for file in STATIC.iterdir() if file.suffix in (".css", ".js", ".svg", ".txt")}


def make_app(desk: Desk) -> Starlette:
    """Return the application, without what stands before it."""

    async def send_asset(request: Request) -> Response:
        file = _ASSETS.get(request.path_params["name"])
        if file is None:
            raise HTTPException(404)
        kind = mimetypes.guess_type(file.name)[0] or "text/plain"
        return FileResponse(
            file,
            media_type=kind,
            headers={"cache-control": "max-age=31536000, immutable" if request.url.query else "no-cache"},
        )

    async def send_icon(_: Request) -> Response:
        return FileResponse(_ASSETS["icon.svg"], media_type="image/svg+xml")

    async def stream(_: Request) -> Response:
        if desk.live.is_full:
            return PlainTextResponse("too many pages are open\n", 503)
        return StreamingResponse(desk.live.stream(), media_type="text/event-stream")

    async def explain(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        sentence = "There is no such page." if status == 404 else "That is not how this address is used."
        return desk.page(
            request, "error.html", status=status, title="Nothing there", sentence=sentence, hint=None, choices=()
        )

    handlers: dict[Any, Any] = {HTTPException: explain}
    routes = [
        *(Route(path, desk.handle(handler), methods=["GET"]) for path, handler in _PAGES.items()),
        *(Route(path, desk.handle(handler), methods=["POST"]) for path, handler in _FORMS.items()),
        Route("/static/{name}", send_asset),
        Route("/favicon.ico", send_icon),
        Route("/events", stream),
    ]
    return Starlette(routes=routes, exception_handlers=handlers)
