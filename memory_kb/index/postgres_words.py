"""Translate a full-text expression to SQL over postings, with BM25."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from memory_kb.errors import UsageError
from memory_kb.index.postgres_schema import BLOCK_BITS
from memory_kb.index.words import COLUMN_BITS

if TYPE_CHECKING:
    from psycopg import Connection

#: SQLite's constants of BM25, and the least that it counts a term.
_SATURATION, _LENGTH, _LEAST_RARITY = 1.2, 0.75, 1e-6
#: Longer terms are not indexed: no key of PostgreSQL holds them, and nobody types them.
MOST_TERM_CHARS = 600
#: Where a number has how often each column of a chunk says a term, and the most that fits: a content is the longest.
COUNTS = ((0, 255), (8, 255), (48, 32_767), (16, 255), (24, 255), (32, 255), (40, 255))
_TOKEN = re.compile(r'\s*("[^"]*"(?:\s*\*)?|AND\b|OR\b|NOT\b|[()])')
#: Follows whatever begins with a text, after it.
LAST = "\U0010ffff"


class Phrase(NamedTuple):
    """Terms that are adjacent; with `is_open` the last one may be a prefix."""

    terms: tuple[str, ...]
    is_open: bool = False

    @property
    def is_term(self) -> bool:
        """Whether it is one whole term."""
        return len(self.terms) == 1 and not self.is_open

    @property
    def is_findable(self) -> bool:
        """Whether there is something to look for."""
        return bool(self.terms) and max(map(len, self.terms)) <= MOST_TERM_CHARS


class QueryNode(NamedTuple):
    """A part of an expression: a phrase, or an operator with its two sides."""

    operator: str
    phrase: Phrase | None = None
    left: QueryNode | None = None
    right: QueryNode | None = None


class Statistics(NamedTuple):
    """What BM25 depends on beside the chunk: the number of chunks, their mean length, and how many match a phrase."""

    chunks: int
    mean_length: float
    frequency: Callable[[Phrase], int]


#: What holds for the rows of the vaults that a statement is over.
IN_VAULTS = "vault = ANY(%(vaults)s)"
#: From the loosest to the tightest, as SQLite binds them, and the set operation of each.
_OPERATORS = {"OR": "UNION", "AND": "INTERSECT", "NOT": "EXCEPT"}


def parse(expression: str, cut: Callable[[str], list[str]]) -> QueryNode:
    """Read a full-text expression of quoted phrases, AND, OR, NOT and parentheses.

    Example:
        >>> parse('("a b" OR "c" *) NOT "d"', str.split).operator
        'NOT'
    """
    tokens: list[str] = _TOKEN.findall(expression)
    if "".join(tokens).replace(" ", "") != expression.replace(" ", ""):
        raise UsageError(f"the full-text expression cannot be read: {expression[:80]}", "ask in plain words")
    left = iter([*tokens, ""])
    token = next(left)

    def step() -> str:
        nonlocal token
        before, token = token, next(left, "")
        return before

    def read(operators: Sequence[str]) -> QueryNode:
        if not operators:
            return read_one()
        node = read(operators[1:])
        while token == operators[0]:
            step()
            node = QueryNode(operators[0], None, node, read(operators[1:]))
        return node

    def read_one() -> QueryNode:
        if token == "(":  # noqa: S105 - a parenthesis
            step()
            node = read(tuple(_OPERATORS))
            step()
            return node
        word = step()
        return QueryNode("", Phrase(tuple(cut(word.rstrip("* \t")[1:-1])), word.endswith("*")))

    return read(tuple(_OPERATORS))


def phrases_of(node: QueryNode) -> Iterator[Phrase]:
    """Yield the phrases of an expression that a match may have, each as often as it is there."""
    if node.phrase:
        yield node.phrase
    for side in (node.left, None if node.operator == "NOT" else node.right):
        if side:
            yield from phrases_of(side)


class SqlStatement:
    """A statement over the postings of some vaults, or of some of their chunks alone, with its named values."""

    def __init__(self, connection: Connection, vaults: Sequence[int], keys: Sequence[int] | None = None) -> None:
        self._connection = connection
        self.values: dict[str, object] = {"vaults": list(vaults)}
        self._among = self._filter = ""
        if keys is not None:
            # Not for the index: it would look for every block in every vault.
            self._among = f" AND {{0}}.block + 0 = ANY({self.bind(sorted({key >> BLOCK_BITS for key in keys}))})"
            self._filter = f" WHERE key = ANY({self.bind(list(keys))}::bigint[])"

    def bind(self, value: object) -> str:
        """Return the mark under which a value is bound."""
        name = f"v{len(self.values)}"
        self.values[name] = value
        return f"%({name})s"

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return self._connection.execute(query.encode(), self.values).fetchall()

    def count(self, node: QueryNode) -> int:
        """Return the number of chunks that an expression matches."""
        return int(self.rows(f"SELECT count(*) FROM ({self.matches(node)}) f")[0][0])

    def _fits(self, table: str, term: str, *, is_open: bool = False) -> str:
        """Return what holds for the postings of a term, or of all that begin with it, in the vaults."""
        fits = f"{table}.{IN_VAULTS}{self._among.format(table)} AND {table}.term"
        if is_open:
            return f"{fits} >= {self.bind(term)} AND {table}.term < {self.bind(term + LAST)}"
        return f"{fits} = {self.bind(term)}"

    def _read(self, term: str, columns: Sequence[str]) -> str:
        """Return the query for columns of the postings of a term, with the key of each chunk."""
        listed = ", ".join(f"unnest(p.{name}) AS {name}" for name in ("numbers", *columns))
        found = f"SELECT p.block, {listed} FROM postings p WHERE {self._fits('p', term)}"
        keyed = f"SELECT (block << {BLOCK_BITS}) + numbers AS key, o.* FROM ({found}) o"
        return f"SELECT * FROM ({keyed}) k{self._filter}"

    def _starts(self, phrase: Phrase) -> str:
        """Return the query for where a phrase starts: block by block, a term is as many places later as it has before it."""
        last, tables = len(phrase.terms) - 1, [f"p{number}" for number in range(len(phrase.terms))]
        fits = (
            self._fits(table, term, is_open=phrase.is_open and table == tables[last])
            for table, term in zip(tables, phrase.terms, strict=True)
        )
        same = "".join(f" JOIN postings {table} USING (vault, block)" for table in tables[1:])
        places = " INTERSECT ".join(
            f"SELECT unnest({table}.owners) AS owner, unnest({table}.places) - {number} AS start"
            for number, table in enumerate(tables)
        )
        found = f"FROM postings p0{same}, LATERAL ({places}) o WHERE {' AND '.join(fits)}"
        return f"SELECT * FROM (SELECT (p0.block << {BLOCK_BITS}) + owner AS key, start {found}) k{self._filter}"

    def _weigh(self, phrase: Phrase, weights: Sequence[float]) -> str:
        """Return the query for the chunks that say a phrase, with their length and its weighted frequency."""
        if not phrase.is_findable:
            return "SELECT 0::bigint AS key, 0 AS length, 0::float8 AS freq WHERE false"
        if phrase.is_term:
            freq = " + ".join(
                f"{self.bind(weight)}::float8 * (counts >> {shift} & {most})"
                for weight, (shift, most) in zip(weights, COUNTS, strict=True)
            )
            found = self._read(phrase.terms[0], ("lengths", "counts"))
            return f"SELECT key, lengths AS length, {freq} AS freq FROM ({found}) p"
        weight = f"({self.bind(list(weights))}::float8[])[(start >> {COLUMN_BITS}) + 1]"
        return (
            f"SELECT key, c.length, freq FROM (SELECT key, sum({weight}) AS freq FROM ({self._starts(phrase)}) s "
            "GROUP BY key) f JOIN chunks c USING (key)"
        )

    def matches(self, node: QueryNode) -> str:
        """Return the query for the keys that an expression matches."""
        if node.left and node.right:
            return f"({self.matches(node.left)}) {_OPERATORS[node.operator]} ({self.matches(node.right)})"
        assert node.phrase
        if not node.phrase.is_findable:
            return "SELECT 0::bigint AS key WHERE false"
        if node.phrase.is_term:
            return f"SELECT key FROM ({self._read(node.phrase.terms[0], ())}) f"
        return f"SELECT DISTINCT key FROM ({self._starts(node.phrase)}) f"

    def ranks(
        self, node: QueryNode, weights: Sequence[float], statistics: Statistics, among: QueryNode | None = None
    ) -> str:
        """Return the query for the keys that an expression matches with the BM25 of each, better is more negative.

        With `among`, only those that match it, too.
        """
        parts = []
        for phrase in phrases_of(node):
            rarity = find_rarity(statistics.frequency(phrase), statistics.chunks)
            found = self._weigh(phrase, weights)
            parts.append(f"SELECT key, length, freq, {self.bind(rarity)}::float8 AS rarity FROM ({found}) f")
        fixed, growing = _SATURATION * (1 - _LENGTH), _SATURATION * _LENGTH / (statistics.mean_length or 1.0)
        worth = (
            f"rarity * (freq * {self.bind(_SATURATION + 1)}::float8) "
            f"/ (freq + {self.bind(fixed)}::float8 + {self.bind(growing)}::float8 * length)"
        )
        required = [among] if among else []
        if not set(_operators(node)) <= {"", "OR"}:
            required.append(node)
        where = " AND ".join(f"key IN ({self.matches(one)})" for one in required) or "true"
        return f"SELECT key, -sum({worth}) AS rank FROM ({' UNION ALL '.join(parts)}) f WHERE {where} GROUP BY key"


def _operators(node: QueryNode) -> Iterator[str]:
    yield node.operator
    for side in (node.left, node.right):
        if side:
            yield from _operators(side)


def find_rarity(matching: int, chunks: int) -> float:
    """Return what BM25 makes of a phrase that so many of all chunks have.

    Example:
        >>> round(find_rarity(1, 100), 2), find_rarity(60, 100)
        (4.19, 1e-06)
    """
    rarity = math.log((chunks - matching + 0.5) / (matching + 0.5))
    return rarity if rarity > 0 else _LEAST_RARITY


@functools.lru_cache(10_000)
def pack_counts(columns: str) -> str:
    """Return the number for how often a term is said, from the digits of the columns that say it.

    Example:
        >>> pack_counts("002") == str(2 | 1 << 48)
        True
    """
    said = ((columns.count(digit), *COUNTS[int(digit)]) for digit in set(columns))
    return str(sum(min(count, most) << shift for count, shift, most in said))
