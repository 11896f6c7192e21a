"""Sync: the disk compared with the index, file by file.

The differences are written in one transaction, those of a first index in one about every second.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import VaultNotFound
from memory_kb.index.comparing import Difference, Verdict, differences, has_same_bytes, identify, is_fresh
from memory_kb.model import Problem, SyncReport
from memory_kb.notes.vault import Vault, default_status, locate
from memory_kb.notes.walk import EVERYWHERE, Reach, walk
from memory_kb.ports import Index, IndexWriter, KnownFile, SyncWindow
from memory_kb.settings import Settings

if TYPE_CHECKING:
    from memory_kb.index.cache import Passage
    from memory_kb.index.reading import RawNote, ReadNote

Progress = Callable[[int], None]

#: Seconds after which a first index commits what it has: no more than that is lost when it is killed.
_BATCH_SECONDS = 1.0


class Changes(NamedTuple):
    """What `status` reports: the differences by name, and every known problem."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    problems: tuple[Problem, ...]
    files: int

    @property
    def pending(self) -> int:
        return len(self.added) + len(self.changed) + len(self.removed)


def survey(vault: Vault, index: Index, settings: Settings) -> Changes:
    """Compare disk and index without changing either.

    Doubtful files are read to be sure. One that cannot be read is a problem, and no addition.
    """
    from memory_kb.index.reading import explain_unreadable

    problems: list[Problem] = []
    found: dict[Verdict, list[str]] = {verdict: [] for verdict in Verdict}
    for difference in differences(vault, index, settings, problems):
        verdict, file, known = difference
        if file and known and has_same_bytes(file, known, settings):
            continue
        if file and (reason := explain_unreadable(file)):
            problems.append(Problem(file.path, 1, reason))
            if known is None:
                continue
        found[Verdict.CHANGED if verdict is Verdict.DOUBTFUL else verdict].append(difference.path)
    added, changed, removed = (tuple(found[verdict]) for verdict in (Verdict.ADDED, Verdict.CHANGED, Verdict.REMOVED))
    files = index.count_files() + len(added) - len(removed)
    return Changes(added, changed, removed, _sorted({*problems, *index.problems()}), files)


def sync(
    vault: Vault,
    index: Index,
    settings: Settings,
    reach: Reach = EVERYWHERE,
    *,
    rebuild: bool = False,
    progress: Progress | None = None,
) -> SyncReport:
    """Bring the index to what the disk says, in one transaction.

    Readers see it whole or not at all. Only a first index is committed in batches, so that one
    that is interrupted goes on where it was. Call it under the index lock. Files that cannot be
    read are problems and are left out. With the regions of a `reach`, only these are compared; a
    rebuild looks everywhere.

    Raises:
        VaultNotFound: the vault's folder is gone, or went away meanwhile; the index is as it was.
    """
    return _Sync(vault, index, settings, reach, progress).run(rebuild=rebuild)


class _Sync:
    def __init__(self, vault: Vault, index: Index, settings: Settings, reach: Reach, progress: Progress | None) -> None:
        self._vault, self._index, self._settings, self._reach = vault, index, settings, reach
        self._progress = progress
        self._problems: list[Problem] = []
        self._added = self._changed = self._removed = self._unreadable = 0
        self._start_ns = 0
        self._has_fresh = False

    def run(self, *, rebuild: bool) -> SyncReport:
        started, self._start_ns = time.perf_counter(), time.time_ns()
        if rebuild:
            files = walk(self._vault, self._settings.ignore, self._problems)
            self._write((Difference(Verdict.ADDED, file, None) for file in files), rebuild=True)
        else:
            is_first = self._index.generation == 0 or self._index.is_partial
            reach = self._reach._replace(regions=None) if is_first else self._reach
            found = differences(self._vault, self._index, self._settings, self._problems, reach)
            if is_first:
                self._write_first(found)
            else:
                self._write(found, rebuild=False)
        unchanged = self._index.count_files() - self._added - self._changed
        problems = _sorted({*self._problems, *self._index.problems()})
        return SyncReport(
            self._added,
            self._changed,
            self._removed,
            unchanged,
            problems,
            time.perf_counter() - started,
            unreadable=self._unreadable,
        )

    def _write(self, found: Iterable[Difference], *, rebuild: bool) -> None:
        folder = identify(self._vault)
        before, number = self._index.window(), -1
        # The transaction begins before anything is read: SQLite refuses at once, without any wait,
        # a reader who wants to write while somebody else does.
        with self._index.write(rebuild=rebuild) as writer:
            for number, difference in enumerate(found):
                self._apply(writer, difference)
                if self._progress and number % 64 == 0:
                    self._progress(number)
            if identify(self._vault) != folder:
                raise _replaced(self._vault)
            window = SyncWindow(self._start_ns, time.time_ns())
            if rebuild or (number >= 0 and self._reach.regions is None):
                writer.finish(window)
            elif self._has_fresh:
                # Files elsewhere may still be in doubt from the last time that everything was compared.
                writer.finish(SyncWindow(before.start_ns, window.end_ns))

    def _write_first(self, found: Iterable[Difference]) -> None:
        """Write what a first index lacks, and commit about every second."""
        folder = identify(self._vault)
        # What was read before an interruption may have been saved again behind the same time.
        start_ns = self._index.window().start_ns or self._start_ns
        # All are listed before the first commit ends the reading of the index.
        left = iter(enumerate(list(found)))
        is_partial = True
        while is_partial:
            until, is_partial = time.monotonic() + _BATCH_SECONDS, False
            with self._index.write() as writer:
                for number, difference in left:
                    self._apply(writer, difference)
                    if self._progress and number % 64 == 0:
                        self._progress(number)
                    if time.monotonic() >= until:
                        is_partial = True
                        break
                if identify(self._vault) != folder:
                    raise _replaced(self._vault)
                writer.finish(SyncWindow(start_ns, time.time_ns()), is_partial=is_partial)

    def _apply(self, writer: IndexWriter, difference: Difference) -> None:
        from memory_kb.index.reading import hash_bytes, read_file, say_unreadable

        _, file, known = difference
        if file is None:
            self._remove(writer, known)
            return
        try:
            raw = read_file(file, self._settings.index.max_file_bytes)
        except FileNotFoundError:
            self._remove(writer, known)
            return
        except OSError as exc:
            self._problems.append(Problem(file.path, 1, say_unreadable(exc)))
            self._unreadable += 1
            self._remove(writer, known)
            return
        self._has_fresh = self._has_fresh or is_fresh(raw.stat.mtime_ns, SyncWindow(self._start_ns, raw.stat.mtime_ns))
        if known and known.hash == hash_bytes(raw.data):
            writer.touch(raw.stat)
            return
        put_note(writer, self._vault, raw, is_known=known is not None)
        self._added += known is None
        self._changed += known is not None

    def _remove(self, writer: IndexWriter, known: KnownFile | None) -> None:
        if known:
            writer.remove(known.path)
            self._removed += 1


def _replaced(vault: Vault) -> VaultNotFound:
    return VaultNotFound(f"the vault's folder {vault.folder} was replaced by another one", "run the command again")


def _sorted(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda problem: (problem.path, problem.line, problem.message)))


def put_note(writer: IndexWriter, vault: Vault, raw: RawNote, *, is_known: bool = False) -> None:
    """Add what a file says to an index."""
    from memory_kb.index.reading import hash_bytes

    note = _read(vault, raw)
    writer.put(raw.stat, hash_bytes(raw.data), note.problems, note.chunks, is_known=is_known)


def _read(vault: Vault, raw: RawNote) -> ReadNote:
    from memory_kb.index.reading import read_note

    path, is_memory = raw.stat.path, vault.memory is not None
    return read_note(raw, locate(path, is_memory=is_memory), default_status(path, is_memory=is_memory))


def pending_passages(vault: Vault, index: Index, settings: Settings) -> Iterator[Passage]:
    """Yield what would be embedded of the files that the index does not hold as they are."""
    from memory_kb.index.cache import make_passage
    from memory_kb.index.reading import read_file

    for _, file, known in differences(vault, index, settings, []):
        if file is None or (known and has_same_bytes(file, known, settings)):
            continue
        with contextlib.suppress(OSError):
            raw = read_file(file, settings.index.max_file_bytes)
            for chunk in _read(vault, raw).chunks:
                yield make_passage(0, chunk.title if chunk.is_titled else "", chunk.headings, chunk.content)
