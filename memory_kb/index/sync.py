"""Compare the files on disk with the index, and update the index, report the difference or read what differs."""

import contextlib
import math
import os
import time
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import VaultNotFound
from memory_kb.index.port import UNSURE, KnownFile, Progress
from memory_kb.index.sqlite import SqliteIndex
from memory_kb.model import FileStat, Problem, SyncReport
from memory_kb.store.walk import REGIONS, walk, walk_region
from memory_kb.text import hash_of
from memory_kb.vault import Vault

if TYPE_CHECKING:
    from memory_kb.index.note_chunks import RawNote
    from memory_kb.index.sqlite_writer import SqliteWriter
    from memory_kb.index.vectors import EmbeddedPassage


#: Where to look, as `walk_region` has it; everywhere with None.
Regions = tuple[str, ...] | None
#: At most this many doubtful files are read again at each comparison.
_FEW_DOUBTS = 8


class Difference(NamedTuple):
    """A file as it is on disk, in the index, or both, and whether only its content can say that they differ."""

    path: str
    file: FileStat | None
    known: KnownFile | None
    is_doubtful: bool = False


def find_differences(files: Iterable[FileStat], known: Iterable[KnownFile]) -> Iterator[Difference]:
    """Merge two streams sorted by path and yield where they differ.

    Neither is held in memory. A file whose size, time and inode agree is the same, unless it was saved so close to its
    last reading that a second save may hide behind the same time; that one is doubtful, and its content decides.
    """
    remembered = iter(known)
    old = next(remembered, None)
    for file in files:
        path, _, size, mtime, inode = file
        while old is not None and old.path < path:
            yield Difference(old.path, None, old)
            old = next(remembered, None)
        if old is None or old.path != path:
            yield Difference(path, file, None)
            continue
        if mtime != old.mtime_ns or size != old.size or inode != old.inode:
            looks_same = mtime == old.mtime_ns and size == old.size
            yield Difference(path, file, old, is_doubtful=looks_same and old.inode == UNSURE)
        old = next(remembered, None)
    while old is not None:
        yield Difference(old.path, None, old)
        old = next(remembered, None)


def compare_files(
    vault: Vault, index: SqliteIndex, problems: list[Problem], regions: Regions = None
) -> Iterator[Difference]:
    """Compare the vault's files with the index, all of them or those of some regions.

    What the walk could not read is added to `problems`.
    """
    identify_notes(vault)
    for region in REGIONS if regions is None else regions:
        yield from find_differences(walk_region(vault, region, problems), index.known_files(region))


def identify_notes(vault: Vault) -> tuple[int, int]:
    """Return device and inode of the folder of the vault's notes, which differ if another folder replaces it."""
    folder = vault.roots[0].folder
    try:
        found = os.stat(folder)
    except OSError as exc:
        raise VaultNotFound(
            f"the vault's folder {folder} is gone ({exc.strerror})", "put it back, or name another with --vault"
        ) from exc
    return found.st_dev, found.st_ino


def has_changed_files(
    vault: Vault, index: SqliteIndex, regions: Regions = None, problems: list[Problem] | None = None
) -> bool:
    """Return whether any file differs on disk; the walk stops at the first.

    A few doubtful files are read and compared by content. Many count as a difference: the sync that follows records
    them as read, so that they need not be read again.
    """
    found = compare_files(vault, index, [] if problems is None else problems, regions)
    return any(
        not one.is_doubtful or number == _FEW_DOUBTS or not has_same_bytes(vault, one.file, one.known)
        for number, one in enumerate(found)
    )


def read_note_bytes(vault: Vault, file: FileStat) -> "RawNote":
    """Return `note_chunks.read_raw` with the vault's size limit; raise `OSError` if the file cannot be read."""
    from memory_kb.index.note_chunks import read_raw

    return read_raw(file, vault.settings.index.max_file_bytes)


def has_same_bytes(vault: Vault, file: FileStat | None, known: KnownFile | None) -> bool:
    """Return whether the content of a file still has the hash that the index has."""
    if file is None or known is None:
        return False
    try:
        return hash_of(read_note_bytes(vault, file).data) == known.hash
    except OSError:
        return False


def real_differences(
    vault: Vault, index: SqliteIndex, problems: list[Problem], regions: Regions = None
) -> Iterator[Difference]:
    """Yield the files whose content differs; a file with another time but the same hash is left out."""
    found = compare_files(vault, index, problems, regions)
    return (one for one in found if not has_same_bytes(vault, one.file, one.known))


#: Seconds after which a first index commits what it has, and the most that they grow to, as to commit stops all else:
#: no more than that is lost when it is killed.
_BATCH_SECONDS, _MOST_BATCH_SECONDS = 1.0, 4.0


class SyncRun:
    """One comparison of files and index, under the index lock: its counters, and the transactions that it writes in.

    Readers see a run whole or not at all. Only a first index is committed in batches, so that one that is interrupted
    goes on where it was. Files that cannot be read are problems and are left out.
    """

    def __init__(self, vault: Vault, index: SqliteIndex, regions: Regions, progress: Progress | None) -> None:
        self._vault, self._index, self._regions = vault, index, regions
        self._progress = progress
        self._problems: list[Problem] = []
        self._added = self._changed = self._removed = self._unreadable = 0
        self._total = 0

    def run(self, *, rebuild: bool) -> SyncReport:
        """Update the index from the files, of some regions or all, and return what changed; a rebuild looks everywhere.

        Raises:
            VaultNotFound: the vault's folder is gone, or went away meanwhile; the index is as it was.
        """
        started = time.perf_counter()
        is_first = not rebuild and (self._index.generation == 0 or self._index.is_partial)
        found: Iterable[Difference]
        if rebuild:
            found = [Difference(file.path, file, None) for file in walk(self._vault, self._problems)]
        elif is_first:
            found = list(compare_files(self._vault, self._index, self._problems))
        else:
            found = compare_files(self._vault, self._index, self._problems, self._regions)
        self._total = len(found) if isinstance(found, list) else 0
        self._write(found, rebuild=rebuild, is_first=is_first)
        counts = (self._added, self._changed, self._removed)
        unchanged = self._index.count_files() - self._added - self._changed
        problems = tuple(sorted({*self._problems, *self._index.problems()}))
        return SyncReport(*counts, unchanged, problems, time.perf_counter() - started, unreadable=self._unreadable)

    def _write(self, found: Iterable[Difference], *, rebuild: bool, is_first: bool) -> None:
        """Write differences in one transaction; a first index is committed soon, then after twice as long each time."""
        folder, seconds = identify_notes(self._vault), _BATCH_SECONDS
        end = time.monotonic() + seconds if is_first else math.inf
        # The transaction begins before anything is read: SQLite refuses at once, without any wait,
        # a reader who wants to write while somebody else does.
        with self._index.write(rebuild=rebuild) as writer:
            for number, difference in enumerate(found):
                if time.monotonic() >= end:
                    self._check_folder(folder)
                    writer.commit_part()
                    seconds = min(2 * seconds, _MOST_BATCH_SECONDS)
                    end = time.monotonic() + seconds
                self._apply(writer, difference)
                if self._progress and number % 64 == 0:
                    self._progress(number, self._total)
            self._check_folder(folder)

    def _check_folder(self, folder: tuple[int, int]) -> None:
        """Raise an error, which rolls back what is not committed yet, if another folder has replaced the vault's."""
        if identify_notes(self._vault) != folder:
            sentence = f"the vault's folder {self._vault.folder} was replaced by another one"
            raise VaultNotFound(sentence, "run the command again")

    def _apply(self, writer: "SqliteWriter", difference: Difference) -> None:
        path, file, known, _ = difference
        raw = self._read(file) if file else None
        if raw is None:
            if known:
                writer.remove(path)
                self._removed += 1
            return
        if known and known.hash == hash_of(raw.data):
            writer.touch(raw.stat)
            return
        put_note(writer, self._vault, raw, is_known=known is not None)
        self._added += known is None
        self._changed += known is not None

    def _read(self, file: FileStat) -> "RawNote | None":
        """Read a file; None if it is gone meanwhile, or cannot be read."""
        from memory_kb.index.note_chunks import say_unreadable

        try:
            return read_note_bytes(self._vault, file)
        except FileNotFoundError:
            return None
        except OSError as exc:
            self._problems.append(Problem(file.path, 1, say_unreadable(exc)))
            self._unreadable += 1
            return None


def put_note(writer: "SqliteWriter", vault: Vault, raw: "RawNote", *, is_known: bool = False) -> None:
    """Parse a file's bytes and put the result into an index."""
    from memory_kb.index.note_chunks import read_note

    note = read_note(raw, is_memory=vault.memory is not None)
    writer.put(raw.stat, hash_of(raw.data), note.problems, note.chunks, is_known=is_known)


class DiskDifferences(NamedTuple):
    """The differences by name, and every known problem."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    problems: tuple[Problem, ...]


def compare_with_disk(vault: Vault, index: SqliteIndex) -> DiskDifferences:
    """Compare disk and index without changing either. A file that cannot be read is a problem, and no addition."""
    from memory_kb.index.note_chunks import explain_unreadable

    problems: list[Problem] = []
    added, changed, removed = list[str](), list[str](), list[str]()
    for path, file, known, _ in real_differences(vault, index, problems):
        reason = explain_unreadable(file) if file else None
        if reason:
            problems.append(Problem(path, 1, reason))
        if file is None:
            removed.append(path)
        elif known:
            changed.append(path)
        elif not reason:
            added.append(path)
    known_problems = tuple(sorted({*problems, *index.problems()}))
    return DiskDifferences(tuple(added), tuple(changed), tuple(removed), known_problems)


def find_hidden_changes(vault: Vault, index: SqliteIndex, seen: Collection[str]) -> Iterator[str]:
    """Yield the files, except those in `seen`, whose bytes changed while their size and time stayed the same."""
    known = {one.path: one for one in index.known_files()}
    for file in walk(vault, []):
        if file.path not in seen and not has_same_bytes(vault, file, known.get(file.path)):
            yield file.path


def pending_passages(vault: Vault, index: SqliteIndex) -> "Iterator[EmbeddedPassage]":
    """Yield what would be embedded of the files that the index does not hold as they are."""
    from memory_kb.index.note_chunks import read_note
    from memory_kb.index.vectors import make_passages

    files = (one.file for one in real_differences(vault, index, []) if one.file)
    for file in files:
        with contextlib.suppress(OSError):
            for chunk in read_note(read_note_bytes(vault, file), is_memory=vault.memory is not None).chunks:
                yield from make_passages(0, chunk.title if chunk.is_titled else "", chunk.headings, chunk.content)


#: The most files that are read, the newest first, so that a learn after a large checkout takes no second longer; and
#: the most before there is an index.
_MOST_FILES, _MOST_AT_FIRST = 50, 300


class UnindexedNotes:
    """The notes in some regions that differ from an index, in an index of their own in memory.

    `index` has the newest of them, all of them where it `is_whole`; of the paths in `outdated` the other index says
    something else, or they are gone.
    """

    def __init__(self, vault: Vault, index: SqliteIndex) -> None:
        self._vault, self._other = vault, index
        self.index = SqliteIndex(vault.settings.index.tokenizer)
        self.outdated: set[str] = set()
        self.is_whole = True

    def read(self, regions: Regions) -> bool:
        """Read what differs in some regions; return whether anything does."""
        import heapq

        changed = real_differences(self._vault, self._other, [], regions)
        found = [one for one in changed if one.path not in self.outdated]
        self.outdated.update(one.path for one in found)
        files = [one.file for one in found if one.file]
        most = _MOST_FILES if self._other.generation else _MOST_AT_FIRST
        self.is_whole = self.is_whole and len(files) <= most
        with self.index.write() as writer:
            for file in heapq.nlargest(most, files, key=lambda file: file.mtime_ns):
                with contextlib.suppress(OSError):
                    put_note(writer, self._vault, read_note_bytes(self._vault, file))
        return bool(found)
