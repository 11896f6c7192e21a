"""Observe file events of notes with watchdog. An event only says that something changed; some systems send none."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import cast

from watchdog import events, observers

from memory_kb.index.vault_index import QUESTIONS
from memory_kb.regular_files import MACHINE
from memory_kb.vault import Vault

#: Seconds that threads are given to end.
_END_SECONDS = 2.0
#: Observers that hold a descriptor for every file, or the whole tree in memory.
_UNFIT = ("KqueueObserver", "PollingObserver")
#: File systems that other machines write to, which send no or few events to this one; `fakeowner` is Docker Desktop's.
_REMOTE = ("9p", "afs", "ceph", "cifs", "fakeowner", "fuse.", "lustre", "nfs", "smb", "virtiofs", "vboxsf")
_MOUNTS = "/proc/self/mounts"
_KINDS: list[type[events.FileSystemEvent]] = [
    events.FileCreatedEvent,
    events.FileModifiedEvent,
    events.FileMovedEvent,
    events.FileDeletedEvent,
    events.DirCreatedEvent,
    events.DirMovedEvent,
    events.DirDeletedEvent,
]

#: Called, from a thread of the observer, with the question of a search, or with None after a change of notes.
Listener = Callable[[str | None], None]


class FileEvents:
    """The events of all folders of notes, from watchdog's observer for this platform.

    Raises:
        OSError: the folders cannot be watched.
        RuntimeError: this system announces no changes here.
    """

    def __init__(self, vault: Vault, listen: Listener) -> None:
        self._observer = observers.Observer()
        self._log = _LossHandler(listen)
        logging.getLogger("watchdog").addHandler(self._log)
        warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning)
        try:
            if type(self._observer).__name__ in _UNFIT:
                raise RuntimeError("this system announces changes of single files only")  # noqa: TRY301 - as others do
            for root in vault.roots:
                if root.folder.is_dir():
                    self._observe(root.folder, frozenset(), listen)
                if root.top_notes:
                    self._observe(root.top_notes[0].parent, frozenset(note.name for note in root.top_notes), listen)
            self._observer.start()
        except (OSError, RuntimeError):
            self.close()
            raise

    def _observe(self, folder: Path, names: frozenset[str], listen: Listener) -> None:
        """Observe a few names in a folder, or else all that is below it."""
        if kind := remote_kind(folder):
            raise RuntimeError(f"{folder} is on {kind}, which does not announce changes")
        place = os.path.realpath(folder)
        handler = _Handler(place, names, listen)
        self._observer.schedule(handler, place, recursive=not names, event_filter=_KINDS)

    def is_alive(self) -> bool:
        """Return whether events still come."""
        return all(thread.is_alive() for thread in (self._observer, *self._observer.emitters))

    def close(self) -> None:
        """End the observer and its threads."""
        logging.getLogger("watchdog").removeHandler(self._log)
        if self._observer.is_alive():
            self._observer.stop()
            self._observer.join(_END_SECONDS)
        else:
            self._observer.unschedule_all()


class _Handler(events.FileSystemEventHandler):
    def __init__(self, place: str, names: frozenset[str], listen: Listener) -> None:
        self._place, self._names, self._listen = place, names, listen

    def dispatch(self, event: events.FileSystemEvent) -> None:
        """Report a change of notes; hidden folders, such as that of the index, hold questions of searches only."""
        for path in filter(None, (event.src_path, event.dest_path)):
            parts = os.path.relpath(os.fsdecode(cast("str | bytes", path)), self._place).split(os.sep)
            if parts[-3:-1] == [MACHINE, QUESTIONS]:
                if event.event_type == "created" and not self._names:
                    self._listen(parts[-1])
            elif self._is_of_notes(event, parts):
                self._listen(None)

    def _is_of_notes(self, event: events.FileSystemEvent, parts: list[str]) -> bool:
        if self._names:
            return parts[-1] in self._names
        # Some systems do not say that what was deleted or moved was a folder.
        may_be_folder = event.is_directory or event.event_type in ("deleted", "moved")
        is_hidden = any(part.startswith(".") for part in parts)
        return not is_hidden and (may_be_folder or parts[-1].lower().endswith(".md"))


class _LossHandler(logging.Handler):
    """A listener to watchdog's log: a warning there means events that it could not deliver."""

    def __init__(self, listen: Listener) -> None:
        super().__init__(logging.WARNING)
        self._listen = listen

    def emit(self, record: logging.LogRecord) -> None:  # noqa: ARG002 - any warning counts
        self._listen(None)


# What watchdog says while it ends is not for standard error.
logging.getLogger("watchdog").addHandler(logging.NullHandler())


def remote_kind(folder: Path) -> str | None:
    """Return the kind of a file system that other machines write to, None for a local one or where it is unknown."""
    if sys.platform != "linux":
        return None
    place, found = os.path.realpath(folder), ("", "")
    with contextlib.suppress(OSError, ValueError), open(_MOUNTS, encoding="utf-8") as mounts:
        for line in mounts:
            _, point, kind, *_ = line.split(" ")
            point = point.replace("\\040", " ")
            if f"{place}/".startswith(f"{point.rstrip('/')}/") and len(point) >= len(found[0]):
                found = (point, kind)
    return found[1] if found[1].startswith(_REMOTE) else None
