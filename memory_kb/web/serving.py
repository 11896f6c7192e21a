"""Serving the page until told to end."""

from __future__ import annotations

import os
import signal
import sys
from typing import NamedTuple

from memory_kb.errors import UsageError
from memory_kb.serving.lanes import Address
from memory_kb.serving.place import Place, listen
from memory_kb.serving.watching import Watcher

#: Seconds that what is being written gets to finish at the end; a killed run is completed by the next.
_GRACE_SECONDS = 1.5
_LEAST_TOKEN = 12
#: Of the two styles that force-graph 1.52.0 writes into the page, and of the nothing that stands there before.
STYLE_HASHES = (
    "jtRRMYY2VbEXuBKbHvqM1/fPT8vazFrEooXdvwUK4y8=",
    "9xjtvxMT1ApHlgn9ohbh2FNfvK5Tqtzy94BjfXBeMSY=",
    "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
)


class Offer(NamedTuple):
    """What is served, and how."""

    vault: str | None
    home: str | None
    place: Place
    token: str | None = None
    is_opening: bool = False
    is_watching: bool = True


def serve(offer: Offer) -> int:
    """Serve the page until told to end; return the exit code.

    Raises:
        UsageError: other machines could reach it and there is no token, or the place is taken.
        VaultNotFound: there is no such folder.
        InvalidSettings: a configuration file cannot be used.
    """
    if not offer.place.is_loopback and not offer.token:
        raise UsageError(
            f"{offer.place.shown} can be reached by other machines, and there is no token",
            "set MEMORY_KB_SERVE_TOKEN, or pass --token",
        )
    if offer.token is not None and len(offer.token) < _LEAST_TOKEN:
        raise UsageError(
            f"the token is shorter than {_LEAST_TOKEN} characters",
            "take a longer one, such as from `openssl rand -hex 16`",
        )
    vault, home = (os.path.abspath(os.path.expanduser(name)) if name else None for name in (offer.vault, offer.home))
    address = Address(vault, home, dict(os.environ))
    with address.open() as kb:  # so that a vault that cannot be opened is told here
        name = kb.vault.folder.name or str(kb.vault.folder)
    listening = listen(offer.place)
    import uvicorn

    from memory_kb.web.app import make_app
    from memory_kb.web.desk import Desk, House
    from memory_kb.web.door import Door

    bound = Place(offer.place.host, listening.getsockname()[1])
    desk = Desk(address, House(name, bound.is_loopback, os.environ.get("MEMORY_KB_EDITOR") or None))
    watcher = Watcher(address, _say, lambda _: desk.live.look())

    class Server(uvicorn.Server):
        """Ends the streams when it is told to end, so that nothing keeps it."""

        def handle_exit(self, sig: int, frame: object) -> None:
            desk.live.end()
            super().handle_exit(sig, frame)  # type: ignore[arg-type]

    door = Door(make_app(desk), bound.host, bound.port, offer.token, STYLE_HASHES)
    config = uvicorn.Config(
        door,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        lifespan="off",
        timeout_graceful_shutdown=1,
    )
    _say(f"the page is at http://{bound.shown}/")
    desk.warm()
    if offer.is_watching:
        watcher.begin()
    if offer.is_opening:
        import webbrowser

        webbrowser.open(f"http://{bound.shown}/")
    # Uvicorn raises the signal that ended it once more, for whoever was there before it.
    signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        Server(config).run(sockets=[listening])
    except KeyboardInterrupt:
        return 130
    finally:
        watcher.end(0.0)
        desk.close(_GRACE_SECONDS)
        watcher.end(_GRACE_SECONDS)
    return 0


def _say(sentence: str) -> None:
    sys.stderr.write(f"memory-kb serve: {sentence}\n")
    sys.stderr.flush()
