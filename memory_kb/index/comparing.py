"""Disk against index: which files differ, told in one pass that reads next to none."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple

from memory_kb.errors import VaultNotFound
from memory_kb.model import FileStat, Problem
from memory_kb.notes.vault import GLOBAL_PREFIX, Vault
from memory_kb.notes.walk import EVERYWHERE, Reach, walk_region, walk_root
from memory_kb.ports import Index, KnownFile, SyncWindow
from memory_kb.settings import Settings

#: A file saved again within one tick of the file system's clock looks the same; nanoseconds.
_TICK = 50_000_000
_COARSE_TICK = 2_000_000_000
#: So many doubtful files are read again at each look.
_FEW_DOUBTS = 8


class Verdict(Enum):
    """How a file stands differently on disk and in the index."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"
    DOUBTFUL = "doubtful"


class Difference(NamedTuple):
    """A file, on disk, in the index, or both, and the verdict on it."""

    verdict: Verdict
    file: FileStat | None
    known: KnownFile | None

    @property
    def path(self) -> str:
        """The file's path in output."""
        return (self.file or self.known or _NOWHERE).path


_NOWHERE = FileStat("", "", 0, 0, 0)


def compare(files: Iterable[FileStat], known: Iterable[KnownFile], window: SyncWindow) -> Iterator[Difference]:
    """Merge two streams sorted by path and yield where they differ.

    Neither is held in memory. A file whose size, time and inode agree is the same, unless it was
    saved so close to its last reading that a second save may hide behind the same time; that one
    is doubtful, and its content decides.
    """
    remembered = iter(known)
    old = next(remembered, None)
    doubt_from = window.start_ns - _COARSE_TICK
    for file in files:
        path, _, size, mtime, inode = file
        while old is not None and old.path < path:
            yield Difference(Verdict.REMOVED, None, old)
            old = next(remembered, None)
        if old is None or old.path != path:
            yield Difference(Verdict.ADDED, file, None)
            continue
        if mtime != old.mtime_ns or size != old.size or inode != old.inode:
            yield Difference(Verdict.CHANGED, file, old)
        elif mtime >= doubt_from and is_fresh(mtime, window):
            yield Difference(Verdict.DOUBTFUL, file, old)
        old = next(remembered, None)
    while old is not None:
        yield Difference(Verdict.REMOVED, None, old)
        old = next(remembered, None)


def is_fresh(mtime_ns: int, window: SyncWindow) -> bool:
    """Tell whether a file read in a window may have been saved again behind the same time.

    Example:
        >>> window = SyncWindow(5_000_000_000, 6_000_000_000)
        >>> is_fresh(4_990_000_000, window), is_fresh(4_900_000_000, window), is_fresh(4_000_000_000, window)
        (True, False, True)
    """
    if not window.start_ns - _COARSE_TICK <= mtime_ns <= window.end_ns + _TICK:
        return False
    return mtime_ns >= window.start_ns - _TICK or mtime_ns % 1_000_000_000 == 0


def differences(
    vault: Vault, index: Index, settings: Settings, problems: list[Problem], reach: Reach = EVERYWHERE
) -> Iterator[Difference]:
    """Compare the vault's files with the index.

    What the walk could not read is added to `problems`.

    Raises:
        VaultNotFound: the vault's folder is gone, which is not the same as an empty one.
    """
    identify(vault)
    window = index.window()
    if reach.regions is not None:
        for region in reach.regions:
            files = walk_region(vault, region, settings.ignore, problems, reach)
            yield from compare(files, index.known_in(region), window)
        return
    is_home_apart = len(vault.roots) > 1
    for root in vault.roots:
        known = index.known_files(is_global=root.prefix == GLOBAL_PREFIX)
        yield from compare(walk_root(vault, root, settings.ignore, problems, reach), known, window)
    if not is_home_apart:
        yield from compare((), index.known_files(is_global=True), window)


def identify(vault: Vault) -> tuple[int, int]:
    """Return what tells the folder of the vault's notes from another one in its place.

    Raises:
        VaultNotFound: it is gone.
    """
    folder = vault.roots[0].folder
    try:
        found = os.stat(folder)
    except OSError as exc:
        raise VaultNotFound(
            f"the vault's folder {folder} is gone ({exc.strerror})", "put it back, or name another with --vault"
        ) from exc
    return found.st_dev, found.st_ino


def needs_writing(
    vault: Vault, index: Index, settings: Settings, reach: Reach = EVERYWHERE, problems: list[Problem] | None = None
) -> bool:
    """Tell whether any file stands differently on disk.

    The walk stops at the first. A few doubtful files are read to be sure; many are better written
    down as read, so that nobody has to do it again.
    """
    for number, (verdict, file, known) in enumerate(
        differences(vault, index, settings, [] if problems is None else problems, reach)
    ):
        if verdict is not Verdict.DOUBTFUL or number == _FEW_DOUBTS or not has_same_bytes(file, known, settings):
            return True
    return False


def has_same_bytes(file: FileStat | None, known: KnownFile | None, settings: Settings) -> bool:
    """Tell whether a file still says what the index has read of it."""
    from memory_kb.index.reading import hash_bytes, read_file

    if file is None or known is None:
        return False
    try:
        return hash_bytes(read_file(file, settings.index.max_file_bytes).data) == known.hash
    except OSError:
        return False
