"""What folders held when they were last listed, for looks that follow each other closely.

A folder whose own times and number are the same holds the same names, so that only the state of
each file is to be asked for. It is the untracked cache of git, with two safeguards: a folder that
changed so close to its listing that a second change may hide behind the same time is listed again,
and so is one whose listing is older than some seconds, for file systems that do not keep the times
of folders.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, TypeAlias

from memory_kb.model import FileStat

#: A file, or a folder as its path and its location.
Item: TypeAlias = FileStat | tuple[str, str]

#: How long before its listing a folder must have changed last: the tick of a file system's clock, and that
#: of one which counts in seconds.
_TICK_NS, _COARSE_NS = 50_000_000, 2_000_000_000
_SECOND_NS = 1_000_000_000
#: For how many seconds a listing is good.
_GOOD_FOR = 10.0
#: So many files and folders are remembered, some eight megabytes of them.
_MOST = 20_000


class FolderState(NamedTuple):
    """What tells that the names in a folder are the same; `at` is when it was asked for, on the clock of files."""

    device: int
    inode: int
    mtime_ns: int
    ctime_ns: int
    at: int

    def is_same(self, other: FolderState) -> bool:
        """Tell whether nothing was added to the folder or taken out of it in between."""
        return self[:4] == other[:4]

    @property
    def is_settled(self) -> bool:
        """Whether the last change lies so far back that the next one will show.

        Example:
            >>> [FolderState(0, 0, changed, changed, 5_000_000_000).is_settled for changed in (2_000_000_000, 4_000_000_000, 4_900_000_001)]
            [True, False, True]
        """
        last = max(self.mtime_ns, self.ctime_ns)
        return last < self.at - (_TICK_NS if last % _SECOND_NS else _COARSE_NS)


class _Listing(NamedTuple):
    state: FolderState
    items: list[Item]
    until: float


class Listings:
    """The listings of folders, by their locations.

    Args:
        clock: the time in nanoseconds, on the clock of files.
        timer: seconds that never go back.
    """

    def __init__(self, clock: Callable[[], int] = time.time_ns, timer: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._timer = clock, timer
        self._held: dict[str, _Listing] = {}
        self._count = 0

    def state_of(self, folder: str) -> FolderState | None:
        """Return the state of a folder, None where there is none to be had."""
        try:
            found = os.stat(folder)
        except OSError:
            return None
        return FolderState(found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns, self._clock())

    def keep(self, folder: str, state: FolderState | None, items: list[Item]) -> None:
        """Remember what a folder held that was in this state just before it was listed."""
        if not state or not state.is_settled:
            return
        now, room = self._timer(), len(items) + 1
        if self._count + room > _MOST:
            self._held = {name: one for name, one in self._held.items() if one.until > now}
            self._count = sum(len(one.items) + 1 for one in self._held.values())
        if self._count + room <= _MOST:
            self._held[folder] = _Listing(state, items, now + _GOOD_FOR)
            self._count += room

    def recall(self, folder: str) -> list[Item] | None:
        """Return what a folder holds, with the state of its files as it is now; None where it must be listed."""
        held = self._held.get(folder)
        if held is None:
            return None
        state = self.state_of(folder) if self._timer() < held.until else None
        if state is not None and held.state.is_same(state):
            with suppress(OSError):
                held.items[:] = [_renewed(item) if isinstance(item, FileStat) else item for item in held.items]
                return held.items
        if self._held.pop(folder, None):
            self._count -= len(held.items) + 1
        return None


def _renewed(file: FileStat) -> FileStat:
    """Return a file as it is now.

    Raises:
        OSError: it is gone, or cannot be looked at.
    """
    found = os.lstat(file.location)
    if found.st_mtime_ns == file.mtime_ns and found.st_size == file.size and found.st_ino == file.inode:
        return file
    return FileStat.of(file.path, file.location, found)
