"""The routes of the page, the files that it sends, and its server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from memory_kb.errors import UnknownEntry, UsageError
from memory_kb.http_server import ListenAddress, bind_socket, run_server
from memory_kb.machine_seal import sign
from memory_kb.store.project_files import Attachments
from memory_kb.store.safe_paths import explain_parts
from memory_kb.vault import GLOBAL_PREFIX, Vault
from memory_kb.web import entry_pages, vault_pages
from memory_kb.web.addresses import ATTACHMENT_TYPES
from memory_kb.web.auth import Auth
from memory_kb.web.site import STATIC, PageRequest, PageRoute, Site, SiteInfo
from memory_kb.workers import NamedVault, make_say

if TYPE_CHECKING:
    from starlette.requests import Request

#: A picture runs no script and loads nothing, even when it is opened alone; browsers show no PDF in a sandbox.
_PICTURE_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'"


def send_attachment(request: PageRequest) -> Response:
    """A picture or document of the vault, as a note names it."""
    name, vault = request.param("name", 1_000), request.kb.vault
    path = request.cached("attachments", lambda kb: Attachments(kb.vault)).find(name, request.param("from", 1_000))
    file = check_attachment(vault, path) if path else None
    if file is None:
        return request.site.explain(request.http, UnknownEntry(name))
    kind = ATTACHMENT_TYPES[file.suffix.lower()]
    headers = {"content-security-policy": _PICTURE_POLICY} if "image" in kind else {}
    return FileResponse(file, media_type=kind, headers=headers)


def check_attachment(vault: Vault, path: str) -> Path | None:
    """Return the file of a path in output if it is of a known type, not hidden and inside the vault, else None."""
    root = vault.home if path.startswith(GLOBAL_PREFIX) else vault.folder
    try:
        real, top = Path(os.path.realpath(vault.resolve(path))), Path(os.path.realpath(root))
        asked = explain_parts(Path(path.removeprefix(GLOBAL_PREFIX)).parts)
        if asked or not real.is_relative_to(top) or explain_parts(real.relative_to(top).parts) or not real.is_file():
            return None
    except (OSError, ValueError):
        return None
    return real if real.suffix.lower() in ATTACHMENT_TYPES else None


_ROUTES = (
    PageRoute("GET", "/", "read", vault_pages.show_search),
    PageRoute("GET", "/results", "read", vault_pages.show_results),
    PageRoute("GET", "/browse", "read", vault_pages.show_browse),
    PageRoute("GET", "/go", "read", vault_pages.go),
    # The number of the index's state, for a page that shows when it is old.
    PageRoute("GET", "/generation", "read", lambda request: PlainTextResponse(str(request.kb.generation))),
    PageRoute("GET", "/attachment", "read", send_attachment),
    PageRoute("GET", "/entry", "read", entry_pages.show_entry),
    PageRoute("GET", "/entry/links", "slow-read", entry_pages.show_part),
    PageRoute("GET", "/entry/exposure", "slow-read", entry_pages.show_part),
    PageRoute("GET", "/entry/changes", "slow-read", entry_pages.show_part),
    PageRoute("GET", "/entry/hash", "read", entry_pages.show_hash),
    PageRoute("GET", "/entry/edit", "read", entry_pages.show_form),
    PageRoute("GET", "/entry/names", "slow-read", entry_pages.complete),
    PageRoute("POST", "/entry/edit", "write", entry_pages.save),
    PageRoute("POST", "/entry/preview", "read", entry_pages.preview),
    PageRoute("POST", "/entry/remarks", "slow-read", entry_pages.show_remarks),
    PageRoute("POST", "/entry/rename", "write", entry_pages.rename),
    PageRoute("POST", "/entry/forget", "write", entry_pages.forget),
    PageRoute("GET", "/new", "slow-read", entry_pages.show_new),
    PageRoute("POST", "/new", "write", entry_pages.create),
    PageRoute("GET", "/review", "slow-read", vault_pages.show_queue),
    PageRoute("GET", "/review/item", "slow-read", vault_pages.show_item),
    PageRoute("POST", "/review/judge", "write", vault_pages.judge),
    PageRoute("POST", "/undo", "write", entry_pages.undo),
    PageRoute("GET", "/graph", "slow-read", vault_pages.show_graph),
    PageRoute("GET", "/graph.json", "slow-read", vault_pages.send_graph),
    PageRoute("GET", "/sessions", "slow-read", vault_pages.show_sessions),
    PageRoute("GET", "/session", "slow-read", vault_pages.show_session),
    PageRoute("GET", "/health", "slow-read", vault_pages.show_health),
    PageRoute("GET", "/health/findings", "slow-read", vault_pages.show_findings),
)
#: Of the frame that draws diagrams: it may write styles, loads and sends nothing, and only our own pages hold it.
_FRAME_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "x-frame-options": "SAMEORIGIN",
}


def make_app(site: Site) -> Starlette:
    """Return the application, without what is before it."""

    async def explain(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        sentence = "There is no such page." if status == 404 else "That is not how this address is used."
        return site.error_page(request, status, "Nothing there", sentence)

    handlers: dict[Any, Any] = {HTTPException: explain}
    routes = [
        *(Route(route.path, site.handle(route), methods=[route.method]) for route in _ROUTES),
        Mount("/static", StaticFiles(directory=STATIC)),
        Route("/diagram", lambda request: site.page(request, "diagram.html", headers=_FRAME_HEADERS)),
        Route("/favicon.ico", lambda _: FileResponse(STATIC / "icon.svg")),
    ]
    return Starlette(routes=routes, exception_handlers=handlers)


_LEAST_TOKEN = 12


def serve_page(
    named: NamedVault,
    place: ListenAddress,
    token: str | None,
    *,
    is_opening: bool,
    is_watching: bool,
    vaults: tuple[str, ...],
) -> int:
    """Serve the page until a signal ends it; return the exit code."""
    if token is not None and len(token) < _LEAST_TOKEN:
        hint = "take a longer one, such as from `openssl rand -hex 16`"
        raise UsageError(f"the token is shorter than {_LEAST_TOKEN} characters", hint)
    with named.open() as kb:  # so that a vault that cannot be opened is reported here
        name = kb.vault.folder.name or str(kb.vault.folder)
        mark = sign(kb.vault.seal, b"a form of the page")
    listening, bound = bind_socket(place, token, "MEMORY_KB_SERVE_TOKEN")
    site = Site(named, SiteInfo(name, mark, bound.is_loopback, vaults))
    auth = Auth(make_app(site), bound.host, bound.port, token)
    make_say("serve")(f"the page is at http://{bound.shown}/")
    site.warm(is_watching=is_watching)
    if is_opening:
        import webbrowser

        webbrowser.open(f"http://{bound.shown}/")
    try:
        return run_server(auth, listening)
    finally:
        site.close()
