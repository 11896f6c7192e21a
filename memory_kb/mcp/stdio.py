"""The server over standard input and output, for a host that starts it."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

from memory_kb.mcp.serving import Offer, Service
from memory_kb.mcp.talk import say

_CTRL_C = 130
#: Seconds between two looks whether the process that started us still lives.
_LOOK_SECONDS = 2.0


def serve_stdio(offer: Offer) -> int:
    """Serve one client until it closes its end, dies, or tells us to end; return the exit code."""
    import anyio

    return anyio.run(_serve, Service(offer))


async def _serve(service: Service) -> int:
    import anyio
    from mcp.server.stdio import stdio_server

    from memory_kb.mcp.lines import Lines

    server = service.make_server()
    orphaned = anyio.Event()
    _watch_parent(orphaned)
    async with anyio.create_task_group() as group:
        group.start_soon(_leave_on_signal, service)
        group.start_soon(_leave_when, orphaned, service)
        try:
            async with stdio_server(stdin=Lines()) as (reading, writing):  # type: ignore[arg-type]
                await server.run(reading, writing, server.create_initialization_options())
        except* (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            say("the client has gone")
        await _leave(service, 0)
    return 0


async def _leave_on_signal(service: Service) -> None:
    import anyio

    codes = {signal.SIGTERM: 0, signal.SIGINT: _CTRL_C}
    if os.name == "nt":
        return
    with anyio.open_signal_receiver(*codes) as heard:
        async for number in heard:
            await _leave(service, codes[number])


async def _leave_when(event: Any, service: Service) -> None:
    await event.wait()
    say("the process that started it has ended")
    await _leave(service, 0)


async def _leave(service: Service, code: int) -> None:
    """End the process; nothing that still waits, such as for standard input, is to keep it."""
    import anyio

    await anyio.to_thread.run_sync(service.end)
    os._exit(code)


def _watch_parent(orphaned: Any) -> None:
    """Set an event when the process that started us is gone, though our input was not closed."""
    import asyncio

    if os.name == "nt":
        return
    loop, parent = asyncio.get_running_loop(), os.getppid()
    pause = threading.Event()

    def look() -> None:
        while os.getppid() == parent:
            pause.wait(_LOOK_SECONDS)
        loop.call_soon_threadsafe(orphaned.set)

    threading.Thread(target=look, name="memory-kb parent", daemon=True).start()
