"""Signals where the system watches whole trees by itself: macOS and Windows."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from memory_kb.index.marks import Marks
from memory_kb.index.signals import UPHEAVALS, Neighbours, neighbours, readable
from memory_kb.model import Region
from memory_kb.notes.vault import Root, Vault

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent, FileSystemEventHandler

_END_SECONDS = 2.0
#: Observers that hold a descriptor for every file, or the whole tree in memory.
_UNFIT = ("KqueueObserver", "PollingObserver")


class ObserverSignals:
    """Signals from watchdog's observer for the platform.

    Raises:
        OSError: the folders cannot be watched.
        RuntimeError: the platform has no observer that is fit for many files.
    """

    def __init__(self, vault: Vault, marks: Marks) -> None:
        from watchdog import events
        from watchdog.observers import Observer

        files = (
            events.FileCreatedEvent,
            events.FileModifiedEvent,
            events.FileClosedEvent,
            events.FileMovedEvent,
            events.FileDeletedEvent,
        )
        folders = (events.DirCreatedEvent, events.DirModifiedEvent, events.DirMovedEvent, events.DirDeletedEvent)
        self._observer = Observer()
        if type(self._observer).__name__ in _UNFIT:
            raise RuntimeError("this system announces changes of single files only")
        self._losses = _LossHandler(marks)
        logging.getLogger("watchdog").addHandler(logging.NullHandler())
        logging.getLogger("watchdog").addHandler(self._losses)
        for handler, place in _handlers(vault, marks):
            self._observer.schedule(
                cast("FileSystemEventHandler", handler),
                place,
                recursive=isinstance(handler, _Tree),
                event_filter=[*files, *folders],
            )
        self._observer.start()

    def enter(self, path: str, location: str) -> None:
        """Leave it to the system, which watches whole trees."""

    def failure(self) -> str | None:
        threads = (self._observer, *self._observer.emitters)
        return None if all(thread.is_alive() for thread in threads) else "the reader of file events has died"

    def has_lost_events(self) -> bool:
        return self._losses.has_lost

    def close(self) -> None:
        logging.getLogger("watchdog").removeHandler(self._losses)
        self._observer.stop()
        self._observer.join(_END_SECONDS)


def _handlers(vault: Vault, marks: Marks) -> Iterator[tuple[_Tree | _Neighbourhood, str]]:
    for root in vault.roots:
        if root.folder.is_dir():
            place = os.path.realpath(root.folder)
            yield _Tree(root, place, marks), place
    for beside in neighbours(vault):
        yield _Neighbourhood(beside, marks), os.path.realpath(beside.folder)


class _LossHandler(logging.Handler):
    """A listener to the library's log: what it warns of there are events that it could not deliver."""

    def __init__(self, marks: Marks) -> None:
        super().__init__(logging.WARNING)
        self._marks = marks
        self.has_lost = False

    def emit(self, record: logging.LogRecord) -> None:  # noqa: ARG002 - any warning counts
        self.has_lost = True
        self._marks.alarm()


class _Tree:
    """The watch of a root with all that is below it, hidden and ignored folders too."""

    def __init__(self, root: Root, place: str, marks: Marks) -> None:
        self._root, self._place, self._marks = root, place, marks

    def dispatch(self, event: FileSystemEvent) -> None:
        for path in (event.src_path, event.dest_path):
            inner = os.path.relpath(os.fsdecode(path), self._place) if path else ""
            names = inner.split(os.sep) if inner != "." else []
            if (
                len(names) == 1
                and names[0] in UPHEAVALS
                and not (event.is_directory and event.event_type == "modified")
            ):
                self._marks.alarm()
            elif inner and not any(name[:1] == "." for name in names):
                self._mark(names, event)

    def _mark(self, names: list[str], event: FileSystemEvent) -> None:
        if event.event_type == "modified" and event.is_directory:
            self._add(names, "", is_deep=False)
        elif names:
            if names[-1][-3:].lower() == ".md":
                self._add(names[:-1], names[-1], is_deep=False)
            # Some systems do not say that what was deleted was a folder.
            if event.is_directory or event.event_type in ("deleted", "moved"):
                self._add(names, names[-1], is_deep=True)
        else:
            self._marks.alarm()

    def _add(self, names: list[str], name: str, *, is_deep: bool) -> None:
        path = self._root.prefix + "".join(f"{readable(part)}/" for part in names)
        self._marks.add(Region(path, str(self._root.folder.joinpath(*names)), is_deep), name)


class _Neighbourhood:
    """The watch of a folder in which only a few names matter."""

    def __init__(self, neighbours: Neighbours, marks: Marks) -> None:
        self._neighbours, self._marks = neighbours, marks

    def dispatch(self, event: FileSystemEvent) -> None:
        for path in (event.src_path, event.dest_path):
            name = os.path.basename(os.fsdecode(path))
            if name not in self._neighbours.names:
                continue
            if self._neighbours.region:
                self._marks.add(self._neighbours.region, name)
            else:
                self._marks.alarm()
