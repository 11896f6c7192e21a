"""The routes of the page, and its server."""

from __future__ import annotations

import mimetypes
import os
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from memory_kb.errors import UsageError
from memory_kb.serving.host_check import Listen, bind_socket, run_server
from memory_kb.serving.workers import GRACE_SECONDS, Address, VaultWatcher, make_say
from memory_kb.web import attachments, entries, overview, review, search, sessions
from memory_kb.web.auth import Auth
from memory_kb.web.site import STATIC, Handler, Site, SiteInfo

if TYPE_CHECKING:
    from starlette.requests import Request


_PAGES: dict[str, Handler] = {
    "/": search.show_search,
    "/results": search.show_results,
    "/browse": search.show_browse,
    "/go": search.go,
    "/entry": entries.show_entry,
    "/attachment": attachments.send_attachment,
    "/entry/links": entries.show_links,
    "/entry/exposure": entries.show_exposure,
    "/entry/changes": entries.show_changes,
    "/entry/hash": entries.show_hash,
    "/entry/edit": entries.show_form,
    "/entry/names": entries.complete,
    "/new": entries.show_new,
    "/review": review.show_review,
    "/review/item": review.show_item,
    "/graph": overview.show_graph,
    "/graph.json": overview.send_graph,
    "/sessions": sessions.show_sessions,
    "/session": sessions.show_session,
    "/health": overview.show_health,
    "/health/findings": overview.show_findings,
}
_FORMS: dict[str, Handler] = {
    "/entry/edit": entries.save,
    "/entry/preview": entries.preview,
    "/entry/remarks": entries.show_remarks,
    "/entry/rename": entries.rename,
    "/new": entries.create,
    "/entry/forget": entries.forget,
    "/entry/open": entries.open_editor,
    "/review/judge": review.judge,
    "/undo": entries.undo,
}
#: The files that are sent, by their names; no other name leads to a file.
_ASSETS = {file.name: file for file in STATIC.iterdir() if file.suffix in (".css", ".js", ".svg", ".txt")}

#: Of the frame that draws diagrams: it may write styles, loads and sends nothing, and only our own pages hold it.
_FRAME_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "x-frame-options": "SAMEORIGIN",
}


def make_app(site: Site) -> Starlette:
    """Return the application, without what is before it."""

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

    async def send_frame(request: Request) -> Response:
        return site.page(request, "diagram.html", headers=_FRAME_HEADERS)

    async def send_icon(_: Request) -> Response:
        return FileResponse(_ASSETS["icon.svg"], media_type="image/svg+xml")

    async def send_generation(_: Site, __: Request) -> Response:
        return PlainTextResponse(str(await site.read(lambda kb: kb.generation)))

    async def explain(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        sentence = "There is no such page." if status == 404 else "That is not how this address is used."
        return site.error_page(request, status, "Nothing there", sentence)

    handlers: dict[Any, Any] = {HTTPException: explain}
    routes = [
        *(Route(path, site.handle(handler), methods=["GET"]) for path, handler in _PAGES.items()),
        *(Route(path, site.handle(handler), methods=["POST"]) for path, handler in _FORMS.items()),
        Route("/static/{name}", send_asset),
        Route("/diagram", send_frame),
        Route("/favicon.ico", send_icon),
        Route("/generation", site.handle(send_generation)),
    ]
    return Starlette(routes=routes, exception_handlers=handlers)


_LEAST_TOKEN = 12
_say = make_say("serve")
#: Of the two styles that force-graph 1.52.0 writes into the page, and of the nothing that is there before.
STYLE_HASHES = (
    "jtRRMYY2VbEXuBKbHvqM1/fPT8vazFrEooXdvwUK4y8=",
    "9xjtvxMT1ApHlgn9ohbh2FNfvK5Tqtzy94BjfXBeMSY=",
    "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
)


def serve(
    address: Address,
    place: Listen,
    token: str | None = None,
    *,
    is_opening: bool = False,
    is_watching: bool = True,
    vaults: tuple[str, ...] = (),
) -> int:
    """Serve the page until a signal ends it; return the exit code."""
    if token is not None and len(token) < _LEAST_TOKEN:
        raise UsageError(
            f"the token is shorter than {_LEAST_TOKEN} characters",
            "take a longer one, such as from `openssl rand -hex 16`",
        )
    with address.open() as kb:  # so that a vault that cannot be opened is reported here
        name = kb.vault.folder.name or str(kb.vault.folder)
    listening, bound = bind_socket(place, token, "MEMORY_KB_SERVE_TOKEN")
    site = Site(address, SiteInfo(name, bound.is_loopback, os.environ.get("MEMORY_KB_EDITOR") or None, vaults))
    watcher = VaultWatcher(address, _say)

    auth = Auth(make_app(site), bound.host, bound.port, token, STYLE_HASHES)
    _say(f"the page is at http://{bound.shown}/")
    site.warm(watcher.begin if is_watching else lambda: None)
    if is_opening:
        import webbrowser

        webbrowser.open(f"http://{bound.shown}/")
    try:
        return run_server(auth, listening)
    finally:
        watcher.end(0.0)
        site.close(GRACE_SECONDS)
        watcher.end(GRACE_SECONDS)
