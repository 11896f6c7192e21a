"""Where a server listens."""

from __future__ import annotations

import socket
from typing import NamedTuple

from memory_kb.errors import UsageError


class Place(NamedTuple):
    """Where to listen; port 0 is any that is free."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in ("localhost", "::1") or self.host.startswith("127.")

    @property
    def shown(self) -> str:
        """As it stands in an address."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def read_place(text: str) -> Place:
    """Return the place that HOST:PORT names; either may be left out.

    Raises:
        UsageError: the port is no number.

    Example:
        >>> read_place("0.0.0.0:80"), read_place("9000"), read_place("[::1]:0").host
        (Place(host='0.0.0.0', port=80), Place(host='127.0.0.1', port=9000), '::1')
    """
    host, colon, port = text.strip().rpartition(":")
    if not colon:
        host, port = ("", text.strip()) if text.strip().isdecimal() else (text.strip(), "8765")
    if not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"{text!r} is no place to listen at", "write HOST:PORT, such as 127.0.0.1:8765")
    return Place(host.strip("[]") or "127.0.0.1", int(port))


def listen(place: Place) -> socket.socket:
    """Begin to listen at a place.

    Raises:
        UsageError: it is taken, or not ours.
    """
    try:
        return _bind(place)
    except OSError as exc:
        raise UsageError(
            f"cannot listen at {place.shown}: {exc.strerror or exc}", "name another, or port 0 for any that is free"
        ) from exc


def _bind(place: Place) -> socket.socket:
    family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((place.host, place.port))
        listening.listen(128)
    except BaseException:
        listening.close()
        raise
    return listening
