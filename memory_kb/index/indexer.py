"""Sync: the disk compared with the index, file by file.

The differences are written in one transaction.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from memory_kb.index.comparing import Difference, Verdict, differences
from memory_kb.model import FileStat, Problem, SyncReport
from memory_kb.notes.vault import Vault, default_status, locate
from memory_kb.notes.walk import walk
from memory_kb.ports import Index, IndexWriter, KnownFile, SyncWindow
from memory_kb.settings import Settings

Progress = Callable[[int], None]


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

    Doubtful files are read to be sure.
    """
    problems: list[Problem] = []
    found: dict[Verdict, list[str]] = {verdict: [] for verdict in Verdict}
    for difference in differences(vault, index, settings, problems):
        verdict, file, known = difference
        if file and known and _has_same_bytes(file, known, settings):
            continue
        found[Verdict.CHANGED if verdict is Verdict.DOUBTFUL else verdict].append(difference.path)
    added, changed, removed = (tuple(found[verdict]) for verdict in (Verdict.ADDED, Verdict.CHANGED, Verdict.REMOVED))
    files = index.count_files() + len(added) - len(removed)
    return Changes(added, changed, removed, _sorted({*problems, *index.problems()}), files)


def _has_same_bytes(file: FileStat, known: KnownFile, settings: Settings) -> bool:
    from memory_kb.index.reading import hash_bytes, read_file

    try:
        return hash_bytes(read_file(file, settings.index.max_file_bytes).data) == known.hash
    except OSError:
        return False


def sync(vault: Vault, index: Index, settings: Settings, *, rebuild: bool = False, progress: Progress | None = None) -> SyncReport:
    """Bring the index to what the disk says, in one transaction.

    Readers see it whole or not at all. Call it under the index lock. Files that cannot be read
    are problems and are left out.
    """
    return _Sync(vault, index, settings, progress).run(rebuild=rebuild)


class _Sync:
    def __init__(self, vault: Vault, index: Index, settings: Settings, progress: Progress | None) -> None:
        self._vault, self._index, self._settings = vault, index, settings
        self._progress = progress
        self._problems: list[Problem] = []
        self._added = self._changed = self._removed = self._unreadable = 0

    def run(self, *, rebuild: bool) -> SyncReport:
        started, start_ns = time.perf_counter(), time.time_ns()
        if rebuild:
            files = walk(self._vault, self._settings.ignore, self._problems)
            self._write((Difference(Verdict.ADDED, file, None) for file in files), start_ns, rebuild=True)
        else:
            found = differences(self._vault, self._index, self._settings, self._problems)
            first = next(found, None)
            if first:
                self._write(itertools.chain((first,), found), start_ns, rebuild=False)
        unchanged = self._index.count_files() - self._added - self._changed
        problems = _sorted({*self._problems, *self._index.problems()})
        return SyncReport(self._added, self._changed, self._removed, unchanged, problems, time.perf_counter() - started, unreadable=self._unreadable)

    def _write(self, found: Iterator[Difference], start_ns: int, *, rebuild: bool) -> None:
        with self._index.write(rebuild=rebuild) as writer:
            for number, difference in enumerate(found):
                self._apply(writer, difference)
                if self._progress and number % 64 == 0:
                    self._progress(number)
            writer.finish(SyncWindow(start_ns, time.time_ns()))

    def _apply(self, writer: IndexWriter, difference: Difference) -> None:
        from memory_kb.index.reading import hash_bytes, read_file, read_note

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
            self._problems.append(Problem(file.path, 1, f"cannot be read: {exc.strerror}; left out"))
            self._unreadable += 1
            self._remove(writer, known)
            return
        digest = hash_bytes(raw.data)
        if known and known.hash == digest:
            writer.touch(raw.stat)
            return
        is_memory = self._vault.memory is not None
        note = read_note(raw, locate(file.path, is_memory=is_memory), default_status(file.path, is_memory=is_memory))
        writer.put(raw.stat, digest, note.problems, note.chunks, is_known=known is not None)
        self._added += known is None
        self._changed += known is not None

    def _remove(self, writer: IndexWriter, known: KnownFile | None) -> None:
        if known:
            writer.remove(known.path)
            self._removed += 1


def _sorted(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda problem: (problem.path, problem.line, problem.message)))
