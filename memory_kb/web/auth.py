"""Check every request for the page: its host, its origin, its token and its size; set security headers."""

from __future__ import annotations

import hmac
import secrets
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from memory_kb.http_server import find_refusal

#: Of the two styles that force-graph 1.52.0 writes into the page, and of the nothing that is there before.
STYLE_HASHES = (
    "jtRRMYY2VbEXuBKbHvqM1/fPT8vazFrEooXdvwUK4y8=",
    "9xjtvxMT1ApHlgn9ohbh2FNfvK5Tqtzy94BjfXBeMSY=",
    "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
)
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
        self._app, self._host, self._token = app, host, token
        self._cookie, self._pass = f"memory-kb-{port}", secrets.token_urlsafe(32)
        policy = _CSP.format("".join(f" 'sha256-{one}'" for one in STYLE_HASHES))
        self._headers = {**_HEADERS, "content-security-policy": policy}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        answer: Any = await self._answer(Request(scope, _bounded(receive))) or self._app
        # Our own files are asked for again at each page, and sent only where they have changed.
        caching = {"cache-control": "no-cache"} if scope["path"].startswith("/static/") else {}
        await answer(scope, _bounded(receive), _with_headers(send, self._headers | caching))

    async def _answer(self, request: Request) -> Response | None:
        """Return the answer to a request that is refused or lacks the token, or None."""
        headers = request.headers
        if refusal := find_refusal(headers, self._host):
            return PlainTextResponse(f"{refusal[1]}\n", refusal[0])
        site = headers.get("sec-fetch-site", "none")
        followed = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")
        if site not in ("none", "same-origin") and not (request.method == "GET" and followed):
            return PlainTextResponse("other sites may only link to this page\n", 403)
        if _length(request) > MAX_BODY:
            return PlainTextResponse("that is more than this page reads\n", 413)
        if self._token is None or request.scope["path"] == "/static/page.css":
            return None
        if hmac.compare_digest(request.cookies.get(self._cookie, "").encode(), self._pass.encode()):
            return None
        return await self._request_token(request, self._token)

    async def _request_token(self, request: Request, token: str) -> Response:
        """Answer with a form for the token, or read the token from it."""
        words = "The server was started with a token, since other machines can reach it."
        if request.scope["path"] == "/enter" and request.method == "POST":
            try:
                form = parse_qs((await request.body()).decode("latin-1"))
            except ClientDisconnect:
                form = {}
            if hmac.compare_digest(form.get("token", [""])[-1].encode(), token.encode()):
                answer = RedirectResponse("/", 303)
                answer.set_cookie(self._cookie, self._pass, httponly=True, samesite="strict")
                return answer
            words = "That is not the token."
        return HTMLResponse(_FORM.format(words), 401)


def _with_headers(send: Any, usual: dict[str, str]) -> Any:
    async def send_with_headers(message: Any) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in usual.items():
                headers.setdefault(name, value)
        await send(message)

    return send_with_headers


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
