"""A team's index in PostgreSQL: search the vaults that one may read as one."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memory_kb.errors import AmbiguousId, UnknownEntry
from memory_kb.globs import fits_any
from memory_kb.index.filters import SqlDialect, visible, where
from memory_kb.index.port import IS_CUT, Candidate, Fault, StoredChunk, VectorTable, in_order
from memory_kb.index.postgres_schema import VaultRow
from memory_kb.index.postgres_vectors import VectorTables, compare
from memory_kb.index.postgres_words import IN_VAULTS, LAST, Bm25, PostingsQuery, Words, find_rarity, parse
from memory_kb.index.tokenizer import WordCutter
from memory_kb.model import NOWHERE, Filters, Problem, StoredEntry
from memory_kb.text import fits_tag, printable

if TYPE_CHECKING:
    from psycopg import Connection

    from memory_kb.providers.base import Vectors, VectorSpace

#: Stands between the name of a vault and a path in it; no name of a vault has one.
SEPARATOR = ":"

_DIALECT = SqlDialect("%({})s", "= ANY(%({})s)", list, has_functions=False)
_VAULT = "(%(names)s::text[])[array_position(%(vaults)s::integer[], {}.vault)]"
#: Entries that supersede a chunk; a proposal does not supersede anything yet. The ids are a JSON list, searched as a
#: text because PostgreSQL cannot parse every such list.
_SUCCESSIONS = (
    "chunks s WHERE s.vault = c.vault AND s.supersedes IS NOT NULL AND s.status NOT IN ('proposed', 'rejected') "
    "AND strpos(s.supersedes, '\"' || c.entry_id || '\"') > 0"
)
_IS_SUPERSEDED = f"(c.is_superseded > 0 OR EXISTS (SELECT FROM {_SUCCESSIONS}))::integer"
_SOURCE = f"{_VAULT.format('c')} || '{SEPARATOR}' || c.source"
_CANDIDATE = (
    f"c.importance, c.reinforcement_count, c.seen, c.status, c.scope, {_IS_SUPERSEDED}, c.title, c.headings, c.part, "
    "(NOT EXISTS (SELECT FROM chunks n WHERE n.key = c.key + 1))::integer, c.names, "
    f"{_SOURCE}, c.position"
)
_CHUNK = f"c.key, {_SOURCE}, c.position, c.part, c.entry_id, c.kind, c.type, c.status, c.scope, c.char_offset, c.line, c.end_line, c.title, c.headings, c.content, c.names"
_ENTRY = f"c.entry_id, c.title, c.kind, c.type, c.scope, c.status, {_SOURCE}, c.line, c.end_line, c.tags, c.dated, c.metadata, c.text_tags, c.fault, {_IS_SUPERSEDED}"
_FROM = f"FROM chunks c WHERE c.{IN_VAULTS}"


class PostgresIndex:
    """Some vaults of a team's index, as one, as a transaction sees them.

    See `memory_kb.index.port.Index` for what its methods promise. The source of a chunk is its vault's name and its
    path. Statistics are kept per vault and added up over the vaults, so that scores can be compared across them.
    """

    def __init__(
        self, connection: Connection, vaults: Sequence[VaultRow], tokenizer: str, tables: VectorTables
    ) -> None:
        self._connection, self._vaults, self._tables = connection, tuple(vaults), tables
        self._chosen = {"vaults": [vault.id for vault in vaults], "names": [vault.name for vault in vaults]}
        self._words = WordCutter(tokenizer)
        self._counts: dict[Words, int] = {}

    def close(self) -> None:
        """Free the tokenizer; the connection stays open."""
        self._words.close()

    @property
    def generation(self) -> int:
        return sum(vault.generation for vault in self._vaults)

    @property
    def is_partial(self) -> bool:
        return False

    def _rows(self, query: str, values: Mapping[str, object] | None = None) -> list[tuple[Any, ...]]:
        return self._connection.execute(query.encode(), {**self._chosen, **(values or {})}).fetchall()

    def match(
        self, expression: str, weights: Sequence[float], filters: Filters, limit: int, among: str = ""
    ) -> list[Candidate]:
        words, query = self._parse(expression), PostingsQuery()
        ranked = query.ranks(words, self._bm25(words, weights), self._parse(among) if among else None)
        # Filtering the best few afterwards gives the same as filtering all before, if enough are left.
        best = f"{ranked} ORDER BY 2 FETCH FIRST {2 * limit} ROWS WITH TIES"
        ranks: dict[int, float] = dict(self._rows(best, query.values))
        found = [one._replace(rank=ranks[one.key]) for one in self.candidates([*ranks], filters)]
        if len(found) < limit and len(ranks) >= 2 * limit:
            found = list(self._choose(filters, query.values, "f.rank", f"JOIN ({ranked}) f ON f.key = c.key"))
        return sorted((one._replace(rank=_round(one.rank)) for one in found), key=in_order)[:limit]

    def ranks(self, expression: str, weights: Sequence[float], keys: Sequence[int]) -> dict[int, float]:
        words, query = self._drop_unsaid(self._parse(expression), keys), PostingsQuery(keys)
        if not words.some:
            return {}
        rows = self._rows(query.ranks(words, self._bm25(words, weights)), query.values)
        return {key: _round(rank) for key, rank in rows}

    def _drop_unsaid(self, words: Words, keys: Sequence[int]) -> Words:
        """Return the words without phrases that no given chunk contains and that were not counted: counting is slow."""
        query = PostingsQuery(keys)
        new = [phrase for phrase in words.some if Words((phrase,)) not in self._counts]
        are_said = ", ".join(f"EXISTS ({query.matches(Words((phrase,)))})" for phrase in new)
        (found,) = self._rows(f"SELECT {are_said}", query.values)
        unsaid = {phrase for phrase, is_said in zip(new, found, strict=True) if not is_said}
        return words._replace(some=tuple(phrase for phrase in words.some if phrase not in unsaid))

    def neighbours(self, keys: Collection[int]) -> list[int]:
        rows = self._rows(
            "SELECT DISTINCT o.key FROM chunks c JOIN chunks o ON o.vault = c.vault AND o.source = c.source "
            "WHERE c.key = ANY(%(keys)s) ORDER BY 1",
            {"keys": list(keys)},
        )
        return [key for (key,) in rows]

    def matching(self, expression: str, keys: Sequence[int]) -> frozenset[int]:
        query = PostingsQuery(keys)
        return frozenset(key for (key,) in self._rows(query.matches(self._parse(expression)), query.values))

    def _parse(self, expression: str) -> Words:
        return parse(expression, self._words.terms)

    def _bm25(self, words: Words, weights: Sequence[float]) -> Bm25:
        """Return the numbers for BM25; a phrase that is there twice counts twice."""
        chunks, length = self.count_chunks(), sum(vault.terms for vault in self._vaults)
        phrases = Counter((*words.some, *words.every))
        worth = {one: times * find_rarity(chunks, self._count(Words((one,)))) for one, times in phrases.items()}
        return Bm25(worth, length / chunks if chunks else 0.0, weights)

    def _count(self, words: Words) -> int:
        """Return the number of chunks that match; it is counted once."""
        if words not in self._counts:
            query = PostingsQuery()
            self._counts[words] = int(self._rows(query.count(words), query.values)[0][0] or 0)
        return self._counts[words]

    def candidates(self, keys: Sequence[int], filters: Filters) -> list[Candidate]:
        wanted = "JOIN unnest(%(keys)s::bigint[]) wanted ON wanted = c.key"
        return list(self._choose(filters, {"keys": list(keys)}, joined=wanted))

    def newest(self, filters: Filters, limit: int) -> list[Candidate]:
        order = "ORDER BY c.seen DESC NULLS LAST, c.vault, c.source, c.position"
        return list(itertools.islice(self._choose(filters, {}, order=order), limit))

    def _choose(
        self,
        filters: Filters,
        values: Mapping[str, object],
        rank: str = "0.0::float8",
        joined: str = "",
        order: str = "",
    ) -> Iterator[Candidate]:
        """Yield the candidates that pass the filters, those that SQL cannot hold among them."""
        condition, more = where(filters, "c", _DIALECT)
        rows = self._rows(
            f"SELECT c.key, {rank}, {_CANDIDATE}, c.tags || ',' || c.text_tags, c.applies_to FROM chunks c {joined} "
            f"WHERE c.{IN_VAULTS} AND {condition} {order}",
            {**values, **more},
        )
        return (Candidate._make(row[:-2]) for row in rows if _passes(filters, *row[-2:]))

    def compare(
        self, asked: tuple[VectorSpace, Vectors], filters: Filters
    ) -> tuple[VectorTable | None, tuple[str, ...]]:
        """Return the cosines of a question with the vectors of its space, None without any, and what lacks one."""
        return compare(self._connection, self._vaults, asked, where(filters, "c", _DIALECT), self._tables)

    def stems(self, words: Iterable[str]) -> dict[str, str]:
        return self._words.stems(words)

    def frequency(self, expression: str) -> int:
        return self._count(self._parse(expression))

    def count_chunks(self) -> int:
        return sum(vault.chunks for vault in self._vaults)

    def chunks(self, keys: Iterable[int]) -> dict[int, StoredChunk]:
        rows = self._rows(f"SELECT {_CHUNK} {_FROM} AND c.key = ANY(%(keys)s)", {"keys": list(keys)})
        return {row[0]: StoredChunk._make(row) for row in rows}

    def keys_of(self, source: str, entry_id: str) -> list[int]:
        """Return the keys of an entry's chunks, in file order."""
        return self._column(source, entry_id, "key")

    def contents(self, entry: StoredEntry) -> str:
        """Return the indexed text of an entry, its chunks joined by blank lines."""
        return "\n\n".join(self._column(entry.path, entry.id, "content"))

    def _column(self, source: str, entry_id: str, column: str) -> list[Any]:
        """Return the values of a column in the chunks of an entry, in file order."""
        path = source.partition(SEPARATOR)[2]
        rows = self._rows(
            f"SELECT c.{column} {_FROM} AND c.source = %(path)s AND {_SOURCE} = %(source)s AND c.entry_id = %(id)s "
            "ORDER BY c.position",
            {"path": path, "source": source, "id": entry_id},
        )
        return [value for (value,) in rows]

    def entries_with_id(self, prefix: str) -> list[StoredEntry]:
        return self._entries("c.entry_id >= %(prefix)s AND c.entry_id < %(end)s", prefix=prefix, end=prefix + LAST)

    def _entries(self, condition: str, **values: str) -> list[StoredEntry]:
        query = f"SELECT {_ENTRY} {_FROM} AND c.part = 0 AND {condition} ORDER BY {_SOURCE}, c.position"
        return list(map(StoredEntry._make, self._rows(query, values)))

    def find(self, wanted: str) -> StoredEntry:
        """Return the entry that an id, its unique beginning, `path.md:LINE`, a title, an alias or a file names.

        A path may have its vault before it, as a source has.

        Raises:
            UnknownEntry: there is none.
            AmbiguousId: there are several.
        """
        wanted = printable(wanted)
        begun = self.entries_with_id(wanted) if wanted else []
        names = r"string_to_array(lower(c.title || E'\n' || c.names), E'\n')"
        found = (
            [one for one in begun if one.id == wanted]
            or begun
            or self._entries_at(wanted)
            or self._entries(f"lower(%(name)s) = ANY({names})", name=wanted)
        )
        if not found:
            raise UnknownEntry(wanted)
        if len(found) > 1:
            raise AmbiguousId(wanted, [f"{one.path}:{one.line}" for one in found])
        return found[0]

    def _entries_at(self, place: str) -> list[StoredEntry]:
        """Return the entry of each file with a path, and with `:LINE` after it the one which that line is in."""
        path, _, line = place.rpartition(":")
        if not line.isdecimal():
            path, line = place, "1"
        fits = f"c.source IN (%(path)s, %(inner)s) AND %(path)s IN (c.source, {_SOURCE})"
        inside = self._entries(fits, path=path, inner=path.partition(SEPARATOR)[2])
        return list({one.path: one for one in inside if one.line <= int(line)}.values()) or inside[:1]

    def successors(self, entry_id: str) -> list[str]:
        rows = self._rows(
            f"SELECT DISTINCT s.entry_id FROM chunks c, {_SUCCESSIONS} "
            f"AND c.part = 0 AND c.{IN_VAULTS} AND c.entry_id = %(id)s ORDER BY 1",
            {"id": entry_id},
        )
        return [successor for (successor,) in rows]

    def scopes_of(self, ids: Iterable[str], filters: Filters) -> Mapping[str, frozenset[str]]:
        # An entry hides those of its id in wider scopes of its own vault; ids that several vaults have hide nothing.
        condition, values = visible(filters, "c", _DIALECT)
        rows = self._rows(
            f"SELECT c.entry_id, array_agg(DISTINCT c.scope) {_FROM} AND c.part = 0 "
            f"AND c.entry_id = ANY(%(ids)s) AND {condition} AND NOT EXISTS "
            f"(SELECT FROM chunks o WHERE o.part = 0 AND o.entry_id = c.entry_id AND o.{IN_VAULTS} AND o.vault <> c.vault) "
            "GROUP BY 1",
            {**values, "ids": list(ids)},
        )
        return {entry_id: frozenset(scopes) for entry_id, scopes in rows}

    def cut_files(self) -> list[Problem]:
        rows = self._rows(
            f"SELECT {_VAULT.format('f')} || '{SEPARATOR}' || f.path, f.problems FROM files f "
            f"WHERE f.{IN_VAULTS} AND f.problems IS NOT NULL ORDER BY 1"
        )
        problems = (Problem(path, *problem) for path, listed in rows for problem in json.loads(listed))
        return [problem for problem in problems if IS_CUT in problem.message]

    def faults(self, filters: Filters) -> list[Fault]:
        condition, values = visible(filters, "c", _DIALECT)
        query = f"SELECT DISTINCT {_SOURCE}, c.fault {_FROM} AND c.fault IS NOT NULL AND {condition} ORDER BY 1, 2"
        return list(map(Fault._make, self._rows(query, values)))


def _round(rank: float) -> float:
    """Return a rank that is the same for the same words, in whichever order their parts were added up."""
    return float(f"{rank:.12g}")


def _passes(filters: Filters, tags: str, applies_to: str) -> bool:
    if filters.tags and not fits_tag(tags.split(","), tuple(tag.replace(",", " ") for tag in filters.tags)):
        return False
    if filters.file is None:
        return True
    return filters.file != NOWHERE and fits_any(filters.file, applies_to.split("\n"))
