"""The queries of the index in SQLite."""

import functools
import itertools
import re
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_kb.index.database import BUSY_SECONDS, LOCK, MEMORY, open_or_read, put_meta, read_meta, scrub
from memory_kb.index.filters import SqlDialect, as_array, fits_file, has_tag, is_narrow, where
from memory_kb.index.port import IS_CUT, Candidate, Index, KnownFile
from memory_kb.index.schema import TEXT_COLUMNS, index_schema
from memory_kb.model import EVERYTHING, Chunk, Filters, Problem, StoredEntry
from memory_kb.regular_files import SIDE_FILES
from memory_kb.store.walk import OWN_NOTES
from memory_kb.text import load_json
from memory_kb.vault import GLOBAL_PREFIX, hold_lock

if TYPE_CHECKING:
    from memory_kb.index.entry_texts import EntryTally
    from memory_kb.index.sqlite_writer import SqliteWriter
    from memory_kb.index.tokenizer import TermTable
    from memory_kb.index.vectors import VectorStore
    from memory_kb.memory import Memory


#: Entries and the ids that they supersede; a proposal does not supersede anything yet.
_SUCCESSIONS = (
    "chunks s, json_each(s.supersedes) old WHERE s.supersedes IS NOT NULL AND s.status NOT IN ('proposed', 'rejected')"
)
_IS_SUPERSEDED = f"c.is_superseded OR c.entry_id IN (SELECT old.value FROM {_SUCCESSIONS})"
SQLITE = SqlDialect(
    mark=":{}",
    within="IN (SELECT value FROM json_each(:{}))",
    pack=as_array,
    written={
        "key": "c.rowid",
        "id": "c.entry_id",
        "path": "c.source",
        "rank": "0.0",
        # A damaged word counts as project, so that the other entries can still be read; `doctor` finds the difference.
        "scope": "CASE WHEN c.scope IN ('task', 'job', 'global') THEN c.scope ELSE 'project' END",
        "is_superseded": _IS_SUPERSEDED,
        "is_single": "NOT EXISTS (SELECT 1 FROM chunks n WHERE n.rowid = c.rowid + 1)",
    },
    here="true",
    is_alone="true",
    in_file="c.source = :source",
    file="c.source",
    has_functions=True,
)


_IS_LISTED = "IN (SELECT value FROM json_each(?))"


class SqliteIndex(Index):
    """An open `.memory.db`, or without a path an index in memory."""

    sql = SQLITE

    def __init__(
        self, tokenizer: str, path: Path = MEMORY, wait: float = BUSY_SECONDS, mark: str | None = None
    ) -> None:
        super().__init__(tokenizer)
        self.path = path
        self._schema = index_schema(tokenizer)
        self._connection, self.notices = open_or_read(path, self._schema, wait, mark, _take_over_vectors)
        #: The number of chunks, and the generation of which it is.
        self._counted = (-1, 0)
        self._connection.create_function("fits_file", 2, fits_file, deterministic=True)
        self._connection.create_function("has_tag", 2, has_tag, deterministic=True)

    def close(self) -> None:
        """Close the database and free the tokenizer."""
        self._connection.close()
        super().close()

    @functools.cached_property
    def vectors(self) -> "VectorStore":
        """The vectors of the chunks."""
        from memory_kb.index.vectors import VectorStore

        return VectorStore(self._connection)

    @property
    def generation(self) -> int:
        return int(self.read_meta("generation") or 0)

    @functools.cached_property
    def is_frozen(self) -> bool:
        """Whether the file can only be read, as it was when it was opened."""
        try:
            return self._column("PRAGMA journal_mode") != ["wal"]
        except sqlite3.Error:
            return False

    @property
    def is_partial(self) -> bool:
        """Whether the first indexing is not complete yet."""
        return self.read_meta("is_partial") is not None

    def read_meta(self, key: str) -> str | None:
        """Return a fact about the index, or None."""
        return read_meta(self._connection, key)

    def _rows(self, query: str, values: Mapping[str, object]) -> sqlite3.Cursor:
        return self._connection.execute(query, values)

    def _column(self, query: str, values: Mapping[str, object] | Sequence[object] = ()) -> list[Any]:
        """Return the values that a query for one column gives."""
        return [value for (value,) in self._connection.execute(query, values)]

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read one state of the index, even if others commit meanwhile."""
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.execute("ROLLBACK")

    def stale_because(self, settings: str) -> str | None:
        """Return why the index must be rebuilt even if no file has changed, or None."""
        if self.generation and self.read_meta("settings") != settings:
            return "its settings changed"
        (last,) = self._column("SELECT max(rowid) FROM chunks")
        is_intact = self.read_meta("last_rowid") in (None, str(last or 0))
        return None if is_intact else "its rows were renumbered from outside"  # by a `VACUUM`

    def remember_settings(self, settings: str) -> None:
        """Store the settings that the index was made with."""
        if self.read_meta("settings") != settings:
            put_meta(self._connection, "settings", settings)

    def count_files(self) -> int:
        """Return the number of files in the index."""
        return int(*self._column("SELECT count(*) FROM file_meta"))

    def has_more_files(self, number: int) -> bool:
        """Return whether more than `number` files are indexed, without counting them all."""
        return bool(self._column("SELECT 1 FROM file_meta LIMIT 1 OFFSET ?", (number,)))

    def problems(self, said: str = "") -> list[Problem]:
        """Return the problems of the files when they were read whose message contains some words."""
        rows = self._connection.execute(
            "SELECT path, problems FROM file_meta WHERE problems IS NOT NULL AND instr(problems, ?) ORDER BY path",
            (said,),
        )
        found = (Problem(path, *problem) for path, problems in rows for problem in load_json(problems))
        return [problem for problem in found if said in problem.message]

    def check(self) -> tuple[str, ...]:
        """Return the faults that SQLite finds in the file, reading all of it."""
        found = [said for said in self._column("PRAGMA quick_check(20)") if said != "ok"]
        if self.is_frozen:
            return tuple(found)
        try:
            # For SQLite the question is a write, and writes are the business of one process at a time.
            with hold_lock(self.path.with_name(LOCK), BUSY_SECONDS):
                self._connection.execute("INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('integrity-check', 1)")
        except sqlite3.DatabaseError as exc:
            found.append(f"the full-text index does not agree with the chunks: {exc}")
        return tuple(found)

    def scrub(self) -> bool:
        """Leave no byte of deleted rows in the file; return whether that was done. The index may need a rebuild then.

        The index lock is held.
        """
        return scrub(self._connection, "chunks_fts")

    def known_files(self, region: str | None = None) -> Iterator[KnownFile]:
        """Yield the files of a region, as `walk_region` has it, or all files, by path."""
        is_global = "path >= '~global/' AND path < '~global0'"
        whole = {None: "true", OWN_NOTES: f"NOT ({is_global})", GLOBAL_PREFIX: is_global, "": "instr(path, '/') = 0"}
        condition = whole.get(region, "path = :path")
        rows = f"SELECT path, size, mtime, inode, hash FROM file_meta WHERE {condition} ORDER BY path"
        return map(KnownFile._make, self._connection.execute(rows, {"path": region}))

    def file_hashes(self) -> dict[str, str]:
        """Return the hash of every file, by path, in the order of the paths."""
        return dict(self._connection.execute("SELECT path, hash FROM file_meta ORDER BY path").fetchall())

    def cut_files(self) -> list[Problem]:
        return self.problems(IS_CUT)

    @contextmanager
    def write(self, *, rebuild: bool = False) -> "Iterator[SqliteWriter]":
        """Write within one transaction; leaving its context by an exception leaves the index as it was."""
        from memory_kb.index.sqlite_writer import SqliteWriter

        writer = SqliteWriter(self._connection)
        try:
            writer.begin(self._schema, rebuild=rebuild)
            yield writer
            writer.end()
        except BaseException:
            writer.abandon()
            raise

    def match(
        self, expression: str, weights: Sequence[float], filters: Filters, limit: int, *, without: str = ""
    ) -> list[Candidate]:
        condition, values = where(filters, self.sql)
        fitting = ""
        if is_narrow(filters):
            fitting = f"AND +rowid IN (SELECT c.rowid FROM chunks c WHERE {condition})"
        elif without:
            # What is behind NOT leaves rows out before they are scored, and does not count for the score of others.
            expression = f"({expression}) NOT ({without})"
        rank = f"bm25(chunks_fts, {', '.join(map(str, weights))}) AS rank"
        best = f"SELECT rowid, {rank} FROM chunks_fts WHERE chunks_fts MATCH :match {fitting}"
        # Filtering the best few afterwards gives the same as filtering all before, if enough are left.
        few = limit + limit // 4
        values |= {"match": expression, "limit": limit, "few": few}
        columns = self.sql.columns(Candidate._fields, rank="f.rank")
        rows = self._connection.execute(
            f"SELECT {columns}, {condition} FROM ({best} ORDER BY 2 LIMIT :few) f "
            "CROSS JOIN chunks c ON c.rowid = f.rowid ORDER BY f.rank, c.source, c.position",
            values,
        ).fetchall()
        found = [Candidate._make(row[:-1]) for row in rows if row[-1]]
        least = rows[-1][1] if rows else 0.0
        if len(rows) < few or (len(found) >= limit and found[limit - 1].rank < least):
            return found[:limit]
        rows = self._connection.execute(
            f"SELECT {columns} FROM ({best}) f CROSS JOIN chunks c ON c.rowid = f.rowid "
            f"WHERE f.rank <= :least AND {condition} ORDER BY f.rank, c.source, c.position LIMIT :limit",
            values | {"least": least if len(found) >= limit else 0.0},
        ).fetchall()
        return list(map(Candidate._make, rows))

    def ranks(self, expression: str, weights: Sequence[float], keys: Sequence[int]) -> dict[int, float]:
        # The plus keeps SQLite from looking each row up by itself: one pass over the term is faster.
        rows = self._connection.execute(
            f"SELECT rowid, bm25(chunks_fts, {', '.join(map(str, weights))}) FROM chunks_fts "
            f"WHERE chunks_fts MATCH ? AND +rowid {_IS_LISTED}",
            (expression, as_array(keys)),
        )
        return dict(rows.fetchall())

    def matching(self, expressions: Iterable[str], keys: Sequence[int]) -> dict[str, frozenset[int]]:
        found: dict[str, set[int]] = {expression: set() for expression in expressions}
        # A term may be in far more rows than there are keys. To join them is faster than IN: SQLite leaves most rows
        # out by a filter of bits, without looking them up, and makes the filter once for all expressions.
        rows = self._connection.execute(
            "SELECT asked.value, f.rowid FROM json_each(?) asked CROSS JOIN chunks_fts f "
            "CROSS JOIN (SELECT DISTINCT value AS key FROM json_each(?)) wanted "
            "WHERE f.chunks_fts MATCH asked.value AND wanted.key = +f.rowid",
            (as_array(found), as_array(keys)),
        )
        for expression, key in rows:
            found[expression].add(key)
        return {expression: frozenset(matching) for expression, matching in found.items()}

    def frequency(self, expression: str) -> int:
        return int(*self._column("SELECT count(*) FROM chunks_fts WHERE chunks_fts MATCH ?", (expression,)))

    def count_chunks(self) -> int:
        if (generation := self.generation) != self._counted[0]:
            # The narrowest table with a row for each.
            self._counted = generation, int(*self._column("SELECT count(*) FROM chunks_fts_docsize"))
        return self._counted[1]

    def keys_saying(self, expression: str, most: int) -> frozenset[int] | None:
        """Return the keys of the chunks that a full-text expression matches; None for more than `most`."""
        says = "SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH ? LIMIT ?"
        keys = frozenset(self._column(says, (expression, most + 1)))
        return None if len(keys) > most else keys

    def keys_of_kind(self, kind: str) -> frozenset[int]:
        """Return the keys of the chunks of a kind other than fact."""
        return frozenset(self._column("SELECT rowid FROM chunks WHERE kind <> 'fact' AND kind = ?", (kind,)))

    def count_entries(self, expressions: Sequence[str], without: str) -> tuple[list[int], int]:
        """Return how many entries each full-text expression matches, and how many entries there are.

        Those of the kind `without` do not count; what only they say counts as one. "" matches none.
        """
        import bisect

        # The chunks of an entry have consecutive rowids. One look into the index of first chunks is faster than one
        # into the wide rows of all chunks that say a word.
        rows = self._connection.execute("SELECT rowid, kind <> ? FROM chunks WHERE part = 0", (without,)).fetchall()
        firsts = sorted(first for first, _ in rows)
        counted = {first for first, is_counted in rows if is_counted}
        numbers = []
        for expression in expressions:
            says = "SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH ?"
            keys = self._column(says, (expression,)) if expression else ()
            entries = {firsts[bisect.bisect_right(firsts, key) - 1] for key in keys}
            numbers.append(len(entries.intersection(counted)) or min(1, len(entries)))
        return numbers, len(counted)

    def entries(self, filters: Filters, cited: str = "") -> Iterator[StoredEntry]:
        """Yield the entries that pass the filters, in path order; with `cited` those that may cite that file."""
        condition, values = where(filters, self.sql)
        if cited:
            condition += " AND instr(c.metadata, '\"cites\"') AND instr(c.metadata, :cited)"
            values["cited"] = cited
        return self._entries(condition, values)

    def memories(self, filters: Filters, source: str | None = None, origin: str | None = None) -> "Iterator[Memory]":
        """Yield the entries that pass the filters with all of their text, in path order.

        With `source`, those of one file; with `origin`, those whose frontmatter names that as its source.
        """
        from memory_kb.index.entry_texts import MEMORY_FIELDS, join_texts, read_memory

        condition, values = where(filters, self.sql)
        if origin is not None:
            # Said twice for the index of what people stated.
            is_stated = "instr(c.metadata, '\"user_explicit\"') AND " if origin == "user_explicit" else ""
            condition = f"{is_stated}{condition} AND json_extract(c.metadata, '$.source') = :origin"
            values["origin"] = origin
        if source is not None:
            condition, values = f"c.source = :source AND {condition}", values | {"source": source}
        joined, order = "JOIN file_meta f ON f.path = c.source", "ORDER BY c.source, c.position"
        rows = self._select(MEMORY_FIELDS, f"{condition} {order}", values, joined=joined, hash="f.hash")
        yield from itertools.starmap(read_memory, join_texts(rows))

    def successors(self, entry_id: str) -> list[str]:
        return self._column(f"SELECT DISTINCT s.entry_id FROM {_SUCCESSIONS} AND old.value = ? ORDER BY 1", (entry_id,))

    def entries_like(self, words: Sequence[str], limit: int) -> list[StoredEntry]:
        """Return the entries whose names may contain all words, given in lower case; without words the `limit` newest.

        Other than ASCII letters, digits and blanks match any character, and every entry with an alias is returned.
        """
        if not words:
            order = "c.dated DESC, c.source, c.position LIMIT :limit"
            return list(self._entries("true", {"limit": limit}, order))
        patterns = {f"word{number}": _like(word) for number, word in enumerate(words)}
        condition = " AND ".join(
            f"(c.title LIKE :{one} OR c.entry_id LIKE :{one} OR c.source LIKE :{one} OR instr(c.metadata, '\"alias'))"
            for one in patterns
        )
        return list(self._entries(condition, patterns))

    def tag_lists(self, filters: Filters) -> Iterator[tuple[str, str]]:
        """Return the file and the tags, separated by commas, of each entry that passes the filters."""
        condition, values = where(filters, self.sql)
        tags = "c.tags || ',' || c.text_tags"
        return iter(self._select(["source", "tags"], f"c.part = 0 AND {condition}", values, tags=tags))

    def entries_of(self, sources: Iterable[str], filters: Filters = EVERYTHING) -> list[StoredEntry]:
        """Return the entries of some files that pass the filters, in path order."""
        condition, values = where(filters, self.sql)
        are_inside, given = self._among("source", sources)
        return list(self._entries(f"{are_inside} AND {condition}", {**values, **given}))

    def files_with_ids(self, ids: Collection[str]) -> list[str]:
        """Return the files with an entry of one of these ids, in any case of their letters."""
        having = f"SELECT source FROM chunks WHERE part = 0 AND entry_id COLLATE NOCASE {_IS_LISTED}"
        return self._column(having, (as_array(ids),))

    def files_saying(self, phrases: Iterable[str], column: str, condition: str = "TRUE") -> list[str]:
        """Return the files that have one of some phrases in a column, in a chunk for which a condition holds."""
        either = " OR ".join('"{}"'.format(phrase.replace('"', '""')) for phrase in phrases)
        if not either:
            return []
        says = "rowid IN (SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH ?)"
        saying = f"SELECT DISTINCT source FROM chunks WHERE {says} AND {condition}"
        return self._column(saying, (f"{{{column}}} : ({either})",))

    def numbered_chunks(self, sources: Sequence[str]) -> Iterator[tuple[int, Chunk]]:
        """Yield the chunks of some files as they were put in, in the order of their rows, with the number of each."""
        rows = self._connection.execute(
            f"SELECT rowid, {', '.join(Chunk._fields)} FROM chunks WHERE source {_IS_LISTED} ORDER BY rowid",
            (as_array(sources),),
        )
        return ((number, Chunk._make(row)) for number, *row in rows)

    def term_table(self, sources: Sequence[str]) -> "TermTable":
        """Return the terms of the rows of some files, and where the full-text index has them."""
        rows = self._connection.execute(
            f"SELECT chunk_rowid, {', '.join(TEXT_COLUMNS)} FROM chunk_texts WHERE source {_IS_LISTED} ORDER BY 1",
            (as_array(sources),),
        )
        return self._words.read(((number, texts) for number, *texts in rows), TEXT_COLUMNS)

    def entries_with_texts(self, sources: Iterable[str]) -> "Iterator[tuple[StoredEntry, str]]":
        """Yield the entries of some files in path order, each with its text."""
        from memory_kb.index.entry_texts import ENTRY_FIELDS, join_texts

        are_inside, values = self._among("source", sources)
        rows = self._select(ENTRY_FIELDS, f"{are_inside} ORDER BY c.source, c.position", values)
        return ((StoredEntry._make(row[: len(StoredEntry._fields)]), text) for row, text in join_texts(rows))

    def sections_with(self, words: Sequence[str]) -> Iterator[tuple[str, str, int, str]]:
        """Yield path, title of the entry, first line and text of the chunks that hold all of some words in any case.

        What is no ASCII letter, digit or blank matches any character.
        """
        condition = " AND ".join("content LIKE ?" for _ in words)
        yield from self._connection.execute(
            f"SELECT source, title, line, content FROM chunks WHERE {condition} ORDER BY source, position",
            [_like(word.lower()) for word in words],
        )

    def files_with_metadata(self, parts: Sequence[str]) -> list[str]:
        """Return the files in which the frontmatter of an entry has, as JSON in any case, one of some parts, in path order."""
        condition = " OR ".join("instr(lower(metadata), lower(?))" for _ in parts)
        # To sort them, SQLite would go through all chunks.
        having = f"SELECT source FROM chunks WHERE part = 0 AND ({condition})"
        return sorted(set(self._column(having, parts)))

    def tally(self) -> "list[EntryTally]":
        """Return the number of entries of each kind, type, status and scope, and whether some have tags and days."""
        from memory_kb.index.entry_texts import EntryTally

        rows = self._connection.execute(
            "SELECT kind, type, status, scope, count(*), max(tags <> '' OR text_tags <> ''), max(dated IS NOT NULL) "
            "FROM chunks WHERE part = 0 GROUP BY 1, 2, 3, 4"
        )
        return list(map(EntryTally._make, rows))

    def measure(self) -> tuple[int, int]:
        """Return the number of chunks and of the characters in them."""
        chunks, characters = self._connection.execute(
            "SELECT count(*), coalesce(sum(length(content)), 0) FROM chunks"
        ).fetchone()
        return int(chunks), int(characters)


def _take_over_vectors(connection: sqlite3.Connection, path: Path) -> None:
    """Give a new index the vectors of the one that was moved aside last, as far as they can be read."""
    broken = [file for file in path.parent.glob(f"{path.name}.broken*") if not file.name.endswith(SIDE_FILES[1:])]
    if broken:
        from memory_kb.index.vectors import EmbeddingCache

        with suppress(OSError, sqlite3.Error):
            EmbeddingCache(connection).take_over(max(broken, key=lambda file: file.stat().st_mtime_ns))


def _like(word: str) -> str:
    """Return a SQL pattern for texts that contain a word; all but ASCII letters, digits and blanks match anything."""
    return f"%{re.sub('[^a-z0-9 -]', '_', word)}%"
