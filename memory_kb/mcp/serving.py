"""Serving until told to end: what both transports share."""

from __future__ import annotations

import os
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

from memory_kb.mcp.talk import say
from memory_kb.serving.lanes import Address, Lanes
from memory_kb.serving.watching import Watcher

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

_SESSION = "MEMORY_KB_SESSION"
#: Seconds that what is being written gets to finish at the end; a killed run is completed by the next.
_GRACE_SECONDS = 1.5


class Offer(NamedTuple):
    """What is served, and how: the vault, which tools, and whether to keep its index up to date."""

    vault: str | None = None
    home: str | None = None
    profile: str = "default"
    is_watching: bool = True


class Service:
    """A server with its lanes and its watcher, from the first request to the end.

    What is shown is written down under the session of `MEMORY_KB_SESSION`; a server outside any
    has one of its own, which it counts when it ends.
    """

    def __init__(self, offer: Offer) -> None:
        self.offer = offer
        environ = dict(os.environ)
        self._is_own_session = not environ.get(_SESSION)
        self.session = environ.setdefault(_SESSION, "") or f"mcp-{uuid.uuid4().hex[:12]}"
        environ[_SESSION] = self.session
        vault, home = (
            os.path.abspath(os.path.expanduser(name)) if name else None for name in (offer.vault, offer.home)
        )
        address = Address(vault, home, environ)
        self._lanes = Lanes(address)
        self._watcher = Watcher(address, say)

    def make_server(self) -> Server[Any]:
        """Return the SDK's server for this service; this loads the SDK."""
        from memory_kb.mcp.server import make_server

        return make_server(self._lanes, self.offer.profile, self.session, self.wake)

    def wake(self) -> None:
        """Begin to watch, if that is wanted and has not begun."""
        if self.offer.is_watching:
            self._watcher.begin()

    def end(self) -> None:
        """Count what was shown, and end the lanes and the watcher, within a few seconds."""
        self._watcher.end(0.0)
        counts = self._is_own_session and self._lanes.has_shown
        self._lanes.close(_GRACE_SECONDS, (lambda kb: kb.reinforce(self.session)) if counts else None)
        self._watcher.end(_GRACE_SECONDS)
