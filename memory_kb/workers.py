"""The threads of a server: workers with a knowledge base each, and a watcher of the vault."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from memory_kb.errors import MemoryKBError, VaultBusy
from memory_kb.kb import KnowledgeBase
from memory_kb.store.open_vault import keep_memory
from memory_kb.text import on_one_line
from memory_kb.vault import Vault, hold_lock, identify_vault

_T = TypeVar("_T")
#: Seconds that what is being written gets to finish at the end; a killed run is completed by the next.
GRACE_SECONDS = 1.5


class NamedVault:
    """Which vault, and as whom: the folders as they were named, and the environment."""

    def __init__(self, vault: str | None, home: str | None, environ: dict[str, str]) -> None:
        self.vault, self.home, self.environ = vault, home, environ
        self._last: Vault | None = None

    @classmethod
    def absolute(cls, vault: str | None, home: str | None) -> NamedVault:
        """Return a vault whose folders, named from here, stay the same wherever the process goes."""
        vault, home = (os.path.abspath(os.path.expanduser(name)) if name else None for name in (vault, home))
        return cls(vault, home, dict(os.environ))

    def open(self, *, trust_watcher: bool = False) -> KnowledgeBase:
        """Open the vault; it is an error if it had a `memory/` before, and has none now."""
        if self._last:
            keep_memory(self._last)
        kb = KnowledgeBase.open(self.vault, self.home, environ=self.environ, trust_watcher=trust_watcher)
        self._last = kb.vault
        return kb


class Worker:
    """One thread with a knowledge base of its own, opened when there is first something to do."""

    def __init__(self, named: NamedVault, name: str, *, trust_watcher: bool = False) -> None:
        self._named = named
        self._trust_watcher = trust_watcher
        self._kb: KnowledgeBase | None = None
        self._opened_as: object = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._going: set[Future[Any]] = set()

    def submit(self, work: Callable[[KnowledgeBase], _T]) -> Future[_T]:
        """Call `work` with the knowledge base in this worker's thread, after the work before it."""
        future = self._thread.submit(lambda: work(self._fresh()))
        self._going.add(future)
        future.add_done_callback(self._going.discard)
        return future

    async def ask(self, work: Callable[[KnowledgeBase], _T]) -> _T:
        """Call `work` as `submit` does, and wait for its result; cancelled work is not begun."""
        return await asyncio.wrap_future(self.submit(work))

    def close(self, patience: float, last: Callable[[KnowledgeBase], object] | None = None) -> None:
        """Begin nothing more but `last`, and wait up to `patience` seconds for what is being done."""
        going = {future for future in set(self._going) if not future.cancel()}
        if last:
            going.add(self.submit(last))
        with contextlib.suppress(RuntimeError):  # it was closed before
            self._thread.submit(self._close)
        self._thread.shutdown(wait=False)
        wait(going, patience)

    @property
    def has_opened(self) -> bool:
        """Whether there is a knowledge base to ask."""
        return self._kb is not None

    def _fresh(self) -> KnowledgeBase:
        """Return the knowledge base, opened anew if its settings or the vault itself were replaced."""
        if self._kb is not None and self._opened_as != identify_vault(self._kb.vault):
            self._close()
        if self._kb is None:
            self._kb = self._named.open(trust_watcher=self._trust_watcher)
            self._opened_as = identify_vault(self._kb.vault)
        return self._kb

    def _close(self) -> None:
        if self._kb is not None:
            self._kb.close()
            self._kb = None


#: Held by the one server that watches, or is about to: a watch shows that it is there after its first comparison alone.
_SERVER_LOCK = "watch.lock"
#: Seconds between two looks whether the watcher of the vault has ended.
_LOOK_SECONDS = 2.0
#: Seconds that the client has to itself, so that it gets its lists before the vault is looked through.
_PAUSE_SECONDS = 0.5


def make_say(command: str) -> Callable[[str], None]:
    """Return a function that writes a sentence of a server to standard error, if anybody still reads it."""

    def say(sentence: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"memory-kb {command}: {on_one_line(sentence)}\n")
            sys.stderr.flush()

    return say


class VaultWatcher:
    """A watch over a vault in a thread of its own, where nobody else watches it."""

    def __init__(self, named: NamedVault, say: Callable[[str], None]) -> None:
        self._named, self._say = named, say
        self._stop = threading.Event()
        self._beginning = threading.Lock()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Begin, unless it has begun or ended already; may be called while another thread ends it."""
        with self._beginning:
            if not self._thread and not self._stop.is_set():
                self._thread = threading.Thread(target=self._run, name="memory-kb watch", daemon=True)
                self._thread.start()

    def end(self, patience: float) -> None:
        """End it, and wait up to `patience` seconds for it."""
        self._stop.set()
        with self._beginning:
            thread = self._thread
        if thread:
            thread.join(patience)

    def _run(self) -> None:
        self._stop.wait(_PAUSE_SECONDS)
        while not self._stop.is_set():
            self._watch_when_free()
            self._stop.wait(_LOOK_SECONDS)

    def _watch_when_free(self) -> None:
        """Watch until stopped, unless somebody else does."""
        from memory_kb.index.vault_index import has_watcher

        try:
            with self._named.open() as kb, hold_lock(kb.vault.machine / _SERVER_LOCK, 0.0):
                if not has_watcher(kb.vault.machine):
                    kb.watch(on_notice=self._say, stop=self._stop)
        except VaultBusy:
            pass
        except (MemoryKBError, OSError) as exc:
            self._say(f"not watching: {exc}")
            self._stop.wait(60.0)


class Workers:
    """The worker of what reads, the one of reads that take long, the worker of what writes, and the watcher."""

    def __init__(self, named: NamedVault, say: Callable[[str], None], *, trust_watcher: bool = False) -> None:
        self.reading = Worker(named, "memory-kb reads", trust_watcher=trust_watcher)
        self.slow_reading = Worker(named, "memory-kb slow reads", trust_watcher=trust_watcher)
        self.writing = Worker(named, "memory-kb writes")
        self.watcher = VaultWatcher(named, say)

    def close(self, last: Callable[[KnowledgeBase], object] | None = None, patience: float = GRACE_SECONDS) -> None:
        """Begin nothing more but `last`, and wait up to `patience` seconds for what is being written."""
        self.watcher.end(0.0)
        self.reading.close(0.0)
        self.slow_reading.close(0.0)
        self.writing.close(patience, last)
        self.watcher.end(GRACE_SECONDS)
