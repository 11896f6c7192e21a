"""Translate a full-text expression to SQL over postings, with BM25."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from memory_kb.errors import UsageError
from memory_kb.index.postgres_rows import COUNTS
from memory_kb.index.postgres_schema import BLOCK_BITS, LENGTH_BITS, MOST_TERM_CHARS, VaultRow
from memory_kb.index.words import COLUMN_BITS, PLACE_BITS

if TYPE_CHECKING:
    from psycopg import Connection

#: SQLite's constants of BM25, and the least that it counts a term.
_SATURATION, _LENGTH, _LEAST_RARITY = 1.2, 0.75, 1e-6
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

    @property
    def is_choice(self) -> bool:
        """Whether it is whole phrases of which any will do."""
        if self.left and self.right:
            return self.operator == "OR" and self.left.is_choice and self.right.is_choice
        return self.phrase is not None and not self.phrase.is_open


#: What holds for the rows of the vaults that a statement is over, and the name of the vault of such a row.
IN_VAULTS = "vault = ANY(%(vaults)s)"
VAULT_NAME = "(%(names)s::text[])[array_position(%(vaults)s::integer[], {}.vault)]"
#: From the loosest to the tightest, as SQLite binds them, and the set operation of each.
_OPERATORS = {"OR": "UNION ALL", "AND": "INTERSECT", "NOT": "EXCEPT"}


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


class Bm25(NamedTuple):
    """What BM25 depends on beside the chunk: the number of chunks, their mean length, and how many match a phrase."""

    chunks: int
    mean_length: float
    frequency: Callable[[Phrase], int]

    def find_rarity(self, phrase: Phrase) -> float:
        """Return what a phrase is worth where it is said without end."""
        matching = self.frequency(phrase)
        rarity = math.log((self.chunks - matching + 0.5) / (matching + 0.5))
        return (_SATURATION + 1) * (rarity if rarity > 0 else _LEAST_RARITY)

    @property
    def damping(self) -> tuple[float, float]:
        """What holds a phrase that is said once below that: by itself, and for each term of the chunk's length."""
        return _SATURATION * (1 - _LENGTH), _SATURATION * _LENGTH / (self.mean_length or 1.0)


#: The number of a chunk in its block, from a head, and from a place.
_HEAD_KEY = f"(block << {BLOCK_BITS}) + (head >> {LENGTH_BITS})"
PLACE_KEY = f"(block << {BLOCK_BITS}) + (place >> {PLACE_BITS + COLUMN_BITS})"
_NOTHING = "SELECT 0::bigint AS key WHERE false"


class SqlStatement:
    """A statement over the postings of some vaults, with its named values."""

    def __init__(self, connection: Connection, vaults: Sequence[VaultRow]) -> None:
        self._connection = connection
        ids, names = [vault.id for vault in vaults], [vault.name for vault in vaults]
        self.values: dict[str, object] = {"vaults": ids, "names": names}

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
        return int(self.rows(f"SELECT count(DISTINCT key) FROM ({self.matches(node)}) f")[0][0])

    def _says(self, term: str, *, is_open: bool = False) -> str:
        """Return what holds for the postings of a term, or of all that begin with it."""
        if is_open:
            return f"p.term >= {self.bind(term)} AND p.term < {self.bind(term + LAST)}"
        return f"p.term = {self.bind(term)}"

    def _starts(self, phrase: Phrase) -> str:
        """Return the query for where a phrase starts: a term is as many places later as it has before it."""
        last = len(phrase.terms) - 1
        return " INTERSECT ".join(
            f"SELECT p.block, unnest(p.places) - {number} AS place FROM postings p "
            f"WHERE p.{IN_VAULTS} AND {self._says(term, is_open=phrase.is_open and number == last)}"
            for number, term in enumerate(phrase.terms)
        )

    def matches(self, node: QueryNode) -> str:
        """Return the query for the keys that an expression matches, some of them more than once."""
        if node.left and node.right and not node.is_choice:
            return f"({self.matches(node.left)}) {_OPERATORS[node.operator]} ({self.matches(node.right)})"
        phrases = [phrase for phrase in phrases_of(node) if phrase.is_findable]
        parts = [f"SELECT {PLACE_KEY} AS key FROM ({self._starts(one)}) s" for one in phrases if not one.is_term]
        if terms := [phrase.terms[0] for phrase in phrases if phrase.is_term]:
            says = f"p.{IN_VAULTS} AND p.term = ANY({self.bind(terms)})"
            heads = f"SELECT p.block, unnest(p.heads) AS head FROM postings p WHERE {says}"
            parts.append(f"SELECT {_HEAD_KEY} AS key FROM ({heads}) h")
        return " UNION ALL ".join(parts) or _NOTHING

    def ranks(self, node: QueryNode, weights: Sequence[float], bm25: Bm25, among: QueryNode | None = None) -> str:
        """Return the query for the keys that an expression matches with the BM25 of each, better is more negative.

        With `among`, only those that match it, too.
        """
        rarities = {
            phrase: times * bm25.find_rarity(phrase)
            for phrase, times in Counter(phrases_of(node)).items()
            if phrase.is_findable
        }
        fixed, growing = map(self.bind, bm25.damping)
        parts = []
        if terms := {phrase.terms[0]: rarity for phrase, rarity in rarities.items() if phrase.is_term}:
            asked = f"unnest({self.bind([*terms])}::text[], {self.bind([*terms.values()])}::float8[]) q (term, rarity)"
            heads = (
                f"SELECT p.block, q.rarity, unnest(p.heads) AS head, unnest(p.counts) AS counts "
                f"FROM {asked} JOIN postings p ON p.term = q.term WHERE p.{IN_VAULTS}"
            )
            parts.append(
                f"SELECT {_HEAD_KEY} AS key, head & {(1 << LENGTH_BITS) - 1} AS length, {self._add_counts(weights)} AS freq, rarity FROM ({heads}) h"
            )
        for phrase, rarity in rarities.items():
            if not phrase.is_term:
                weight = (
                    f"({self.bind(list(weights))}::float8[])[(place >> {PLACE_BITS} & {(1 << COLUMN_BITS) - 1}) + 1]"
                )
                found = f"SELECT {PLACE_KEY} AS key, sum({weight}) AS freq FROM ({self._starts(phrase)}) s GROUP BY 1"
                parts.append(
                    f"SELECT key, c.length, freq, {self.bind(rarity)}::float8 AS rarity FROM ({found}) f JOIN chunks c USING (key)"
                )
        required = [among] if among else []
        if not node.is_choice:
            required.append(node)
        where = " AND ".join(f"key IN ({self.matches(one)})" for one in required) or "true"
        worth = f"rarity / (1 + ({fixed}::float8 + {growing}::float8 * length) / freq)"
        said = (
            " UNION ALL ".join(parts)
            or f"SELECT key, 0 AS length, 1::float8 AS freq, 0::float8 AS rarity FROM ({_NOTHING}) f"
        )
        return f"SELECT key, -sum({worth}) AS rank FROM ({said}) f WHERE {where} GROUP BY key"

    def _add_counts(self, weights: Sequence[float]) -> str:
        """Return the weighted sum of how often each column says a term; mostly the content alone does."""
        one_by_one = " + ".join(
            f"{self.bind(weight)}::float8 * (counts >> {shift} & {most})"
            for weight, (shift, most) in zip(weights, COUNTS, strict=True)
        )
        number, (shift, _) = max(enumerate(COUNTS), key=lambda one: one[1])
        alone = f"{self.bind(weights[number])}::float8 * (counts >> {shift})"
        return f"CASE WHEN counts & {(1 << shift) - 1} = 0 THEN {alone} ELSE {one_by_one} END"
