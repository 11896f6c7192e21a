"""Notify open pages that the vault has changed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from memory_kb.errors import MemoryKBError

#: Seconds between two looks at the state of the index, while a page is open that wants to know.
_LOOK_SECONDS = 1.0
#: Seconds after which a connection that has nothing to say shows that it is alive.
_PING_SECONDS = 15.0
_MOST_LISTENERS = 64


class Live:
    """Streams of server-sent events, one to each open page: `changed` with the number of the index's state.

    Whoever keeps the index, this process or another, the number says that it has changed.
    """

    def __init__(self, read_generation: Callable[[], Awaitable[int]]) -> None:
        self._read = read_generation
        self._listeners: set[asyncio.Queue[int | None]] = set()
        self._looking: asyncio.Task[None] | None = None
        self._nudge = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_over = False
        self._known: int | None = None

    @property
    def is_full(self) -> bool:
        """Whether there are as many open pages as are served."""
        return len(self._listeners) >= _MOST_LISTENERS

    def look(self) -> None:
        """Look at once; this may be called from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._nudge.set)

    def end(self) -> None:
        """End all streams; this may be called from any thread."""
        self._is_over = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        if self._looking:
            self._looking.cancel()
        for queue in self._listeners:
            queue.put_nowait(None)

    async def stream(self) -> AsyncIterator[bytes]:
        """Yield the events for one page, until it is closed or the server ends."""
        self._loop = asyncio.get_running_loop()
        queue: asyncio.Queue[int | None] = asyncio.Queue()
        self._listeners.add(queue)
        if self._known is not None:
            queue.put_nowait(self._known)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._keep_looking())
        try:
            yield b"retry: 1000\n\n"
            while not self._is_over:
                try:
                    generation = await asyncio.wait_for(queue.get(), _PING_SECONDS)
                except TimeoutError:
                    yield b": still here\n\n"
                    continue
                if generation is None:
                    return
                yield f"event: changed\ndata: {generation}\n\n".encode()
        finally:
            self._listeners.discard(queue)

    async def _keep_looking(self) -> None:
        while self._listeners:
            # A vault that is being moved is there again in a moment.
            with contextlib.suppress(MemoryKBError, OSError):
                found = await self._read()
                if found != self._known:
                    self._known = found
                    self._tell(found)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._nudge.wait(), _LOOK_SECONDS)
            self._nudge.clear()

    def _tell(self, generation: int) -> None:
        for queue in self._listeners:
            queue.put_nowait(generation)
