"""The lines of standard input, as they come.

The SDK's own reading waits in a thread that ends only when the input does, and drops a message
whose text has half a surrogate pair in it, as a client in JavaScript may send; its sender would
wait for an answer for ever.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
from typing import Self

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def mend(line: bytes) -> str:
    """Return a line as text; halves of surrogate pairs become question marks.

    Example:
        >>> mend(rb'{"text": "a\\ud800b \\ud83d\\ude00"}') == '{"text": "a?b \\U0001f600"}'
        True
        >>> mend(b"no json")
        'no json'
    """
    if _SURROGATE.search(line):
        try:
            return json.dumps(json.loads(line), ensure_ascii=False).encode("utf-8", "replace").decode()
        except (ValueError, RecursionError):
            pass
    return line.decode("utf-8", "replace")


class Lines:
    """Standard input as an asynchronous series of lines.

    From now on descriptor 0 is empty, so that no child can take what is meant for us.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._read: asyncio.Queue[str | None] = asyncio.Queue(16)
        self._wire = os.dup(0)
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        os.close(empty)
        threading.Thread(target=self._feed, name="memory-kb stdin", daemon=True).start()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        line = await self._read.get()
        if line is None:
            raise StopAsyncIteration
        return line

    def _feed(self) -> None:
        try:
            with open(self._wire, "rb") as wire:
                for line in wire:
                    self._put(mend(line))
        except OSError:
            pass
        self._put(None)

    def _put(self, line: str | None) -> None:
        try:
            asyncio.run_coroutine_threadsafe(self._read.put(line), self._loop).result()
        except RuntimeError:  # the loop has ended
            return
