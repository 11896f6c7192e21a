"""Say what disk and index differ in, and read what is not indexed yet, without changing either."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.index.database import MEMORY
from memory_kb.index.sqlite import SqliteIndex
from memory_kb.index.sync import Regions, has_same_bytes, put_note, read_note_bytes, real_differences
from memory_kb.model import Problem
from memory_kb.store.walk import walk
from memory_kb.vault import Vault

if TYPE_CHECKING:
    from memory_kb.index.vectors import EmbeddedPassage


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


def pending_passages(vault: Vault, index: SqliteIndex) -> Iterator[EmbeddedPassage]:
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
        self.index = SqliteIndex(MEMORY, vault.settings.index.tokenizer)
        self.outdated: set[str] = set()
        self.is_whole = True

    def close(self) -> None:
        """Close the index in memory."""
        self.index.close()

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
