"""The watcher beside a server: of all servers of one vault, one keeps the index up to date.

The system gives the lock to the next when the one that watches ends, however it ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from memory_kb.errors import MemoryKBError, VaultBusy
from memory_kb.locks import hold_lock
from memory_kb.reports import WatchReport
from memory_kb.serving.lanes import Address

_LOCK = "watch.lock"
#: Seconds between two looks whether the server that watches has ended.
_LOOK_SECONDS = 2.0
#: Seconds that the client has to itself, so that it gets its lists before the vault is looked through.
_PAUSE_SECONDS = 0.5


class Watcher:
    """A watch over a vault in a thread of its own, by one server at a time."""

    def __init__(
        self, address: Address, say: Callable[[str], None], on_batch: Callable[[WatchReport], None] | None = None
    ) -> None:
        self._address, self._say, self._on_batch = address, say, on_batch
        self._stop = threading.Event()
        self._ended = threading.Event()
        self._ended.set()
        self._has_begun = False

    def begin(self) -> None:
        """Begin, unless it has begun already."""
        if not self._has_begun:
            self._has_begun = True
            self._ended.clear()
            threading.Thread(target=self._run, name="memory-kb watch", daemon=True).start()

    def end(self, patience: float) -> None:
        """End it, and wait up to `patience` seconds for it."""
        self._has_begun = True
        self._stop.set()
        self._ended.wait(patience)

    def _run(self) -> None:
        try:
            self._stop.wait(_PAUSE_SECONDS)
            while not self._stop.is_set():
                self._watch_when_free()
                self._stop.wait(_LOOK_SECONDS)
        finally:
            self._ended.set()

    def _watch_when_free(self) -> None:
        """Watch until told to stop, unless another server does."""
        try:
            with self._address.open() as kb, hold_lock(kb.vault.machine / _LOCK, 0.0):
                kb.watch(self._on_batch, on_notice=self._say, stop=self._stop)
        except VaultBusy:
            pass
        except (MemoryKBError, OSError) as exc:
            self._say(f"not watching: {exc}")
            self._stop.wait(60.0)
