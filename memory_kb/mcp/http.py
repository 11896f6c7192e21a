"""The server over streamable HTTP, for clients of this machine; with a token, for others."""

from __future__ import annotations

import signal

from memory_kb.errors import UsageError
from memory_kb.mcp.serving import Offer, Service
from memory_kb.mcp.talk import say
from memory_kb.serving.place import Place, listen

_PATH = "/mcp"
#: Larger than any arguments that are read, so that what is too large is told by the tool.
_MAX_BODY = 32 * 1024 * 1024


def serve_http(offer: Offer, place: Place, token: str | None) -> int:
    """Serve any number of clients until told to end; return the exit code.

    Raises:
        UsageError: other machines could reach it and there is no token, or the place is taken.
    """
    if not place.is_loopback and not token:
        raise UsageError(
            f"{place.shown} can be reached by other machines, and there is no token",
            "set MEMORY_KB_MCP_TOKEN, or pass --token",
        )
    listening = listen(place)
    import uvicorn

    from memory_kb.serving.gate import Gate

    service = Service(offer)
    bound = Place(place.host, listening.getsockname()[1])
    app = service.make_server().streamable_http_app(
        streamable_http_path=_PATH, host=place.host, max_request_body_size=_MAX_BODY
    )
    server = uvicorn.Server(
        uvicorn.Config(
            Gate(app, bound.host, token),
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=2,
        )
    )
    say(f"listening at http://{bound.shown}{_PATH}")
    service.wake()
    # Uvicorn raises the signal that ended it once more, for whoever was there before it.
    signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        server.run(sockets=[listening])
    except KeyboardInterrupt:
        return 130
    finally:
        service.end()
    return 0
