"""Check every request for the page: its host, its origin, its token and its size; set security headers."""

from __future__ import annotations

import hashlib
import hmac
import html
import secrets
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlencode

from memory_kb.serving.host_check import HostCheck

#: A form with the longest text that may be edited, every character of it escaped.
MAX_BODY = 4 * 1024 * 1024
_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'{}; img-src 'self' data:; media-src 'self'; connect-src 'self'; font-src 'self'; frame-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
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

    Args:
        app: the application to protect.
        host: the name or address of the server.
        port: its port.
        token: the token that requests need, or None.
        style_hashes: hashes of the styles that scripts of the page may insert.
    """

    def __init__(self, app: Any, host: str, port: int, token: str | None, style_hashes: Iterable[str] = ()) -> None:
        self._app, self._token = app, token
        self._host_check = HostCheck(app, host, None)
        self._secret = secrets.token_bytes(32)
        self._cookie = f"memory-kb-{port}"
        self._csp = _CSP.format("".join(f" 'sha256-{one}'" for one in style_hashes))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on, or answer it with a refusal."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        send = self._with_headers(send)
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host = {name: value for name, value in headers.items() if name == b"host"}
        refusal = self._host_check.check(host) or self._check_origin(scope["method"], headers)
        if refusal:
            await _answer(send, refusal[0], f"{refusal[1]}\n")
        elif _length(headers) > MAX_BODY:
            await _answer(send, 413, "that is more than this page reads\n")
        elif self._token is not None and not self._is_known(headers) and scope["path"] != "/static/page.css":
            await self._request_token(scope, receive, send)
        else:
            await self._app(scope, _bounded(receive), send)

    def _check_origin(self, method: str, headers: dict[bytes, str]) -> tuple[int, str] | None:
        """Return why a request that another site caused is refused, or None."""
        origin, site = headers.get(b"origin"), headers.get(b"sec-fetch-site", "none")
        if origin is not None and origin.lower().partition("://")[2] != headers.get(b"host", "").lower():
            return 403, "pages of other origins may not use this page"
        followed = (
            method == "GET"
            and headers.get(b"sec-fetch-mode") == "navigate"
            and headers.get(b"sec-fetch-dest") == "document"
        )
        if site not in ("none", "same-origin") and not followed:
            return 403, "other sites may only link to this page"
        return None

    def _is_known(self, headers: dict[bytes, str]) -> bool:
        """Return whether a request has the token, or the cookie that replaces it."""
        scheme, _, given = headers.get(b"authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._is_token(given.strip()):
            return True
        try:
            kept = SimpleCookie(headers.get(b"cookie", "")).get(self._cookie)
        except CookieError:
            return False
        return kept is not None and hmac.compare_digest(kept.value.encode(), self._cookie_value.encode())

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), (self._token or "").encode())

    @property
    def _cookie_value(self) -> str:
        return hmac.new(self._secret, (self._token or "").encode(), hashlib.sha256).hexdigest()

    async def _request_token(self, scope: Any, receive: Any, send: Any) -> None:
        """Read the token from a form or an address, or answer with a form for it."""
        query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True, max_num_fields=None)
        if scope["path"] == "/enter" and scope["method"] == "POST":
            form = parse_qs((await _read_all(receive, 4096)).decode("latin-1"))
            if self._is_token(form.get("token", [""])[-1]):
                await self._admit(send, "/")
                return
            await _answer(send, 401, _FORM.format("That is not the token."), "text/html")
            return
        if scope["method"] == "GET" and self._is_token(query.pop("token", [""])[-1]):
            rest = urlencode(query, doseq=True)
            # Never to another host, however many slashes the path begins with.
            path = "/" + scope["path"].lstrip("/\\")
            await self._admit(send, f"{path}?{rest}" if rest else path)
            return
        words = "The server was started with a token, since other machines can reach it."
        await _answer(send, 401, _FORM.format(html.escape(words)), "text/html")

    async def _admit(self, send: Any, to: str) -> None:
        cookie = f"{self._cookie}={self._cookie_value}; Path=/; HttpOnly; SameSite=Strict"
        await _answer(
            send, 303, "", more=[(b"location", to.encode("ascii", "replace")), (b"set-cookie", cookie.encode())]
        )

    def _with_headers(self, send: Any) -> Any:
        async def send_with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message.get("headers", ())}
                fixed = {**_HEADERS, "content-security-policy": self._csp, "cache-control": "no-store"}
                more = [(name.encode(), value.encode()) for name, value in fixed.items() if name.encode() not in given]
                message = {**message, "headers": [*message.get("headers", ()), *more]}
            await send(message)

        return send_with_headers


def _length(headers: dict[bytes, str]) -> int:
    text = headers.get(b"content-length", "0")
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


async def _read_all(receive: Any, limit: int) -> bytes:
    body = b""
    while len(body) <= limit:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    return body[:limit]


async def _answer(
    send: Any, status: int, text: str, kind: str = "text/plain", more: Iterable[tuple[bytes, bytes]] = ()
) -> None:
    body = text.encode()
    headers = [
        (b"content-type", f"{kind}; charset=utf-8".encode()),
        (b"content-length", str(len(body)).encode()),
        *more,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
