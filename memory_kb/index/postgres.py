"""A team's index in PostgreSQL: search the vaults that one may read as one."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from memory_kb.globs import fits_any
from memory_kb.index.port import IS_CUT, Candidate, Fault, StoredChunk, VectorTable, in_order
from memory_kb.index.postgres_schema import KEY_BITS, VaultRow, list_vaults
from memory_kb.index.postgres_vectors import compare, write_space
from memory_kb.index.postgres_words import Phrase, QueryNode, SqlStatement, Statistics, parse, phrases_of
from memory_kb.index.words import WordCutter
from memory_kb.markdown.sections import PASSAGE, split_text
from memory_kb.model import NOWHERE, SEARCHED_STATUSES, WORKING_KINDS, Filters, Problem, StoredEntry
from memory_kb.text import fits_tag

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
_CANDIDATE = (
    f"c.importance, c.reinforcement_count, c.seen, c.status, c.scope, {_IS_SUPERSEDED}, c.title, c.headings, c.part, "
    "(NOT EXISTS (SELECT FROM chunks n WHERE n.key = c.key + 1))::integer, c.names, "
    f"(SELECT v.name || '{SEPARATOR}' FROM vaults v WHERE v.id = c.vault) || c.source, c.position"
)
_SOURCE = f"v.name || '{SEPARATOR}' || c.source"
_CHUNK = f"c.key, {_SOURCE}, c.position, c.part, c.entry_id, c.kind, c.type, c.status, c.scope, c.char_offset, c.line, c.end_line, c.title, c.headings, c.content, c.names"
_ENTRY = f"c.entry_id, c.title, c.kind, c.type, c.scope, c.status, {_SOURCE}, c.line, c.end_line, c.tags, c.dated, c.metadata, c.text_tags, c.fault, {_IS_SUPERSEDED}"
_FROM = "FROM chunks c JOIN vaults v ON v.id = c.vault"


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
            yield

    def match(
        self,
        expression: str,
        weights: Sequence[float],
        filters: Filters,
        limit: int,
        among: str = "",
    ) -> list[Candidate]:
        statement, node = self._statement(), parse(expression, self._words.terms)
        wanted = parse(among, self._words.terms) if among else None
        ranked = statement.ranks(node, weights, self._weigh(node), among=wanted)
        # Filtering the best few afterwards gives the same as filtering all before, if enough are left.
        best_few = f"{ranked} ORDER BY 2 FETCH FIRST {2 * limit} ROWS WITH TIES"
        ranks: dict[int, float] = dict(self._connection.execute(best_few.encode(), statement.values).fetchall())
        found = sorted((one._replace(rank=ranks[one.key]) for one in self.candidates([*ranks], filters)), key=in_order)
        if len(found) < limit and len(ranks) >= 2 * limit:
            found = sorted(
                self._choose(statement, filters, "f.rank", f"JOIN ({ranked}) f ON f.key = c.key", ""), key=in_order
            )
        return found[:limit]

    def ranks(self, expression: str, weights: Sequence[float], keys: Sequence[int]) -> dict[int, float]:
        if not keys:
            return {}
        statement, node = self._statement(keys), parse(expression, self._words.terms)
        query = statement.ranks(node, weights, self._weigh(node), keys)
        return dict(self._connection.execute(query.encode(), statement.values).fetchall())

    def matching(self, expression: str, keys: Sequence[int]) -> frozenset[int]:
        statement = self._statement(keys)
        matches = statement.matches(parse(expression, self._words.terms), keys)
        return frozenset(key for (key,) in self._connection.execute(matches.encode(), statement.values))

    def _statement(self, keys: Iterable[int] | None = None) -> SqlStatement:
        """Return a statement over all vaults, or over those of some chunks."""
        return SqlStatement(self._ids if keys is None else sorted({key >> KEY_BITS for key in keys}))

    def _weigh(self, node: QueryNode) -> Statistics:
        """Return what the BM25 of an expression depends on."""
        self._count_terms({term for phrase in phrases_of(node) for term in phrase.terms})
        chunks, length = self.count_chunks(), sum(vault.terms for vault in self._vaults)
        return Statistics(chunks, length / chunks if chunks else 0.0, self._count)

    def _count_terms(self, terms: Iterable[str]) -> None:
        """Count the chunks that have each of some terms, at once."""
        new = [term for term in terms if Phrase((term,)) not in self._frequencies]
        if new:
            self._frequencies |= {Phrase((term,)): 0 for term in new}
            query = "SELECT term, sum(chunks) FROM postings WHERE vault = ANY(%s) AND term = ANY(%s) GROUP BY term"
            counts = self._connection.execute(query, (self._ids, new))
            self._frequencies |= {Phrase((term,)): number for term, number in counts}

    def _count(self, phrase: Phrase) -> int:
        """Return the number of chunks that say a phrase; it is counted once for every state of the vaults."""
        if phrase not in self._frequencies:
            statement = self._statement()
            counted = f"SELECT count(*) FROM ({statement.matches(QueryNode('', phrase))}) f"
            self._frequencies[phrase] = self._ask_number(counted, statement)
        return self._frequencies[phrase]

    def _ask_number(self, query: str, statement: SqlStatement) -> int:
        row = self._connection.execute(query.encode(), statement.values).fetchone()
        return int(row[0]) if row else 0

    def candidates(self, keys: Sequence[int], filters: Filters) -> list[Candidate]:
        statement = self._statement()
        wanted = f"JOIN unnest({statement.bind(list(keys))}::bigint[]) wanted ON wanted = c.key"
        return list(self._choose(statement, filters, "0.0::float8", wanted, ""))

    def newest(self, filters: Filters, limit: int) -> list[Candidate]:
        order = "ORDER BY c.seen DESC NULLS LAST, c.vault, c.source, c.position"
        found = self._choose(self._statement(), filters, "0.0::float8", "", order)
        return list(itertools.islice(found, limit))

    def _choose(
        self, statement: SqlStatement, filters: Filters, rank: str, joined: str, order: str
    ) -> Iterator[Candidate]:
        """Yield the candidates that pass the filters, those that SQL cannot hold among them."""
        conditions = " AND ".join(_conditions(filters, statement))
        rows = self._connection.execute(
            f"SELECT c.key, {rank}, {_CANDIDATE}, c.tags || ',' || c.text_tags, c.applies_to FROM chunks c {joined} "
            f"WHERE {conditions} {order}".encode(),
            statement.values,
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
        rows = self._connection.execute(
            f"SELECT c.key {_FROM} WHERE c.vault = ANY(%s) AND {_SOURCE} = %s AND c.entry_id = %s ORDER BY c.position, c.part".encode(),
            (self._ids, entry.source, entry.entry_id),
        )
        return [key for (key,) in rows]

    def cut(self, text: str) -> list[tuple[int, int]]:
        return [(piece.start, piece.end) for piece in split_text(text, 0, len(text), PASSAGE)]

    def stems(self, words: Iterable[str]) -> dict[str, str]:
        return self._words.stems(words)

    def frequency(self, expression: str) -> int:
        node = parse(expression, self._words.terms)
        if node.phrase:
            return self._count(node.phrase)
        statement = self._statement()
        return self._ask_number(f"SELECT count(*) FROM ({statement.matches(node)}) f", statement)

    def count_chunks(self) -> int:
        return sum(vault.chunks for vault in self._vaults)

    def count_entries(self, expressions: Sequence[str], without: str) -> tuple[list[int], int]:
        counts = [
            (self._count_entries(one, without) or min(1, self._count_entries(one, ""))) if one else 0
            for one in expressions
        ]
        return counts, self._count_entries(None, without)

    def _count_entries(self, expression: str | None, without: str) -> int:
        statement = self._statement()
        wanted = f"c.vault = ANY(%(vaults)s) AND c.kind <> {statement.bind(without)}"
        if expression is None:
            return self._ask_number(f"SELECT count(*) FROM chunks c WHERE c.part = 0 AND {wanted}", statement)
        matching = statement.matches(parse(expression, self._words.terms))
        # The chunks of an entry have consecutive keys.
        return self._ask_number(
            f"SELECT count(DISTINCT c.key - c.part) FROM chunks c WHERE c.key IN ({matching}) AND {wanted}", statement
        )

    def chunks(self, keys: Iterable[int]) -> dict[int, StoredChunk]:
        rows = self._connection.execute(
            f"SELECT {_CHUNK} {_FROM} WHERE c.vault = ANY(%s) AND c.key = ANY(%s)".encode(), (self._ids, list(keys))
        )
        return {row[0]: StoredChunk._make(row) for row in rows}

    def entries_with_id(self, prefix: str) -> list[StoredEntry]:
        rows = self._connection.execute(
            f"SELECT {_ENTRY} {_FROM} WHERE c.part = 0 AND c.vault = ANY(%s) AND c.entry_id >= %s AND c.entry_id < %s "
            "ORDER BY v.name, c.source, c.position".encode(),
            (self._ids, prefix, prefix + "\U0010ffff"),
        )
        return list(map(StoredEntry._make, rows))

    def successors(self, entry_id: str) -> list[str]:
        rows = self._connection.execute(
            f"SELECT DISTINCT s.entry_id FROM chunks c JOIN LATERAL (SELECT s.entry_id FROM {_SUCCESSIONS}) s ON true "
            "WHERE c.part = 0 AND c.vault = ANY(%s) AND c.entry_id = %s ORDER BY 1".encode(),
            (self._ids, entry_id),
        )
        return [successor for (successor,) in rows]

    def scopes_of(self, ids: Iterable[str], filters: Filters) -> Mapping[str, frozenset[str]]:
        # An entry hides those of its id in wider scopes of its own vault; ids that several vaults have hide nothing.
        statement = self._statement()
        rows = self._connection.execute(
            f"SELECT c.entry_id, c.scope FROM chunks c WHERE c.part = 0 AND c.vault = ANY(%(vaults)s) "
            f"AND c.entry_id = ANY({statement.bind(list(ids))}) AND {_visible(filters, statement)} AND NOT EXISTS "
            "(SELECT FROM chunks o WHERE o.part = 0 AND o.entry_id = c.entry_id AND o.vault = ANY(%(vaults)s) "
            "AND o.vault <> c.vault) GROUP BY 1, 2".encode(),
            statement.values,
        )
        found: dict[str, set[str]] = {}
        for entry_id, scope in rows:
            found.setdefault(entry_id, set()).add(scope)
        return {entry_id: frozenset(scopes) for entry_id, scopes in found.items()}

    def cut_files(self) -> list[Problem]:
        rows = self._connection.execute(
            f"SELECT v.name || '{SEPARATOR}' || f.path, f.problems FROM files f JOIN vaults v ON v.id = f.vault "
            "WHERE f.vault = ANY(%s) AND f.problems IS NOT NULL ORDER BY 1".encode(),
            (self._ids,),
        )
        problems = ((path, *problem) for path, listed in rows for problem in json.loads(listed))
        return [Problem(path, line, message) for path, line, message in problems if IS_CUT in message]

    def faults(self, filters: Filters) -> list[Fault]:
        statement = self._statement()
        rows = self._connection.execute(
            f"SELECT DISTINCT {_SOURCE}, c.fault {_FROM} WHERE c.fault IS NOT NULL AND c.vault = ANY(%(vaults)s) "
            f"AND {_visible(filters, statement)} ORDER BY 1, 2".encode(),
            statement.values,
        )
        return list(map(Fault._make, rows))


def _conditions(filters: Filters, statement: SqlStatement) -> Iterator[str]:
    """Yield what must hold for the chunks that the filters let through.

    What PostgreSQL has no function for is left to `_passes`.
    """
    yield "c.vault = ANY(%(vaults)s)"
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
