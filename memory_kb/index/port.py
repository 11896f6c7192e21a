"""An index as its callers know it, whichever engine is behind, and the values that it answers with."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from memory_kb.index.filters import LAST, SqlDialect, visible, where
from memory_kb.model import Filters, Problem, StoredEntry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memory_kb.index.tokenizer import WordCutter
    from memory_kb.memory import Memory
    from memory_kb.providers.protocols import Vectors


#: Called with how many files or texts are done, and of how many; 0 where that is not known.
Progress = Callable[[int, int], None]

#: Words of the problem of a file that was indexed only in part.
IS_CUT = "over index.max_file_bytes"


class Cosines:
    """How near passages are to a query, by the keys of their chunks, which ascend, and in the order of the text.

    If they are only those of the nearest chunks and of a sample of all, `sample` marks those of the sample.
    """

    def __init__(self, keys: "NDArray[np.int64]", values: "Vectors", sample: "NDArray[np.bool_] | None" = None) -> None:
        self.keys, self.values, self.sample = keys, values, sample


class VectorTable:
    """The vectors of passages in one space, of length 1: a row for each, and the keys of their chunks, which ascend."""

    def __init__(self, keys: "NDArray[np.int64]", rows: "Vectors") -> None:
        self.keys, self.rows = keys, rows

    def compare(self, vector: "Vectors") -> Cosines:
        """Return the cosine of a vector of length 1 and every row."""
        import numpy as np

        # Row by row: the number of a row does not depend on its place, and no library starts threads.
        return Cosines(self.keys, np.vecdot(self.rows, vector))


class EmbeddedQuery(NamedTuple):
    """How near a query is to all passages, or None, with reasons why that is not known or not of all entries."""

    cosines: Cosines | None
    reasons: tuple[str, ...] = ()


NOT_EMBEDDED = EmbeddedQuery(None)


#: In place of the inode of a file that was read so soon after it was saved that another save may have the same time.
UNSURE = -1


class KnownFile(NamedTuple):
    """The path, state and hash of a file when it was indexed."""

    path: str
    size: int
    mtime_ns: int
    inode: int
    hash: str


class Candidate(NamedTuple):
    """A chunk as it was indexed, with the values that its score depends on.

    `key` orders chunks as they are: two chunks of one entry are neighbours in the text exactly when their keys differ
    by one. `rank` is the engine's BM25, better is more negative. `part` counts the chunks of the entry from 0, and
    `is_single` marks the only one; `position` counts those of the file.
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
    entry_id: str = ""
    kind: str = ""
    type: str = ""
    line: int = 1
    end_line: int = 1
    content: str = ""


class Index(ABC):
    """The queries of an index, answered on this machine or by a server.

    Those that differ only in an engine's dialect are written here, over its chunks `c`.
    """

    sql: SqlDialect

    def __init__(self, tokenizer: str) -> None:
        self._tokenizer = tokenizer

    def close(self) -> None:
        """Free the tokenizer."""
        if "_words" in self.__dict__:
            self._words.close()

    @functools.cached_property
    def _words(self) -> "WordCutter":
        from memory_kb.index.tokenizer import WordCutter

        return WordCutter(self._tokenizer)

    @property
    @abstractmethod
    def generation(self) -> int:
        """A number that grows by one with every visible change. It is 0 before the first."""

    @abstractmethod
    def cut_files(self) -> list[Problem]:
        """Return the files of which only the beginning was indexed, because they are too large."""

    @abstractmethod
    def match(
        self, expression: str, weights: Sequence[float], filters: Filters, limit: int, *, without: str = ""
    ) -> list[Candidate]:
        """Return the best chunks for a full-text expression, best first and equal ones by their place.

        Those that match `without` may be missing, which is faster.
        """

    @abstractmethod
    def ranks(self, expression: str, weights: Sequence[float], keys: Sequence[int]) -> dict[int, float]:
        """Return the BM25 of an expression in those of the chunks that it matches."""

    @abstractmethod
    def matching(self, expressions: Iterable[str], keys: Sequence[int]) -> dict[str, frozenset[int]]:
        """Return those of the chunks that each expression matches."""

    @abstractmethod
    def frequency(self, expression: str) -> int:
        """Return the number of chunks that a full-text expression matches."""

    @abstractmethod
    def count_chunks(self) -> int:
        """Return the number of chunks."""

    @abstractmethod
    def successors(self, entry_id: str) -> list[str]:
        """Return the ids of the entries that supersede an entry, as their own links say."""

    @abstractmethod
    def _rows(self, query: str, values: Mapping[str, object]) -> Iterable[tuple[Any, ...]]:
        """Return the rows of a query with named values."""

    def _select(
        self, fields: Iterable[str], condition: str, values: Mapping[str, object], *, joined: str = "", **written: str
    ) -> Iterable[tuple[Any, ...]]:
        """Return some values of the chunks for which a condition holds; see `SqlDialect.columns`."""
        columns = self.sql.columns(fields, **written)
        return self._rows(f"SELECT {columns} FROM chunks c {joined} WHERE {self.sql.here} AND {condition}", values)

    def _among(self, field: str, values: Iterable[object]) -> tuple[str, dict[str, object]]:
        """Return the condition that a value of a chunk is one of some, with the named value for it."""
        return f"{self.sql.columns([field])} {self.sql.within.format('among')}", {"among": self.sql.pack(values)}

    def stems(self, words: Iterable[str]) -> dict[str, str]:
        """Return every word as the full-text index holds it."""
        return self._words.stems(words)

    def faults(self, filters: Filters) -> list[Problem]:
        """Return from where frontmatter cannot be read, in path order, in the jobs and tasks that the filters show."""
        condition, values = visible(filters, self.sql)
        rows = self._select(["source", "fault"], f"c.fault IS NOT NULL AND {condition}", values)
        return sorted({Problem(path, line, "its frontmatter cannot be read") for path, line in rows})

    def neighbours(self, keys: Collection[int]) -> list[int]:
        """Return the keys of all chunks in the files that contain the given ones, in order."""
        are_given, values = self._among("key", keys)
        inside = f"({self.sql.file}) IN (SELECT {self.sql.file} FROM chunks c WHERE {are_given})"
        return sorted(key for (key,) in self._select(["key"], inside, values))

    def candidates(self, keys: Sequence[int], filters: Filters) -> list[Candidate]:
        """Return those of the chunks with these keys that pass the filters; their rank is 0."""
        are_given, values = self._among("key", keys)
        return self._choose(filters, f"AND {are_given}", values)

    def newest(self, filters: Filters, limit: int) -> list[Candidate]:
        """Return chunks that pass the filters, without a query; their rank is 0."""
        order = f"ORDER BY c.seen DESC NULLS LAST, {self.sql.file}, c.position"
        return self._choose(filters, order, {}, limit)

    def containing(self, text: str, filters: Filters, limit: int) -> list[Candidate]:
        """Return chunks that pass the filters and have a text letter by letter, those first that have it most often."""
        mark = self.sql.mark.format("text")
        times = f"length(c.content) - length(replace(c.content, {mark}, ''))"
        order = f"AND {times} > 0 ORDER BY {times} DESC, {self.sql.file}, c.position"
        return self._choose(filters, order, {"text": text}, limit)

    def _choose(
        self, filters: Filters, ending: str, values: Mapping[str, object], limit: int | None = None, **how: str
    ) -> list[Candidate]:
        """Return candidates that pass the filters; `ending` is what follows those in the query."""
        condition, named = where(filters, self.sql)
        ending += f" LIMIT {limit}" if limit is not None else ""
        rows = self._select(Candidate._fields, f"{condition} {ending}", {**named, **values}, **how)
        return list(map(Candidate._make, rows))

    def chunks(self, keys: Iterable[int]) -> dict[int, Candidate]:
        """Return the chunks with these keys; their rank is 0."""
        rows = self._select(Candidate._fields, *self._among("key", keys))
        return {row[0]: Candidate._make(row) for row in rows}

    def entries_with_id(self, prefix: str) -> list[StoredEntry]:
        """Return the entries whose id starts with `prefix`."""
        start, end = map(self.sql.mark.format, ("start", "end"))
        begins = f"c.entry_id >= {start} AND c.entry_id < {end}"
        return list(self._entries(begins, {"start": prefix, "end": prefix + LAST}))

    def _entries(self, condition: str, values: Mapping[str, object], order: str = "") -> Iterator[StoredEntry]:
        """Yield the entries for which a condition holds, in path order or another."""
        order = order or f"{self.sql.columns(['source'])}, c.position"
        rows = self._select(StoredEntry._fields, f"c.part = 0 AND {condition} ORDER BY {order}", values)
        return map(StoredEntry._make, rows)

    def scopes_of(self, ids: Iterable[str], filters: Filters) -> Mapping[str, frozenset[str]]:
        """Return the scopes at which each of these ids exists.

        Only the jobs and tasks that the filters show count, and no id that several vaults have: it hides nothing.
        """
        condition, values = visible(filters, self.sql)
        are_given, given = self._among("id", ids)
        found: dict[str, set[str]] = {}
        once = f"c.part = 0 AND {are_given} AND {condition} AND {self.sql.is_alone}"
        for entry_id, scope in self._select(["id", "scope"], once, {**values, **given}):
            found.setdefault(entry_id, set()).add(scope)
        return {entry_id: frozenset(scopes) for entry_id, scopes in found.items()}

    def keys_of(self, entry: "StoredEntry | Memory") -> list[int]:
        """Return the keys of an entry's chunks, in file order."""
        return self._of_entry("key", entry)

    def contents(self, entry: StoredEntry) -> str:
        """Return the indexed text of an entry, its chunks joined by blank lines."""
        return "\n\n".join(self._of_entry("content", entry))

    def _of_entry(self, field: str, entry: "StoredEntry | Memory") -> list[Any]:
        condition = f"{self.sql.in_file} AND c.entry_id = {self.sql.mark.format('id')} ORDER BY c.position"
        return [value for (value,) in self._select([field], condition, {"source": entry.path, "id": entry.id})]
