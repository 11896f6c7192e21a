"""The entries of the index as values, of which only those of changed files are read again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.filters import EVERYTHING

if TYPE_CHECKING:
    from memory_kb.index.sqlite import SqliteIndex
    from memory_kb.learning.memories import Memory
    from memory_kb.model import Filters
    from memory_kb.ports import StoredMemory

#: Of more changed files than this all is read again; so many different filters are remembered.
_MANY, _MOST_FILTERS = 200, 8


class CachedEntries(NamedTuple):
    """Some entries as they are stored, and as values, in path order."""

    stored: tuple[StoredMemory, ...]
    memories: tuple[Memory, ...]


class _Held(NamedTuple):
    """What was read at a state of the index: the files with their hashes, and the entries of each that pass."""

    generation: int
    hashes: Mapping[str, str]
    files: Mapping[str, CachedEntries]
    entries: CachedEntries


class EntryCache:
    """What was read of the entries, by the filters they passed."""

    def __init__(self) -> None:
        self._held: dict[Filters, _Held] = {}

    def read(self, index: SqliteIndex, filters: Filters) -> CachedEntries:
        """Return the entries that pass the filters.

        What an index holds of a file follows from its text and its path, so that the entries of a
        file with the same hash are the same.
        """
        held, generation = self._held.get(filters), index.generation
        whole = self._held.get(EVERYTHING)
        if (
            held is None
            and whole
            and whole.generation == generation
            and filters._replace(kinds=EVERYTHING.kinds) == EVERYTHING
        ):
            return _of_kinds(whole.entries, frozenset(filters.kinds))
        if held is None or held.generation != generation:
            held = self._held[filters] = _read_on(index, filters, generation, held)
            for old in list(self._held)[:-_MOST_FILTERS]:
                del self._held[old]
        return held.entries


def _of_kinds(entries: CachedEntries, kinds: frozenset[str]) -> CachedEntries:
    pairs = [pair for pair in zip(entries.stored, entries.memories, strict=True) if pair[1].kind in kinds]
    return CachedEntries(tuple(stored for stored, _ in pairs), tuple(memory for _, memory in pairs))


def _read_on(index: SqliteIndex, filters: Filters, generation: int, held: _Held | None) -> _Held:
    hashes = index.file_hashes()
    changed = [path for path, digest in hashes.items() if held.hashes.get(path) != digest] if held else []
    if held is None or len(changed) > _MANY:
        files = {path: _make(group) for path, group in groupby(index.memories(filters), lambda one: one.entry.source)}
    else:
        files = {path: entries for path, entries in held.files.items() if path in hashes}
        for path in changed:
            files[path] = _make(index.memories(filters, path))
    parts = [files[path] for path in sorted(files)]
    entries = CachedEntries(
        tuple(one for part in parts for one in part.stored), tuple(one for part in parts for one in part.memories)
    )
    return _Held(generation, hashes, files, entries)


def _make(stored: Iterable[StoredMemory]) -> CachedEntries:
    from memory_kb.learning.memories import make_memory

    found = tuple(stored)
    return CachedEntries(found, tuple(map(make_memory, found)))
