"""The line to a provider: one HTTP client under all their packages.

Those packages read a good deal from the environment by themselves: addresses, headers,
organisations. The client lets nothing of that out, so a text goes where the settings say and
nowhere else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar
from urllib.parse import urlsplit

from memory_kb.errors import ProviderFailed

if TYPE_CHECKING:
    import httpx2

C = TypeVar("C")

#: Seconds in which a server must take up the line.
CONNECT_SECONDS = 5.0
_SENT = frozenset(
    {
        "accept",
        "accept-encoding",
        "anthropic-version",
        "authorization",
        "connection",
        "content-length",
        "content-type",
        "host",
        "user-agent",
    }
)


def is_loopback(url: str | None) -> bool:
    """Tell whether an address is on this machine.

    Example:
        >>> is_loopback("http://localhost:11434/v1"), is_loopback("http://[::1]/v1"), is_loopback("https://api.openai.com/v1")
        (True, True, False)
    """
    import ipaddress

    host = _host(url)
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def place_of(url: str) -> str:
    """Return what may be shown of an address: its host and port, never a password.

    Example:
        >>> place_of("http://me:secret@localhost:11434/v1?key=x")
        'localhost:11434'
    """
    return urlsplit(url).netloc.rpartition("@")[2]


def _host(url: str | None) -> str:
    try:
        return urlsplit(url or "").hostname or ""
    except ValueError:
        return ""


def open_line(base_url: str, headers: Mapping[str, str]) -> httpx2.Client:
    """Return a client that sends to the host of `base_url` only, always with `headers`.

    Proxies of the environment are used, except for servers on this machine.
    """
    import httpx2

    try:
        target = httpx2.URL(base_url)
    except httpx2.InvalidURL as exc:
        raise ProviderFailed(
            f"{place_of(base_url)[:60]} is no address", "check base_url in your configuration"
        ) from exc

    def check(request: httpx2.Request) -> None:
        if (request.url.scheme, request.url.netloc) != (target.scheme, target.netloc):
            raise httpx2.UnsupportedProtocol(f"the request would have gone to {request.url.host}", request=request)
        for name in set(request.headers) - _SENT:
            del request.headers[name]
        request.headers.update({**headers, "host": target.netloc.decode()})
        timeout = request.extensions.get("timeout", {})
        timeout["connect"] = min(CONNECT_SECONDS, timeout.get("connect") or CONNECT_SECONDS)

    return httpx2.Client(
        trust_env=not is_loopback(base_url), verify=target.scheme == "https", event_hooks={"request": [check]}
    )


class Connection(Generic[C]):
    """A package's client over a line of ours, opened by the first who needs it.

    Args:
        open_client: makes both; the line is what is closed.
    """

    def __init__(self, open_client: Callable[[], tuple[C, httpx2.Client]]) -> None:
        self._open_client = open_client
        self._lock = threading.Lock()
        self._opened: tuple[C, httpx2.Client] | None = None

    def get(self) -> C:
        """Return the client."""
        with self._lock:
            if self._opened is None:
                self._opened = self._open_client()
            return self._opened[0]

    def close(self) -> None:
        """Close the line; `get` opens another."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None:
            opened[1].close()
