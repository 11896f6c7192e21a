"""Signals on Linux: one inotify watch for every folder that a walk lists, and for no other.

A recursive watch of the library would also take hidden and ignored folders: our own index, `.git`,
`node_modules`, whole worktrees. Here the walk registers what it is about to list; since it does so
before listing, no change can fall between the two.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import threading
import warnings
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.index.marks import Marks
from memory_kb.index.signals import UPHEAVALS, Neighbours, neighbours, readable
from memory_kb.model import Region
from memory_kb.notes.vault import Vault

if TYPE_CHECKING:
    from watchdog.observers.inotify_c import InotifyEvent, WatchCallback, WatchDescriptor

_END_SECONDS = 2.0
_VANISHED = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_LIMITS = {errno.ENOSPC: "; fs.inotify.max_user_watches is too low"}


class _Folder(NamedTuple):
    path: str
    location: str


class InotifySignals:
    """Signals from inotify, through watchdog's reader of it.

    Raises:
        OSError: there are no more inotify instances.
    """

    def __init__(self, vault: Vault, marks: Marks) -> None:
        from watchdog.observers.inotify_c import CallbackId, InotifyConstants, InotifyFD, Mask

        logging.getLogger("watchdog").addHandler(logging.NullHandler())
        # A folder that is found under another name keeps its watch; the library mentions it.
        warnings.filterwarnings("ignore", "Callback with id", RuntimeWarning)
        kinds = InotifyConstants
        content = (
            kinds.IN_MODIFY | kinds.IN_ATTRIB | kinds.IN_CLOSE_WRITE | kinds.IN_MOVE | kinds.IN_CREATE | kinds.IN_DELETE
        )
        self._itself = kinds.IN_DELETE_SELF | kinds.IN_MOVE_SELF | kinds.IN_UNMOUNT
        self._is_folder, self._moved_away = kinds.IN_ISDIR, kinds.IN_MOVED_FROM
        self._mask = Mask(content | kinds.IN_DELETE_SELF | kinds.IN_MOVE_SELF | kinds.IN_ONLYDIR | kinds.IN_EXCL_UNLINK)
        self._name_callback = CallbackId
        self._marks = marks
        self._roots = {str(root.folder) for root in vault.roots}
        self._folders: dict[WatchDescriptor, _Folder] = {}
        self._watches: dict[str, WatchDescriptor] = {}
        self._lock = threading.Lock()
        self._failure: str | None = None
        self._has_lost = False
        self._inotify = InotifyFD()
        self._inotify.start()
        self._others = [_Neighbourhood(beside, marks) for beside in neighbours(vault)]
        for other in self._others:
            self._add(os.path.realpath(other.neighbours.folder), other)

    def enter(self, path: str, location: str) -> None:
        # A folder that replaced the one we watch here is announced by its parent, and entered then.
        # One that may not be read the library would register under no descriptor at all.
        if location in self._watches or self._failure or not os.access(location, os.R_OK):
            return
        with self._lock:
            watch = self._add(location, self)
            if watch is not None:
                self._forget(watch)
                self._folders[watch] = _Folder(path, location)
                self._watches[location] = watch

    def _add(self, location: str, callback: WatchCallback) -> WatchDescriptor | None:
        try:
            return self._inotify.add_callback(
                os.fsencode(location), self._mask, callback, self._name_callback(id(callback))
            )
        except OSError as exc:
            if exc.errno not in _VANISHED:
                self._failure = f"{location} cannot be watched ({exc.strerror}{_LIMITS.get(exc.errno or 0, '')})"
                self._marks.alarm()
            return None

    def failure(self) -> str | None:
        if not self._failure and not self._inotify.is_alive():
            self._failure = "the reader of file events has died"
        return self._failure

    def has_lost_events(self) -> bool:
        return self._has_lost

    def close(self) -> None:
        self._inotify.stop()
        self._inotify.join(_END_SECONDS)

    # -- called by the reader of inotify, in its own thread ------------------------------------

    def on_event(self, event: InotifyEvent) -> None:
        """Mark what an event puts in doubt."""
        with self._lock:
            folder = self._folders.get(event.wd)
        if folder is None:
            return
        if event.mask & self._itself:
            if folder.location in self._roots:
                self._marks.alarm()
        elif folder.location in self._roots and os.fsdecode(event.name) in UPHEAVALS:
            self._marks.alarm()
        elif not event.name or event.name[:1] == b".":
            return
        elif event.mask & self._is_folder:
            location = os.path.join(folder.location, os.fsdecode(event.name))
            if event.mask & self._moved_away:
                self._leave(location)
            self._marks.add(Region(f"{folder.path}{readable(event.name)}/", location, is_deep=True), event.name)
        elif event.name[-3:].lower() == b".md":
            self._marks.add(Region(folder.path, folder.location), event.name)

    def _leave(self, location: str) -> None:
        """Stop watching a folder that was moved; where it still has notes, the walk enters it again."""
        below = location + os.sep
        with self._lock:
            moved = [watch for place, watch in self._watches.items() if place == location or place.startswith(below)]
            for watch in moved:
                self._forget(watch)
            with contextlib.suppress(OSError):
                self._inotify.remove_callbacks([(watch, self._name_callback(id(self))) for watch in moved])

    def _forget(self, watch: WatchDescriptor) -> None:
        folder = self._folders.pop(watch, None)
        if folder and self._watches.get(folder.location) == watch:
            del self._watches[folder.location]

    def on_watch_deleted(self, wd: WatchDescriptor) -> None:
        """Forget a folder that is gone."""
        with self._lock:
            self._forget(wd)

    def on_queue_overflow(self) -> None:
        """Note that events were lost, and with them perhaps where the watched folders are."""
        self._has_lost = True
        self._marks.alarm()


class _Neighbourhood:
    """The watch of a folder in which only a few names matter."""

    def __init__(self, neighbours: Neighbours, marks: Marks) -> None:
        self.neighbours = neighbours
        self._marks = marks

    def on_event(self, event: InotifyEvent) -> None:
        """Mark what a name puts in doubt."""
        if os.fsdecode(event.name) not in self.neighbours.names:
            return
        if self.neighbours.region:
            self._marks.add(self.neighbours.region, event.name)
        else:
            self._marks.alarm()

    def on_watch_deleted(self, wd: WatchDescriptor) -> None:
        """Leave it to the watcher's own look at its folders."""

    def on_queue_overflow(self) -> None:
        """Leave it to the signals, which are told as well."""
