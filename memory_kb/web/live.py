"""Notify open pages that the vault has changed."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from memory_kb.errors import MemoryKBError

#: Seconds between two looks at the state of the index, while a page is open that wants to know.
_LOOK_SECONDS = 0.5
#: Seconds after which a connection that has nothing to say shows that it is alive.
_PING_SECONDS = 15.0
_MOST_LISTENERS = 64


class Live:
    """Streams of server-sent events, one to each open page: `changed` with the number of the index's state.

    Whoever keeps the index, this process or another, the number says that it has changed.
    """

    def __init__(self, read_generation: Callable[[], Awaitable[int]]) -> None:
        self._read = read_generation
        self._listeners = 0
        self._is_over = False
        self._generation: int | None = None
        self._looked = 0.0

    @property
    def is_full(self) -> bool:
        """Whether there are as many open pages as are served."""
        return self._listeners >= _MOST_LISTENERS

    def end(self) -> None:
        """End all streams; this may be called from any thread."""
        self._is_over = True

    async def stream(self) -> AsyncIterator[bytes]:
        """Yield the events for one page, until it is closed or the server ends."""
        self._listeners += 1
        known, spoke = None, time.monotonic()
        try:
            yield b"retry: 1000\n\n"
            while not self._is_over:
                generation = await self._look()
                if generation != known:
                    known, spoke = generation, time.monotonic()
                    yield f"event: changed\ndata: {generation}\n\n".encode()
                elif time.monotonic() - spoke > _PING_SECONDS:
                    spoke = time.monotonic()
                    yield b": still here\n\n"
                await asyncio.sleep(_LOOK_SECONDS)
        finally:
            self._listeners -= 1

    async def _look(self) -> int | None:
        """Return the state of the index, read once for all pages."""
        if time.monotonic() - self._looked >= _LOOK_SECONDS:
            self._looked = time.monotonic()
            # A vault that is being moved is there again in a moment.
            with contextlib.suppress(MemoryKBError, OSError):
                self._generation = await self._read()
        return self._generation
