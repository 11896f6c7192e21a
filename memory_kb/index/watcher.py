"""The service that keeps an index up to date while files change.

Events only say where to look; what changed is always found by comparing disk and index.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable
from typing import NamedTuple

from memory_kb.errors import MemoryKBError, VaultNotFound
from memory_kb.index.watch import Audience, Watch, Watched
from memory_kb.notes.machine import prepare_machine
from memory_kb.notes.vault import MACHINE, Vault

#: Seconds between two looks for a vault that is gone.
_LOOK_SECONDS = 1.0
#: Seconds before another attempt at what failed.
_SHORTEST_DELAY, _LONGEST_DELAY = 0.3, 60.0


class Door(NamedTuple):
    """How a watcher gets to its vault, whenever what stands behind it was replaced.

    Attributes:
        locate: tells what the vault is now, quickly; raises VaultNotFound.
        open: opens it with its settings and an index of the watcher's own.
    """

    locate: Callable[[], Vault]
    open: Callable[[], Watched]


class Watcher:
    """A watch over a vault that outlives moves, deletions and replacements of what it watches."""

    def __init__(self, door: Door, audience: Audience, stop: threading.Event, *, poll: bool | None = None) -> None:
        self._door, self._audience, self._stop, self._poll = door, audience, stop, poll
        self._had_memory = False
        self._delay = 0.0
        self._complaint: str | None = None

    def run(self) -> None:
        """Keep the index up to date until told to stop.

        Raises:
            MemoryKBError: the vault cannot even be opened for the first time.
        """
        cause = "start"
        while not self._stop.is_set():
            watch = self._begin(is_first=cause == "start")
            if watch is None:
                self._stop.wait(self._delay)
                continue
            with contextlib.closing(watch):
                watch.run(cause)
            cause = "reopened"

    def _begin(self, *, is_first: bool) -> Watch | None:
        """Open the vault and its index; if that fails, say so and return None."""
        try:
            watched = self._open()
        except VaultNotFound as exc:
            if is_first:
                raise
            self._delay = _LOOK_SECONDS
            self._complain(f"{exc}; waiting for it")
            return None
        except (MemoryKBError, OSError, sqlite3.Error) as exc:
            if is_first:
                raise
            # What fails once may just have been in the middle of something.
            if self._delay:
                self._complain(f"{exc}; trying again")
            self._delay = min(_LONGEST_DELAY, max(_SHORTEST_DELAY, 3 * self._delay))
            return None
        if self._complaint:
            self._audience.on_notice(f"{watched.vault.folder} can be watched again")
        self._delay, self._complaint = 0.0, None
        self._had_memory = watched.vault.memory is not None
        return Watch(watched, self._find, self._audience, self._stop, poll=self._poll)

    def _open(self) -> Watched:
        self._find()
        watched = self._door.open()
        if self._had_memory and not watched.vault.memory:
            raise VaultNotFound(f"{watched.vault.folder / 'memory'} is gone")
        try:
            watched.keeper.use(lambda _: None)
        except BaseException:
            watched.keeper.close()
            raise
        return watched

    def _complain(self, sentence: str) -> None:
        if sentence != self._complaint:
            self._complaint = sentence
            self._audience.on_notice(sentence)

    def _find(self) -> Vault:
        """Return what the vault is now.

        One whose `memory/` is gone has not become a plain folder of notes.

        Raises:
            VaultNotFound: it is gone.
        """
        vault = self._door.locate()
        if self._had_memory and not vault.memory:
            memory = vault.folder / "memory"
            if memory.is_dir():
                # Its machine folder was all that made it a vault.
                with contextlib.suppress(OSError):
                    prepare_machine(memory / MACHINE)
                vault = self._door.locate()
            if not vault.memory:
                raise VaultNotFound(f"{memory} is gone")
        return vault
