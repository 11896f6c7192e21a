"""The routes of the page, the files that it sends, its server, and what that checks of every request."""

from __future__ import annotations

import hmac
import html
import mimetypes
import os
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from memory_kb.errors import UnknownEntry, UsageError
from memory_kb.serving import Address, HostCheck, ListenAddress, bind_socket, has_bearer, make_say, run_server
from memory_kb.store.project_files import Attachments
from memory_kb.store.safe_paths import explain_parts
from memory_kb.vault import GLOBAL_PREFIX, Vault
from memory_kb.web import entry_pages, vault_pages
from memory_kb.web.note_syntax import ATTACHMENT_TYPES
from memory_kb.web.site import STATIC, PageRequest, PageRoute, Site, SiteInfo

#: A picture runs no script and loads nothing, even when it is opened alone; browsers show no PDF in a sandbox.
_PICTURE_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'"


def send_attachment(request: PageRequest) -> Response:
    """A picture or document of the vault, as a note names it."""
    name, vault = request.param("name", 1_000), request.kb.vault
    path = request.kept("attachments", lambda kb: Attachments(kb.vault)).find(name, request.param("from", 1_000))
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
    PageRoute("GET", "/entry/links", "study", entry_pages.show_part),
    PageRoute("GET", "/entry/exposure", "study", entry_pages.show_part),
    PageRoute("GET", "/entry/changes", "study", entry_pages.show_part),
    PageRoute("GET", "/entry/hash", "read", entry_pages.show_hash),
    PageRoute("GET", "/entry/edit", "read", entry_pages.show_form),
    PageRoute("GET", "/entry/names", "study", entry_pages.complete),
    PageRoute("POST", "/entry/edit", "write", entry_pages.save, takes_old_forms=True),
    PageRoute("POST", "/entry/preview", "read", entry_pages.preview),
    PageRoute("POST", "/entry/remarks", "study", entry_pages.show_remarks),
    PageRoute("POST", "/entry/rename", "write", entry_pages.rename),
    PageRoute("POST", "/entry/forget", "write", entry_pages.forget),
    PageRoute("POST", "/entry/open", "read", entry_pages.open_editor),
    PageRoute("GET", "/new", "study", entry_pages.show_new),
    PageRoute("POST", "/new", "write", entry_pages.create, takes_old_forms=True),
    PageRoute("GET", "/review", "study", vault_pages.show_queue),
    PageRoute("GET", "/review/item", "study", vault_pages.show_item),
    PageRoute("POST", "/review/judge", "write", vault_pages.judge),
    PageRoute("POST", "/undo", "write", entry_pages.undo),
    PageRoute("GET", "/graph", "study", vault_pages.show_graph),
    PageRoute("GET", "/graph.json", "study", vault_pages.send_graph),
    PageRoute("GET", "/sessions", "study", vault_pages.show_sessions),
    PageRoute("GET", "/session", "study", vault_pages.show_session),
    PageRoute("GET", "/health", "study", vault_pages.show_health),
    PageRoute("GET", "/health/findings", "study", vault_pages.show_findings),
)
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
        caching = "max-age=31536000, immutable" if request.url.query else "no-cache"
        kind = mimetypes.guess_type(file.name)[0] or "text/plain"
        return FileResponse(file, media_type=kind, headers={"cache-control": caching})

    async def explain(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        sentence = "There is no such page." if status == 404 else "That is not how this address is used."
        return site.error_page(request, status, "Nothing there", sentence)

    handlers: dict[Any, Any] = {HTTPException: explain}
    routes = [
        *(Route(route.path, site.handle(route), methods=[route.method]) for route in _ROUTES),
        Route("/static/{name}", send_asset),
        Route("/diagram", lambda request: site.page(request, "diagram.html", headers=_FRAME_HEADERS)),
        Route("/favicon.ico", lambda _: FileResponse(_ASSETS["icon.svg"], media_type="image/svg+xml")),
    ]
    return Starlette(routes=routes, exception_handlers=handlers)


_LEAST_TOKEN = 12
#: Of the two styles that force-graph 1.52.0 writes into the page, and of the nothing that is there before.
STYLE_HASHES = (
    "jtRRMYY2VbEXuBKbHvqM1/fPT8vazFrEooXdvwUK4y8=",
    "9xjtvxMT1ApHlgn9ohbh2FNfvK5Tqtzy94BjfXBeMSY=",
    "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
)


def serve_page(
    address: Address,
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
    with address.open() as kb:  # so that a vault that cannot be opened is reported here
        name = kb.vault.folder.name or str(kb.vault.folder)
    listening, bound = bind_socket(place, token, "MEMORY_KB_SERVE_TOKEN")
    site = Site(address, SiteInfo(name, bound.is_loopback, os.environ.get("MEMORY_KB_EDITOR") or None, vaults))
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


#: A form with the longest text that may be edited, every character of it escaped.
MAX_BODY = 4 * 1024 * 1024
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'{}; img-src 'self' data:; media-src 'self'; connect-src 'self'; font-src 'self'; frame-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
#: Of every answer that says nothing else.
_HEADERS = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_FORM = """<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>memory-kb</title><link rel="stylesheet" href="/static/page.css"></head><body class="bare"><main id="main">
<h1>This page needs its token</h1>
<p>{}</p><form method="post" action="/enter" class="stack"><label for="token">Token</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button type="submit">Enter</button></form></main></body></html>
"""


class Auth:
    """ASGI middleware that refuses requests of other sites or without the token, and sets security headers.

    The Host header must name this server (against DNS rebinding). Requests that other sites cause are
    refused, except a link that a person follows. A token, if there is one, is sent once; afterwards a
    cookie of this page replaces it.
    """

    def __init__(self, app: Any, host: str, port: int, token: str | None) -> None:
        self._app, self._token = app, token
        self._host_check = HostCheck(app, host, None)
        self._cookie, self._pass = f"memory-kb-{port}", secrets.token_urlsafe(32)
        policy = _CSP.format("".join(f" 'sha256-{one}'" for one in STYLE_HASHES))
        self._headers = {**_HEADERS, "content-security-policy": policy}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        answer: Any = await self._answer(Request(scope, _bounded(receive))) or self._app
        await answer(scope, _bounded(receive), self._with_headers(send))

    async def _answer(self, request: Request) -> Response | None:
        """Return the answer to a request that is refused or lacks the token, or None."""
        headers = request.headers
        if refusal := self._host_check.check(headers):
            return PlainTextResponse(f"{refusal[1]}\n", refusal[0])
        site = headers.get("sec-fetch-site", "none")
        followed = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")
        if site not in ("none", "same-origin") and not (request.method == "GET" and followed):
            return PlainTextResponse("other sites may only link to this page\n", 403)
        if _length(request) > MAX_BODY:
            return PlainTextResponse("that is more than this page reads\n", 413)
        if self._token is None or request.scope["path"] == "/static/page.css" or has_bearer(headers, self._token):
            return None
        if hmac.compare_digest(request.cookies.get(self._cookie, "").encode(), self._pass.encode()):
            return None
        return await self._request_token(request, self._token)

    async def _request_token(self, request: Request, token: str) -> Response:
        """Read the token from a form or an address, or answer with a form for it."""
        if request.scope["path"] == "/enter" and request.method == "POST":
            try:
                form = parse_qs((await request.body()).decode("latin-1"))
            except ClientDisconnect:
                form = {}
            if _is_last(form.get("token", []), token):
                return self._admit("/")
            return HTMLResponse(_FORM.format("That is not the token."), 401)
        query = parse_qs(request.scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if request.method == "GET" and _is_last(query.pop("token", []), token):
            # Never to another host, however many slashes the path begins with.
            path = "/" + request.scope["path"].lstrip("/\\")
            rest = urlencode(query, doseq=True)
            return self._admit(f"{path}?{rest}" if rest else path)
        words = "The server was started with a token, since other machines can reach it."
        return HTMLResponse(_FORM.format(html.escape(words)), 401)

    def _admit(self, to: str) -> Response:
        answer = RedirectResponse(to, 303)
        answer.set_cookie(self._cookie, self._pass, httponly=True, samesite="strict")
        return answer

    def _with_headers(self, send: Any) -> Any:
        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        return send_with_headers


def _is_last(given: list[str], token: str) -> bool:
    return bool(given) and hmac.compare_digest(given[-1].encode(), token.encode())


def _length(request: Request) -> int:
    text = request.headers.get("content-length", "0")
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 15 else MAX_BODY + 1


def _bounded(receive: Any) -> Any:
    """Return a `receive` that disconnects after the largest body that is read."""
    read = 0

    async def receiving() -> Any:
        nonlocal read
        message = await receive()
        if message["type"] == "http.request":
            read += len(message.get("body", b""))
            if read > MAX_BODY:
                return {"type": "http.disconnect"}
        return message

    return receiving
