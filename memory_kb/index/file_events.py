"""Observe file events, and decide when to read the changed notes.

An event only says that something changed. Watchdog's observer for the platform reports them; some systems and file
systems report none.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from memory_kb.index.watcher_lock import find_question
from memory_kb.vault import Vault

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent, FileSystemEventHandler
    from watchdog.observers.api import BaseObserver

#: A burst, such as a git checkout, is waited for as long as this.
_BURST_SECONDS = 5.0
#: Seconds that threads are given to end.
_END_SECONDS = 2.0
#: Observers that hold a descriptor for every file, or the whole tree in memory.
_UNFIT = ("KqueueObserver", "PollingObserver")
#: File systems that other machines write to, which this one is not told of.
_REMOTE = ("9p", "afs", "ceph", "cifs", "fuse.", "lustre", "nfs", "smb", "virtiofs", "vboxsf")


class ChangeSignal:
    """Whether files changed, noted by one thread and waited for by another."""

    def __init__(self, debounce: float) -> None:
        self._debounce = debounce
        self._news = threading.Event()
        self._first: float | None = None
        self._last = 0.0
        self._questions: deque[str] = deque()

    def add(self) -> None:
        """Note that a file changed."""
        self._last = time.monotonic()
        if self._first is None:
            self._first = self._last
            self._news.set()

    def ask(self, question: str) -> None:
        """Note that somebody asks whether the index holds all changes before."""
        self._questions.append(question)
        self._news.set()

    def take_questions(self) -> list[str]:
        """Return the questions since the last call."""
        return [self._questions.popleft() for _ in range(len(self._questions))]

    def wait(self, seconds: float) -> None:
        """Wait for the first change or question since the last wait, at most so long."""
        self._news.wait(seconds)
        self._news.clear()

    def ripens_in(self) -> float:
        """Return in how many seconds the changes should be looked at; infinity if there are none.

        They wait for a pause of `debounce`, which may never come while somebody saves on and on.
        """
        first = self._first
        if first is None:
            return float("inf")
        return min(self._last + self._debounce, first + max(_BURST_SECONDS, self._debounce)) - time.monotonic()

    def take(self) -> bool:
        """Begin anew; return whether there were changes."""
        if self._first is None:
            return False
        self._first = None
        return True


class Observer:
    """The platform's observer of watchdog, on all folders of notes.

    Attributes:
        has_lost: set when events were lost.

    Raises:
        OSError: the folders cannot be watched.
        RuntimeError: this system announces no changes here.
    """

    def __init__(self, vault: Vault, changes: ChangeSignal) -> None:
        from watchdog import events, observers

        kinds: list[type[FileSystemEvent]] = [
            events.FileCreatedEvent,
            events.FileModifiedEvent,
            events.FileMovedEvent,
            events.FileDeletedEvent,
            events.DirCreatedEvent,
            events.DirMovedEvent,
            events.DirDeletedEvent,
        ]
        for root in vault.roots:
            kind = remote_kind(root.folder)
            if kind:
                raise RuntimeError(f"{root.folder} is on {kind}, which does not announce changes")
        self._observer: BaseObserver | None = None
        self.has_lost = threading.Event()
        self._log = _LossHandler(self.has_lost)
        # The null handler stays: what watchdog says while it ends is not for standard error.
        log = logging.getLogger("watchdog")
        if not log.handlers:
            log.addHandler(logging.NullHandler())
        log.addHandler(self._log)
        warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning)
        try:
            self._observer = observers.Observer()
            if type(self._observer).__name__ in _UNFIT:
                raise RuntimeError("this system announces changes of single files only")  # noqa: TRY301 - as others do
            for handler, place in _handlers(vault, changes):
                self._observer.schedule(
                    cast("FileSystemEventHandler", handler),
                    place,
                    recursive=not handler.names,
                    event_filter=kinds,
                )
            self._observer.start()
        except (OSError, RuntimeError) as exc:
            self.close()
            reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else exc
            raise RuntimeError(f"file events are not available ({reason})") from exc

    def is_alive(self) -> bool:
        """Return whether events still come."""
        threads = (self._observer, *self._observer.emitters) if self._observer else ()
        return all(thread.is_alive() for thread in threads)

    def close(self) -> None:
        """End the observer and its threads."""
        logging.getLogger("watchdog").removeHandler(self._log)
        if self._observer and self._observer.is_alive():
            self._observer.stop()
            self._observer.join(_END_SECONDS)
        elif self._observer:
            self._observer.unschedule_all()


def _handlers(vault: Vault, changes: ChangeSignal) -> Iterable[tuple[_Handler, str]]:
    for root in vault.roots:
        if root.folder.is_dir():
            place = os.path.realpath(root.folder)
            yield _Handler(place, frozenset(), changes), place
        if root.top_notes:
            beside = os.path.realpath(root.top_notes[0].parent)
            yield _Handler(beside, frozenset(note.name for note in root.top_notes), changes), beside


class _Handler(NamedTuple):
    """What looks at the events of a folder: of a few names in it, or else of all notes below it."""

    place: str
    names: frozenset[str]
    changes: ChangeSignal

    def dispatch(self, event: FileSystemEvent) -> None:
        """Note a change that concerns notes; hidden folders, such as the index itself, hold none."""
        for path in filter(None, (event.src_path, event.dest_path)):
            parts = os.path.relpath(os.fsdecode(cast("str | bytes", path)), self.place).split(os.sep)
            question = find_question(parts)
            if question and not self.names and event.event_type == "created":
                self.changes.ask(question)
            if self.names:
                is_note = parts[-1] in self.names
            else:
                # Some systems do not say that what was deleted or moved was a folder.
                may_be_folder = event.is_directory or event.event_type in ("deleted", "moved")
                is_hidden = any(part.startswith(".") for part in parts)
                is_note = not is_hidden and (may_be_folder or parts[-1].lower().endswith(".md"))
            if is_note:
                self.changes.add()


class _LossHandler(logging.Handler):
    """A listener to watchdog's log: what it warns of there are events that it could not deliver."""

    def __init__(self, has_lost: threading.Event) -> None:
        super().__init__(logging.WARNING)
        self._has_lost = has_lost

    def emit(self, record: logging.LogRecord) -> None:  # noqa: ARG002 - any warning counts
        self._has_lost.set()


def remote_kind(folder: Path) -> str | None:
    """Return the kind of a file system that other machines write to, None for a local one or where it is unknown."""
    if sys.platform != "linux":
        return None
    place, found = os.path.realpath(folder), ("", "")
    with contextlib.suppress(OSError, ValueError), open("/proc/self/mounts", encoding="utf-8") as mounts:
        for line in mounts:
            _, point, kind, *_ = line.split(" ")
            point = point.replace("\\040", " ")
            if f"{place}/".startswith(f"{point.rstrip('/')}/") and len(point) >= len(found[0]):
                found = (point, kind)
    return found[1] if found[1].startswith(_REMOTE) else None
