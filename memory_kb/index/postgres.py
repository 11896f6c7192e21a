"""A team's index in PostgreSQL: search the vaults that one may read as one."""

from __future__ import annotations

import itertools
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from memory_kb.errors import AmbiguousId, UnknownEntry
from memory_kb.globs import fits_any
from memory_kb.index.port import IS_CUT, Candidate, Fault, StoredChunk, VectorTable, in_order
from memory_kb.index.postgres_places import ChunkPlaces
from memory_kb.index.postgres_schema import VaultRow, list_vaults
from memory_kb.index.postgres_vectors import compare, write_space
from memory_kb.index.postgres_words import (
    IN_VAULTS,
    LAST,
    VAULT_NAME,
    Bm25,
    Phrase,
    QueryNode,
    SqlStatement,
    parse,
    phrases_of,
)
from memory_kb.index.words import PLACE_BITS, WordCutter
from memory_kb.markdown.sections import PASSAGE, split_text
from memory_kb.model import NOWHERE, SEARCHED_STATUSES, WORKING_KINDS, Filters, Problem, StoredEntry
from memory_kb.text import fits_tag, printable

if TYPE_CHECKING:
    from psycopg import Connection

    from memory_kb.providers.base import Space, Vectors

#: Stands between the name of a vault and a path in it; no name of a vault has one.
SEPARATOR = ":"

#: What supersedes what; a proposal does not yet. The ids are a JSON list, which PostgreSQL does not read in every case.
_SUCCESSIONS = (
    "chunks s WHERE s.vault = c.vault AND s.supersedes IS NOT NULL AND s.status NOT IN ('proposed', 'rejected') "
    "AND strpos(s.supersedes, '\"' || c.entry_id || '\"') > 0"
)
_IS_SUPERSEDED = f"(c.is_superseded > 0 OR EXISTS (SELECT FROM {_SUCCESSIONS}))::integer"
_SOURCE = f"{VAULT_NAME.format('c')} || '{SEPARATOR}' || c.source"
_CANDIDATE = (
    f"c.importance, c.reinforcement_count, c.seen, c.status, c.scope, {_IS_SUPERSEDED}, c.title, c.headings, c.part, "
    "(NOT EXISTS (SELECT FROM chunks n WHERE n.key = c.key + 1))::integer, c.names, "
    f"{_SOURCE}, c.position"
)
_CHUNK = f"c.key, {_SOURCE}, c.position, c.part, c.entry_id, c.kind, c.type, c.status, c.scope, c.char_offset, c.line, c.end_line, c.title, c.headings, c.content, c.names"
_ENTRY = f"c.entry_id, c.title, c.kind, c.type, c.scope, c.status, {_SOURCE}, c.line, c.end_line, c.tags, c.dated, c.metadata, c.text_tags, c.fault, {_IS_SUPERSEDED}"
_FROM = f"FROM chunks c WHERE c.{IN_VAULTS}"


#: The vectors that were read last, with the state of the vaults that they are of.
VectorTables = dict[tuple[VaultRow, ...], VectorTable]


class PostgresIndex:
    """Some vaults of a team's index, as one.

    See `memory_kb.index.port.Index` for what its methods promise. The source of a chunk is its vault's name and its
    path. Statistics are kept per vault and added up over the vaults, so that scores can be compared across them.
    """

    def __init__(
        self, connection: Connection, vaults: Sequence[VaultRow], tokenizer: str, tables: VectorTables | None = None
    ) -> None:
        self._connection, self._tables = connection, {} if tables is None else tables
        self._vaults = tuple(vaults)
        self._ids = [vault.id for vault in vaults]
        self._words = WordCutter(tokenizer)
        self._frequencies: dict[Phrase, int] = {}
        self._places = ChunkPlaces(connection, ())

    def close(self) -> None:
        """Give the memory back; the connection stays."""
        self._words.close()

    @property
    def generation(self) -> int:
        return sum(vault.generation for vault in self._vaults)

    @property
    def is_partial(self) -> bool:
        return False

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Read one state of the vaults throughout, whatever others commit meanwhile."""
        with self._connection.transaction():
            self._connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            current = tuple(vault for vault in list_vaults(self._connection) if vault.id in self._ids)
            if current != self._vaults:
                self._vaults = current
                self._frequencies.clear()
            self._places = ChunkPlaces(self._connection, ())
            yield

    def match(
        self, expression: str, weights: Sequence[float], filters: Filters, limit: int, among: str = ""
    ) -> list[Candidate]:
        statement, node = self._statement(), self._parse(expression)
        ranked = statement.ranks(node, weights, self._bm25(node), self._parse(among) if among else None)
        # Filtering the best few afterwards gives the same as filtering all before, if enough are left.
        ranks: dict[int, float] = dict(statement.rows(f"{ranked} ORDER BY 2 FETCH FIRST {2 * limit} ROWS WITH TIES"))
        found = [one._replace(rank=ranks[one.key]) for one in self.candidates([*ranks], filters)]
        if len(found) < limit and len(ranks) >= 2 * limit:
            found = list(self._choose(statement, filters, "f.rank", f"JOIN ({ranked}) f ON f.key = c.key"))
        return sorted(found, key=in_order)[:limit]

    def ranks(self, expression: str, weights: Sequence[float], keys: Sequence[int]) -> dict[int, float]:
        node = self._parse(expression)
        if not node.is_choice:
            statement = self._statement()
            ranked = statement.ranks(node, weights, self._bm25(node))
            return dict(statement.rows(f"SELECT * FROM ({ranked}) f WHERE key = ANY({statement.bind(list(keys))})"))
        near, bm25 = self._places_in(keys), self._bm25()
        near.read(phrases_of(node))
        ranks: dict[int, float] = defaultdict(float)
        for phrase in phrases_of(node):
            # What nothing here says has not to be counted, which takes longest.
            if starts := near.starts(phrase):
                rarity, (fixed, growing) = bm25.find_rarity(phrase), bm25.damping
                for key, places in starts.items():
                    said = sum(weights[place >> PLACE_BITS] for place in places)
                    ranks[key] -= rarity / (1 + (fixed + growing * near.lengths[key]) / said)
        return ranks

    def neighbours(self, keys: Collection[int]) -> list[int]:
        statement = self._statement()
        rows = statement.rows(
            f"SELECT DISTINCT o.key FROM chunks c JOIN chunks o ON o.vault = c.vault AND o.source = c.source "
            f"WHERE c.key = ANY({statement.bind(list(keys))}) ORDER BY 1"
        )
        return [key for (key,) in rows]

    def matching(self, expression: str, keys: Sequence[int]) -> frozenset[int]:
        node = self._parse(expression)
        if node.is_choice:
            near = self._places_in(keys)
            return frozenset(key for phrase in phrases_of(node) for key in near.starts(phrase))
        statement = self._statement()
        found = f"SELECT key FROM ({statement.matches(node)}) f WHERE key = ANY({statement.bind(list(keys))})"
        return frozenset(key for (key,) in statement.rows(found))

    def _places_in(self, keys: Sequence[int]) -> ChunkPlaces:
        """Return where words are in some chunks; the same ones are asked about several times."""
        if self._places.keys != tuple(keys):
            self._places = ChunkPlaces(self._connection, keys)
        return self._places

    def _parse(self, expression: str) -> QueryNode:
        return parse(expression, self._words.terms)

    def _statement(self) -> SqlStatement:
        return SqlStatement(self._connection, self._vaults)

    def _bm25(self, node: QueryNode | None = None) -> Bm25:
        """Return what BM25 depends on; the terms of an expression are counted at once."""
        self._count_terms({term for phrase in phrases_of(node) for term in phrase.terms} if node else ())
        chunks, length = self.count_chunks(), sum(vault.terms for vault in self._vaults)
        return Bm25(chunks, length / chunks if chunks else 0.0, self._count)

    def _count_terms(self, terms: Iterable[str]) -> None:
        """Count the chunks that have each of some terms, at once."""
        new = [term for term in terms if Phrase((term,)) not in self._frequencies]
        if new:
            statement = self._statement()
            self._frequencies |= {Phrase((term,)): 0 for term in new}
            counts = statement.rows(
                f"SELECT term, sum(chunks) FROM postings WHERE {IN_VAULTS} AND term = ANY({statement.bind(new)}) GROUP BY 1"
            )
            self._frequencies |= {Phrase((term,)): number for term, number in counts}

    def _count(self, phrase: Phrase) -> int:
        """Return the number of chunks that say a phrase; it is counted once for every state of the vaults."""
        if phrase.is_term:
            self._count_terms(phrase.terms)
        elif phrase not in self._frequencies:
            self._frequencies[phrase] = self._statement().count(QueryNode("", phrase))
        return self._frequencies[phrase]

    def candidates(self, keys: Sequence[int], filters: Filters) -> list[Candidate]:
        statement = self._statement()
        wanted = f"JOIN unnest({statement.bind(list(keys))}::bigint[]) wanted ON wanted = c.key"
        return list(self._choose(statement, filters, "0.0::float8", wanted))

    def newest(self, filters: Filters, limit: int) -> list[Candidate]:
        order = "ORDER BY c.seen DESC NULLS LAST, c.vault, c.source, c.position"
        found = self._choose(self._statement(), filters, "0.0::float8", "", order)
        return list(itertools.islice(found, limit))

    def _choose(
        self, statement: SqlStatement, filters: Filters, rank: str, joined: str, order: str = ""
    ) -> Iterator[Candidate]:
        """Yield the candidates that pass the filters, those that SQL cannot hold among them."""
        conditions = " AND ".join(_conditions(filters, statement))
        rows = statement.rows(
            f"SELECT c.key, {rank}, {_CANDIDATE}, c.tags || ',' || c.text_tags, c.applies_to FROM chunks c {joined} "
            f"WHERE {conditions} {order}"
        )
        return (Candidate._make(row[:-2]) for row in rows if _passes(filters, *row[-2:]))

    def compare(self, asked: tuple[Space, Vectors], filters: Filters) -> tuple[VectorTable | None, tuple[str, ...]]:
        """Return the cosines of a question with the vectors of its space, None without any, and what lacks one."""
        space = write_space(asked[0])
        fitting = [vault for vault in self._vaults if vault.space == space]
        others = [vault.name for vault in self._vaults if vault.chunks and (vault.space != space or not vault.vectors)]
        notes: tuple[str, ...] = ()
        if others:
            notes += (f"no vectors of {asked[0]}, so found by words alone: {', '.join(others)}",)
        missing = sum(vault.chunks - vault.vectors for vault in fitting if vault.vectors)
        if missing:
            notes += (f"{missing:,} passages have no vector yet and are found by their words alone",)
        total = sum(vault.vectors for vault in fitting)
        if not total:
            return None, notes
        statement = self._statement()
        passing = " AND ".join(_conditions(filters, statement))
        table = self._tables.get(tuple(fitting))
        if table is None:
            ids = [vault.id for vault in fitting]
            table = compare(self._connection, ids, total, asked, (passing, statement.values))
            self._tables.clear()
            if table.cosines is None:
                self._tables[tuple(fitting)] = table
        return table, notes

    def keys_of(self, entry: StoredEntry) -> list[int]:
        """Return the keys of an entry's chunks, in file order."""
        statement = self._statement()
        path, whole = (statement.bind(text) for text in (entry.source.partition(SEPARATOR)[2], entry.source))
        same = f"c.source = {path} AND {_SOURCE} = {whole} AND c.entry_id = {statement.bind(entry.entry_id)}"
        rows = statement.rows(f"SELECT c.key {_FROM} AND {same} ORDER BY c.position, c.part")
        return [key for (key,) in rows]

    def cut(self, text: str) -> list[tuple[int, int]]:
        return [(piece.start, piece.end) for piece in split_text(text, 0, len(text), PASSAGE)]

    def stems(self, words: Iterable[str]) -> dict[str, str]:
        return self._words.stems(words)

    def frequency(self, expression: str) -> int:
        node = self._parse(expression)
        return self._count(node.phrase) if node.phrase else self._statement().count(node)

    def count_chunks(self) -> int:
        return sum(vault.chunks for vault in self._vaults)

    def chunks(self, keys: Iterable[int]) -> dict[int, StoredChunk]:
        statement = self._statement()
        rows = statement.rows(f"SELECT {_CHUNK} {_FROM} AND c.key = ANY({statement.bind(list(keys))})")
        return {row[0]: StoredChunk._make(row) for row in rows}

    def entries_with_id(self, prefix: str) -> list[StoredEntry]:
        return self._entries("c.entry_id >= {0} AND c.entry_id < {0} || {1}", prefix, LAST)

    def _entries(self, condition: str, *values: object) -> list[StoredEntry]:
        """Return the entries for which a condition holds, whose numbers in braces are those of the values."""
        statement = self._statement()
        fits = condition.format(*(f"{statement.bind(value)}::text" for value in values))
        rows = statement.rows(f"SELECT {_ENTRY} {_FROM} AND c.part = 0 AND {fits} ORDER BY {_SOURCE}, c.position")
        return list(map(StoredEntry._make, rows))

    def find(self, wanted: str) -> StoredEntry:
        """Return the entry that an id, its unique beginning, `path.md:LINE`, a title, an alias or a file names.

        A path may have its vault before it, as a source has.

        Raises:
            UnknownEntry: there is none.
            AmbiguousId: there are several.
        """
        wanted = printable(wanted)
        begun = self.entries_with_id(wanted) if wanted else []
        place = re.fullmatch(r"(.+\.md)(?::(\d+))?", wanted, re.IGNORECASE)
        inside = []
        if place:
            fits = f"c.source IN ({{0}}, {{1}}) AND {{0}} IN (c.source, {_SOURCE})"
            inside = self._entries(fits, place[1], place[1].partition(SEPARATOR)[2])
        if place and inside:
            line = int(place[2] or 1)
            begun = list({one.source: one for one in inside if one.line <= line}.values()) or inside[:1]
        found = [one for one in begun if one.entry_id == wanted] or begun
        names = r"string_to_array(lower(c.title || E'\n' || c.names), E'\n')"
        found = found or self._entries(f"lower({{0}}) = ANY({names})", wanted)
        if not found:
            raise UnknownEntry(wanted)
        if len(found) > 1:
            raise AmbiguousId(wanted, [f"{one.source}:{one.line}" for one in found])
        return found[0]

    def contents(self, entry: StoredEntry) -> str:
        """Return the indexed text of an entry, its chunks joined by blank lines."""
        texts = self.chunks(self.keys_of(entry)).values()
        return "\n\n".join(one.content for one in sorted(texts, key=lambda one: one.key))

    def successors(self, entry_id: str) -> list[str]:
        statement = self._statement()
        rows = statement.rows(
            f"SELECT DISTINCT s.entry_id FROM chunks c JOIN LATERAL (SELECT s.entry_id FROM {_SUCCESSIONS}) s ON true "
            f"WHERE c.part = 0 AND c.{IN_VAULTS} AND c.entry_id = {statement.bind(entry_id)} ORDER BY 1"
        )
        return [successor for (successor,) in rows]

    def scopes_of(self, ids: Iterable[str], filters: Filters) -> Mapping[str, frozenset[str]]:
        # An entry hides those of its id in wider scopes of its own vault; ids that several vaults have hide nothing.
        statement = self._statement()
        rows = statement.rows(
            f"SELECT c.entry_id, array_agg(DISTINCT c.scope) FROM chunks c WHERE c.part = 0 AND c.{IN_VAULTS} "
            f"AND c.entry_id = ANY({statement.bind(list(ids))}) AND {_visible(filters, statement)} AND NOT EXISTS "
            f"(SELECT FROM chunks o WHERE o.part = 0 AND o.entry_id = c.entry_id AND o.{IN_VAULTS} AND o.vault <> c.vault) "
            "GROUP BY 1"
        )
        return {entry_id: frozenset(scopes) for entry_id, scopes in rows}

    def cut_files(self) -> list[Problem]:
        rows = self._statement().rows(
            f"SELECT {VAULT_NAME.format('f')} || '{SEPARATOR}' || f.path, f.problems FROM files f "
            f"WHERE f.{IN_VAULTS} AND f.problems IS NOT NULL ORDER BY 1"
        )
        problems = ((path, *problem) for path, listed in rows for problem in json.loads(listed))
        return [Problem(path, line, message) for path, line, message in problems if IS_CUT in message]

    def faults(self, filters: Filters) -> list[Fault]:
        statement = self._statement()
        visible = _visible(filters, statement)
        rows = statement.rows(
            f"SELECT DISTINCT {_SOURCE}, c.fault {_FROM} AND c.fault IS NOT NULL AND {visible} ORDER BY 1, 2"
        )
        return list(map(Fault._make, rows))


def _conditions(filters: Filters, statement: SqlStatement) -> Iterator[str]:
    """Yield what must hold for the chunks that the filters let through.

    What PostgreSQL has no function for is left to `_passes`.
    """
    yield f"c.{IN_VAULTS}"
    listed = (
        ("kind", filters.kinds),
        ("status", filters.statuses or tuple(SEARCHED_STATUSES)),
        ("learning_type", filters.learning_types),
        ("type", filters.types),
        ("scope", filters.scopes),
    )
    yield from (f"c.{column} = ANY({statement.bind(list(allowed))})" for column, allowed in listed if allowed)
    if not filters.kinds:
        yield f"c.kind <> ALL({statement.bind(list(WORKING_KINDS))})"
    if not filters.learning_types:
        yield "NOT (c.learning_type = 'proxy' AND right('/' || c.source, 9) = '/proxy.md')"
    if filters.since:
        yield f"c.dated >= {statement.bind(filters.since.isoformat())}"
    if filters.file is not None:
        yield "c.applies_to <> ''"
    yield _visible(filters, statement)


def _visible(filters: Filters, statement: SqlStatement) -> str:
    """Return the condition that hides sibling jobs and tasks; without a job everything is visible."""
    if not filters.job:
        return "true"
    same_task = f"c.task IS NULL{f' OR c.task = {statement.bind(filters.task)}' if filters.task else ''}"
    return f"(c.job IS NULL OR (c.job = {statement.bind(filters.job)} AND ({same_task})))"


def _passes(filters: Filters, tags: str, applies_to: str) -> bool:
    if filters.tags and not fits_tag(tags.split(","), tuple(tag.replace(",", " ") for tag in filters.tags)):
        return False
    if filters.file is None:
        return True
    return filters.file != NOWHERE and fits_any(filters.file, applies_to.split("\n"))
