"""The protocols of an index and of vectors, which every engine implements.

Callers do not know which engine is behind.
"""

# Annotations are evaluated here: to parse them from text takes a named tuple twice as long to define.
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from memory_kb.model import Filters, Problem, StoredEntry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memory_kb.providers.base import Vectors


#: Called with how many files or texts are done, and of how many; 0 where that is not known.
Progress = Callable[[int, int], None]

#: Words of the problem of a file that was indexed only in part.
IS_CUT = "over index.max_file_bytes"


class VectorTable:
    """The vectors of an index in one space.

    `keys` are the chunks' keys, int64, ascending, each as often as the chunk has passages; `rows[i]` is the vector of
    a passage of the chunk `keys[i]`, in the order of the text. Chunks that are gone from the index may still have rows:
    `alive` marks the rows whose chunk is there; None if all are. The same table object is returned until something
    changes, so that what is computed from it can be cached with it.

    For a team's index the server computes the cosines with one query: `cosines` is set and `rows` is empty. If it
    returned only those of the nearest chunks and of a sample, `sample` marks those of the sample.
    """

    def __init__(
        self,
        keys: "NDArray[np.int64]",
        rows: "Vectors",
        alive: "NDArray[np.bool_] | None" = None,
        cosines: "Vectors | None" = None,
        sample: "NDArray[np.bool_] | None" = None,
    ) -> None:
        self.keys, self.rows, self.alive, self.cosines, self.sample = keys, rows, alive, cosines, sample


class VectorQuery:
    """A query as a vector of length 1, and the vectors to compare it with."""

    def __init__(self, vector: "Vectors", table: VectorTable) -> None:
        self.vector, self.table = vector, table


class EmbeddedQuery(NamedTuple):
    """A query as a vector, or None, with reasons why there is none or why not all entries have a vector."""

    question: VectorQuery | None
    reasons: tuple[str, ...] = ()


NOT_EMBEDDED = EmbeddedQuery(None)


class KnownFile(NamedTuple):
    """The path, state and hash of a file when it was indexed."""

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

    `key` orders chunks as they are: two chunks of one entry are neighbours in the text exactly
    when their keys differ by one. `rank` is the engine's BM25, better is more negative. `part`
    counts the chunks of the entry from 0, and `is_single` marks the only one; `position` counts
    those of the file.
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
    part: int = 0
    is_single: int = 1
    names: str = ""
    source: str = ""
    position: int = 0


def in_order(candidate: Candidate) -> tuple[float, str, int]:
    """Return the key to sort candidates by: their rank, then their file and their position in it."""
    return candidate.rank, candidate.source, candidate.position


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
    names: str = ""


class Fault(NamedTuple):
    """The line of a file from which the frontmatter of an entry cannot be read."""

    path: str
    line: int


class Index(Protocol):
    """The queries that a search needs, answered on this machine or by a server."""

    @property
    def generation(self) -> int:
        """A number that grows by one with every visible change. It is 0 before the first."""

    @property
    def is_partial(self) -> bool:
        """Whether the first indexing is not complete yet."""

    def cut_files(self) -> list[Problem]:
        """Return the files of which only the beginning was indexed, because they are too large."""

    def faults(self, filters: Filters) -> list[Fault]:
        """Return where frontmatter could not be read, in path order.

        Only the jobs and tasks that the filters show count.
        """

    def match(
        self, expression: str, weights: Sequence[float], filters: Filters, limit: int, among: str = ""
    ) -> list[Candidate]:
        """Return the best chunks for a full-text expression, best first and equal ones by their place.

        Those that do not match `among`, too, may be missing, which is faster.
        """

    def ranks(self, expression: str, weights: Sequence[float], keys: Sequence[int]) -> dict[int, float]:
        """Return the BM25 of an expression in those of the chunks that it matches."""

    def neighbours(self, keys: Collection[int]) -> list[int]:
        """Return the keys of all chunks in the files that contain the given ones, in order."""

    def matching(self, expression: str, keys: Sequence[int]) -> frozenset[int]:
        """Return those of the chunks that an expression matches."""

    def candidates(self, keys: Sequence[int], filters: Filters) -> list[Candidate]:
        """Return those of the chunks with these keys that pass the filters; their rank is 0."""

    def stems(self, words: Iterable[str]) -> dict[str, str]:
        """Return every word as the full-text index holds it."""

    def frequency(self, expression: str) -> int:
        """Return the number of chunks that a full-text expression matches."""

    def count_chunks(self) -> int:
        """Return the number of chunks."""

    def newest(self, filters: Filters, limit: int) -> list[Candidate]:
        """Return chunks that pass the filters, without a query; their rank is 0."""

    def chunks(self, keys: Iterable[int]) -> dict[int, StoredChunk]:
        """Return the chunks with these keys."""

    def entries_with_id(self, prefix: str) -> list[StoredEntry]:
        """Return the entries whose id starts with `prefix`."""

    def successors(self, entry_id: str) -> list[str]:
        """Return the ids of the entries that supersede an entry, as their own links say."""

    def scopes_of(self, ids: Iterable[str], filters: Filters) -> Mapping[str, frozenset[str]]:
        """Return the scopes at which each of these ids exists.

        Only the jobs and tasks that the filters show count.
        """
