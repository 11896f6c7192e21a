"""What the rooms ask of storage.

None of them knows which engine stands behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple, Protocol

from memory_kb.model import FileStat, Filters, Problem

if TYPE_CHECKING:
    from memory_kb.entry import Chunk


class KnownFile(NamedTuple):
    """A file as the index remembers it."""

    path: str
    size: int
    mtime_ns: int
    inode: int
    hash: str


class SyncWindow(NamedTuple):
    """When the last writing sync read the disk, in nanoseconds of wall time."""

    start_ns: int
    end_ns: int


class Candidate(NamedTuple):
    """A chunk that fits a query, with what its score depends on.

    `key` orders chunks as they stand: two chunks of one entry are neighbours in the text exactly
    when their keys differ by one. `rank` is the engine's BM25, better is more negative.
    """

    key: int
    rank: float
    importance: float
    reinforcement_count: int
    seen: str | None
    status: str
    scope: str
    is_superseded: int
    title: str
    headings: str


class StoredChunk(NamedTuple):
    """A chunk as it was indexed, with its key."""

    key: int
    source: str
    position: int
    part: int
    entry_id: str
    kind: str
    type: str
    status: str
    scope: str
    char_offset: int
    line: int
    end_line: int
    title: str
    headings: str
    content: str


class StoredEntry(NamedTuple):
    """An entry as the index knows it.

    `line` is where its text begins, `metadata` is JSON or None.
    """

    entry_id: str
    title: str
    kind: str
    type: str
    scope: str
    status: str
    source: str
    line: int
    end_line: int
    tags: str
    dated: str | None
    metadata: str | None


class IndexWriter(Protocol):
    """The changes of one sync; they become visible together or not at all."""

    def put(self, file: FileStat, digest: str, problems: Sequence[tuple[int, str]], chunks: Sequence[Chunk], *, is_known: bool) -> None:
        """Add a file, replacing what is there of it."""

    def touch(self, file: FileStat) -> None:
        """Note that a file looks different but says the same."""

    def remove(self, path: str) -> None:
        """Take a file and its chunks out."""

    def finish(self, window: SyncWindow) -> None:
        """Record when the disk was read."""


class Index(Protocol):
    """A store of chunks that can be searched."""

    @property
    def generation(self) -> int:
        """A number that grows by one with every visible change.

        It is 0 before the first.
        """

    def window(self) -> SyncWindow:
        """Return when the disk was last read for writing."""

    def known_files(self, *, is_global: bool) -> Iterator[KnownFile]:
        """Yield the files of the global home, or those of the vault, by path."""

    def count_files(self) -> int:
        """Return the number of files in the index."""

    def problems(self) -> list[Problem]:
        """Return what was wrong with the files when they were read."""

    def count_cut(self) -> int:
        """Return the number of files that are larger than what was indexed of them."""

    def write(self, *, rebuild: bool = False) -> AbstractContextManager[IndexWriter]:
        """Begin a change.

        Leaving the context by an exception leaves the index as it was.
        """

    def match(self, expression: str, weights: Sequence[float], filters: Filters, limit: int) -> list[Candidate]:
        """Return the best chunks for a full-text expression, best first."""

    def ranks(self, expression: str, weights: Sequence[float], keys: Sequence[int]) -> dict[int, float]:
        """Return the BM25 of an expression in those of the chunks that it matches."""

    def newest(self, filters: Filters, limit: int) -> list[Candidate]:
        """Return chunks that pass the filters, without a query; their rank is 0."""

    def chunks(self, keys: Iterable[int]) -> dict[int, StoredChunk]:
        """Return the chunks with these keys."""

    def entries(self, filters: Filters) -> Iterator[StoredEntry]:
        """Yield the entries that pass the filters, in path order."""

    def entries_with_id(self, prefix: str) -> list[StoredEntry]:
        """Return the entries whose id starts with `prefix`."""

    def scopes_of(self, ids: Iterable[str], filters: Filters) -> Mapping[str, frozenset[str]]:
        """Return at which scopes each of these ids stands.

        Only the jobs and tasks that the filters show count.
        """

    def contents(self, entry: StoredEntry) -> str:
        """Return the indexed text of an entry, its chunks joined by blank lines."""
