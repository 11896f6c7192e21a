"""Who may speak to the server over HTTP: no page of a browser that was led here, nobody without the token."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

_Scope = MutableMapping[str, Any]
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_App = Callable[[_Scope, Any, _Send], Awaitable[None]]
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_ANYWHERE = ("0.0.0.0", "::")  # noqa: S104 - compared with, not bound to


class Gate:
    """What stands before the application and lets through only requests that are meant for it.

    A browser may be led to call us under another name (DNS rebinding) or from a page of somebody
    else: the Host must be ours, and an Origin, which only browsers send, must be this server itself.
    A page at another port of this machine is somebody else's.
    """

    def __init__(self, app: _App, host: str, token: str | None) -> None:
        self._app, self._host, self._token = app, host.lower(), token

    async def __call__(self, scope: _Scope, receive: Any, send: _Send) -> None:
        """Let a request through, or refuse it."""
        refusal = (
            self.judge({name: value.decode("latin-1") for name, value in scope["headers"]})
            if scope["type"] == "http"
            else None
        )
        if refusal is None:
            await self._app(scope, receive, send)
            return
        status, reason = refusal
        headers = [
            (b"content-type", b"text/plain; charset=utf-8"),
            *([(b"www-authenticate", b"Bearer")] if status == 401 else []),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": f"{reason}\n".encode()})

    def judge(self, headers: dict[bytes, str]) -> tuple[int, str] | None:
        """Return why a request with these headers is refused, or None.

        Example:
            >>> gate = Gate(None, "127.0.0.1", None)
            >>> gate.judge({b"host": "127.0.0.1:80"}), gate.judge({b"host": "evil.example"})[0]
            (None, 421)
            >>> gate.judge({b"host": "localhost:80", b"origin": "https://evil.example"})[0]
            403
            >>> gate.judge({b"host": "localhost:80", b"origin": "http://localhost:3000"})[0]
            403
        """
        if not self._is_ours(f"//{headers.get(b'host', '')}"):
            return 421, "this server does not answer under that Host"
        origin = headers.get(b"origin")
        if origin is not None and origin.lower().partition("://")[2] != headers.get(b"host", "").lower():
            return 403, "pages of other origins may not use this server"
        if self._token is not None:
            scheme, _, given = headers.get(b"authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._token.encode()):
                return 401, "this server wants its token: Authorization: Bearer TOKEN"
        return None

    def _is_ours(self, address: str) -> bool:
        """Tell whether an address names this machine; bound to all of them, the token alone can tell."""
        try:
            name = (urlsplit(address).hostname or "").lower()
        except ValueError:
            return False
        return name in _LOOPBACK or name == self._host or (bool(name) and self._host in _ANYWHERE)
