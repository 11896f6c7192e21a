"""A team's index in PostgreSQL: search the vaults that one may read as one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memory_kb.errors import AmbiguousId, UnknownEntry
from memory_kb.index.filters import SqlDialect, fits_file, has_tag, join_tags, where
from memory_kb.index.port import IS_CUT, Candidate, Cosines, Index
from memory_kb.index.postgres_schema import VaultRow
from memory_kb.index.postgres_vectors import VectorTables, compare_vectors
from memory_kb.index.postgres_words import IN_VAULTS, Bm25, PostingsQuery, Words, find_rarity, parse
from memory_kb.model import Filters, Problem, StoredEntry
from memory_kb.text import printable

if TYPE_CHECKING:
    from psycopg import Connection

    from memory_kb.providers.protocols import Vectors, VectorSpace

#: Stands between the name of a vault and a path in it; no name of a vault has one.
SEPARATOR = ":"

_VAULT = "(%(names)s::text[])[array_position(%(vaults)s::integer[], {}.vault)]"
_SOURCE = f"{_VAULT.format('c')} || '{SEPARATOR}' || c.source"
#: Entries that supersede a chunk; a proposal does not supersede anything yet. The ids are a JSON list, searched as a
#: text because PostgreSQL cannot parse every such list.
_SUCCESSIONS = (
    "chunks s WHERE s.vault = c.vault AND s.supersedes IS NOT NULL AND s.status NOT IN ('proposed', 'rejected') "
    "AND strpos(s.supersedes, '\"' || c.entry_id || '\"') > 0"
)
_RIVALS = f"chunks o WHERE o.part = 0 AND o.entry_id = c.entry_id AND o.{IN_VAULTS} AND o.vault <> c.vault"
POSTGRES = SqlDialect(
    mark="%({})s",
    within="= ANY(%({})s)",
    pack=list,
    written={
        "key": "c.key",
        "id": "c.entry_id",
        "source": _SOURCE,
        "path": _SOURCE,
        "rank": "0.0::float8",
        "is_superseded": f"(c.is_superseded > 0 OR EXISTS (SELECT FROM {_SUCCESSIONS}))::integer",
        "is_single": "(NOT EXISTS (SELECT FROM chunks n WHERE n.key = c.key + 1))::integer",
    },
    here=f"c.{IN_VAULTS}",
    # An entry hides those of its id in wider scopes of its own vault; ids that several vaults have hide nothing.
    is_alone=f"NOT EXISTS (SELECT FROM {_RIVALS})",
    in_file=f"c.source = substr(%(source)s, strpos(%(source)s, '{SEPARATOR}') + 1) AND {_SOURCE} = %(source)s",
    file="c.vault, c.source",
    has_functions=False,
)


class PostgresIndex(Index):
    """Some vaults of a team's index, as one, as a transaction sees them.

    The source of a chunk is its vault's name and its path. Statistics are kept per vault and added up over the vaults,
    so that scores can be compared across them.
    """

    sql = POSTGRES

    def __init__(
        self, connection: Connection, vaults: Sequence[VaultRow], tokenizer: str, tables: VectorTables
    ) -> None:
        super().__init__(tokenizer)
        self._connection, self._vaults, self._tables = connection, tuple(vaults), tables
        self._chosen = {"vaults": [vault.id for vault in vaults], "names": [vault.name for vault in vaults]}
        self._counts: dict[Words, int] = {}

    @property
    def generation(self) -> int:
        return sum(vault.generation for vault in self._vaults)

    def _rows(self, query: str, values: Mapping[str, object] = {}) -> list[tuple[Any, ...]]:
        return self._connection.execute(query.encode(), {**self._chosen, **values}).fetchall()

    def match(
        self, expression: str, weights: Sequence[float], filters: Filters, limit: int, *, without: str = ""
    ) -> list[Candidate]:
        del without  # no match here is faster without them
        words, query = self._parse(expression), PostingsQuery()
        ranked = query.ranks(words, self._bm25(words, weights))
        # Filtering the best few afterwards gives the same as filtering all before, if enough are left.
        best = f"{ranked} ORDER BY 2 FETCH FIRST {2 * limit} ROWS WITH TIES"
        ranks: dict[int, float] = dict(self._rows(best, query.values))
        found = [one._replace(rank=ranks[one.key]) for one in self.candidates([*ranks], filters)]
        if len(found) < limit and len(ranks) >= 2 * limit:
            found = self._choose(filters, "", query.values, rank="f.rank", joined=f"JOIN ({ranked}) f ON f.key = c.key")
        rounded = (one._replace(rank=_round(one.rank)) for one in found)
        return sorted(rounded, key=lambda one: (one.rank, one.source, one.position))[:limit]

    def ranks(self, expression: str, weights: Sequence[float], keys: Sequence[int]) -> dict[int, float]:
        words, query = self._parse(expression), PostingsQuery(keys)
        rows = self._rows(query.ranks(words, self._bm25(words, weights)), query.values)
        return {key: _round(rank) for key, rank in rows}

    def matching(self, expressions: Iterable[str], keys: Sequence[int]) -> dict[str, frozenset[int]]:
        found = {}
        for expression in expressions:
            query = PostingsQuery(keys)
            rows = self._rows(query.matches(self._parse(expression)), query.values)
            found[expression] = frozenset(key for (key,) in rows)
        return found

    def _parse(self, expression: str) -> Words:
        return parse(expression, self._words.terms)

    def _bm25(self, words: Words, weights: Sequence[float]) -> Bm25:
        """Return the numbers for BM25; a phrase that occurs twice counts twice."""
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

    def _choose(
        self, filters: Filters, ending: str, values: Mapping[str, object], limit: int | None = None, **how: str
    ) -> list[Candidate]:
        """Return candidates that pass the filters, those that SQL cannot hold among them."""
        if not filters.tags and filters.file is None:
            return super()._choose(filters, ending, values, limit, **how)
        found = super()._choose(filters, ending, values, None, **how)
        rows = self._select(["key", "tags", "text_tags", "applies_to"], *self._among("key", [one.key for one in found]))
        passing = {
            key
            for key, tags, text_tags, applies_to in rows
            if (not filters.tags or has_tag(f"{tags},{text_tags}", join_tags(filters)))
            and (filters.file is None or fits_file(applies_to, filters.file))
        }
        return [one for one in found if one.key in passing][:limit]

    def compare(self, asked: tuple[VectorSpace, Vectors], filters: Filters) -> tuple[Cosines | None, tuple[str, ...]]:
        """Return the cosines of a query with the vectors of its space, None without any, and what lacks one."""
        return compare_vectors(self._connection, self._vaults, asked, where(filters, self.sql), self._tables)

    def frequency(self, expression: str) -> int:
        return self._count(self._parse(expression))

    def count_chunks(self) -> int:
        return sum(vault.chunks for vault in self._vaults)

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
            or list(self._entries(f"lower(%(name)s) = ANY({names})", {"name": wanted}))
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
        inside = list(self._entries(fits, {"path": path, "inner": path.partition(SEPARATOR)[2]}))
        return list({one.path: one for one in inside if one.line <= int(line)}.values()) or inside[:1]

    def successors(self, entry_id: str) -> list[str]:
        rows = self._rows(
            f"SELECT DISTINCT s.entry_id FROM chunks c, {_SUCCESSIONS} "
            f"AND c.part = 0 AND {self.sql.here} AND c.entry_id = %(id)s ORDER BY 1",
            {"id": entry_id},
        )
        return [successor for (successor,) in rows]

    def cut_files(self) -> list[Problem]:
        rows = self._rows(
            f"SELECT {_VAULT.format('f')} || '{SEPARATOR}' || f.path, f.problems FROM files f "
            f"WHERE f.{IN_VAULTS} AND f.problems IS NOT NULL ORDER BY 1"
        )
        problems = (Problem(path, *problem) for path, listed in rows for problem in json.loads(listed))
        return [problem for problem in problems if IS_CUT in problem.message]


def _round(rank: float) -> float:
    """Return a rank that is the same for the same words, in whichever order their parts were added up."""
    return float(f"{rank:.12g}")
