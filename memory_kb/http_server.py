"""Serve an application over HTTP: the address to listen at, and the check of every request's host and token."""

from __future__ import annotations

import hmac
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from memory_kb.errors import UsageError

if TYPE_CHECKING:
    from types import FrameType

_Scope = MutableMapping[str, Any]
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_App = Callable[[_Scope, Any, _Send], Awaitable[None]]
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_ANYWHERE = ("0.0.0.0", "::")  # noqa: S104 - compared with, not bound to


class HostCheck:
    """ASGI middleware that refuses requests for another host, from another origin or without the token."""

    def __init__(self, app: _App, host: str, token: str | None) -> None:
        self._app, self._host, self._token = app, host, token

    async def __call__(self, scope: _Scope, receive: Any, send: _Send) -> None:
        from starlette.datastructures import Headers
        from starlette.responses import PlainTextResponse

        refusal = find_refusal(Headers(scope=scope), self._host, self._token) if scope["type"] == "http" else None
        if refusal is None:
            await self._app(scope, receive, send)
            return
        status, reason = refusal
        headers = {"www-authenticate": "Bearer"} if status == 401 else {}
        await PlainTextResponse(f"{reason}\n", status, headers)(scope, receive, send)


def find_refusal(headers: Mapping[str, str], host: str, token: str | None = None) -> tuple[int, str] | None:
    """Return the status and the reason of refusing a request with these headers to a server at a host, or None.

    This protects against DNS rebinding and pages of other sites: the Host must name this server, and an
    Origin, which only browsers send, must be this server. Other ports of this machine are other origins.

    Example:
        >>> find_refusal({"host": "127.0.0.1:80"}, "127.0.0.1"), find_refusal({"host": "evil.example"}, "::1")[0]
        (None, 421)
        >>> find_refusal({"host": "localhost:80", "origin": "https://evil.example"}, "127.0.0.1")[0]
        403
        >>> find_refusal({"host": "localhost:80", "origin": "http://localhost:3000"}, "127.0.0.1")[0]
        403
    """
    if not _is_ours(f"//{headers.get('host', '')}", host.lower()):
        return 421, "this server does not answer under that Host"
    origin = headers.get("origin")
    if origin is not None and origin.lower().partition("://")[2] != headers.get("host", "").lower():
        return 403, "pages of other origins may not use this server"
    if token is not None and not has_bearer(headers, token):
        return 401, "this server wants its token: Authorization: Bearer TOKEN"
    return None


def _is_ours(address: str, host: str) -> bool:
    """Return whether an address names a server at a host; at all of this machine's, the token alone decides."""
    try:
        name = (urlsplit(address).hostname or "").lower()
    except ValueError:
        return False
    return name in _LOOPBACK or name == host or (bool(name) and host in _ANYWHERE)


def has_bearer(headers: Mapping[str, str], token: str) -> bool:
    """Return whether a request shows a token as its authorization."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())


class ListenAddress(NamedTuple):
    """An address to listen at; port 0 is any free one."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in ("localhost", "::1") or self.host.startswith("127.")

    @property
    def shown(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> ListenAddress:
    """Return the address that HOST:PORT names; either may be left out.

    Example:
        >>> parse_address("0.0.0.0:80"), parse_address("9000"), parse_address("[::1]:0").host
        (ListenAddress(host='0.0.0.0', port=80), ListenAddress(host='127.0.0.1', port=9000), '::1')
    """
    host, colon, port = text.strip().rpartition(":")
    if not colon:
        host, port = ("", text.strip()) if text.strip().isdecimal() else (text.strip(), "8765")
    if not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"{text!r} is no place to listen at", "write HOST:PORT, such as 127.0.0.1:8765")
    return ListenAddress(host.strip("[]") or "127.0.0.1", int(port))


def bind_socket(place: ListenAddress, token: str | None, variable: str) -> tuple[socket.socket, ListenAddress]:
    """Return a socket that listens at an address, and the address with the port that it got.

    UsageError where other machines could reach it and there is no token, or where nobody can listen there.
    """
    if not place.is_loopback and not token:
        problem = f"{place.shown} can be reached by other machines, and there is no token"
        raise UsageError(problem, f"set {variable}, or pass --token")
    try:
        family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
        listening = socket.create_server((place.host, place.port), family=family, backlog=128)
    except OSError as exc:
        problem = f"cannot listen at {place.shown}: {exc.strerror or exc}"
        raise UsageError(problem, "name another, or port 0 for any that is free") from exc
    return listening, ListenAddress(place.host, listening.getsockname()[1])


def run_server(app: Any, listening: socket.socket) -> int:
    """Serve an application until a signal ends it; return the exit code."""
    import uvicorn

    quiet: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False, "date_header": False}
    # Uvicorn raises the signal that ended it once more, for the handler before its own.
    signal.signal(signal.SIGTERM, lambda *_: None)

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            # It ends within a second; a second Ctrl-C would break that off with a traceback.
            if not self.should_exit:
                super().handle_exit(sig, frame)

    try:
        Server(uvicorn.Config(app, timeout_graceful_shutdown=1, **quiet)).run(sockets=[listening])
    except KeyboardInterrupt:
        return 130
    return 0
