"""Translate a full-text expression to SQL over postings, with BM25."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from memory_kb.errors import UsageError
from memory_kb.index.postgres_schema import COUNTS
from memory_kb.index.words import COLUMN_BITS

#: SQLite's constants of BM25, and the least that it counts a term.
_SATURATION, _LENGTH, _LEAST_RARITY = 1.2, 0.75, 1e-6
#: Longer terms are not indexed: no key of PostgreSQL holds them, and nobody types them.
MOST_TERM_CHARS = 600
_TOKEN = re.compile(r'\s*("[^"]*"(?:\s*\*)?|AND\b|OR\b|NOT\b|[()])')
_LAST = "\U0010ffff"


class Phrase(NamedTuple):
    """Terms that are adjacent; with `is_open` the last one may be a prefix."""

    terms: tuple[str, ...]
    is_open: bool = False


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
    """A statement over the postings of some vaults, with its named values.

    `rarest` says which of some terms the fewest chunks have.
    """

    def __init__(self, vaults: Sequence[int], rarest: Callable[[Sequence[str]], str]) -> None:
        self._rarest = rarest
        self.values: dict[str, object] = {"vaults": list(vaults)}

    def bind(self, value: object) -> str:
        """Return the mark under which a value is bound."""
        name = f"v{len(self.values)}"
        self.values[name] = value
        return f"%({name})s"

    def phrase(self, phrase: Phrase, weights: Sequence[float] | None = None, keys: str = "") -> str:
        """Return the query for the chunks of a phrase, with their length and its weighted frequency if there are weights.

        `keys` is the mark of the only keys that are wanted.
        """
        wanted = f"p.vault = ANY(%(vaults)s){f' AND p.key = ANY({keys})' if keys else ''} AND p.term"
        if not phrase.terms or any(len(term) > MOST_TERM_CHARS for term in phrase.terms):
            return "SELECT 0::bigint AS key, 0 AS length, 0::float8 AS freq WHERE false"
        if len(phrase.terms) == 1 and not phrase.is_open:
            counts = zip(COUNTS, weights or (), strict=False)
            freq = " + ".join(f"p.{name} * {self.bind(weight)}::float8" for name, weight in counts) or "0::float8"
            return (
                f"SELECT p.key, p.length, {freq} AS freq FROM postings p WHERE {wanted} = {self.bind(phrase.terms[0])}"
            )
        last = len(phrase.terms) - 1
        steps = [self._step(term, n, is_open=phrase.is_open and n == last) for n, term in enumerate(phrase.terms)]
        closed = phrase.terms[:last] if phrase.is_open else phrase.terms
        # The others are looked for only where its rarest term is.
        rarest = f"= {self.bind(self._rarest(closed))}" if closed else self._beginning(phrase.terms[0])
        weight = f"({self.bind(list(weights))}::float8[])[(start >> {COLUMN_BITS}) + 1]" if weights else "0::float8"
        return (
            f"WITH rare AS MATERIALIZED (SELECT DISTINCT p.vault, p.key FROM postings p WHERE {wanted} {rarest}) "
            f"SELECT key, length, sum({weight}) AS freq FROM (SELECT key, length, start FROM ({' UNION ALL '.join(steps)}) s "
            f"GROUP BY key, length, start HAVING count(*) = {last + 1}) f GROUP BY key, length"
        )

    def _step(self, term: str, number: int, *, is_open: bool) -> str:
        """Return the query for where a phrase would start whose term of this number is where it does."""
        fits = self._beginning(term) if is_open else f"= {self.bind(term)}"
        return (
            f"SELECT p.key, p.length, place - {number} AS start FROM rare r JOIN postings p ON p.vault = r.vault "
            f"AND p.key = r.key AND p.term {fits}, unnest(p.places) place"
        )

    def _beginning(self, term: str) -> str:
        return f">= {self.bind(term)} AND p.term < {self.bind(term + _LAST)}"

    def matches(self, node: QueryNode, keys: str = "") -> str:
        """Return the query for the keys that an expression matches."""
        if node.phrase:
            return f"SELECT key FROM ({self.phrase(node.phrase, None, keys)}) f"
        assert node.left
        assert node.right
        return f"({self.matches(node.left, keys)}) {_OPERATORS[node.operator]} ({self.matches(node.right, keys)})"

    def ranks(
        self, node: QueryNode, weights: Sequence[float], statistics: Statistics, keys: Sequence[int] | None = None
    ) -> str:
        """Return the query for the keys that an expression matches with the BM25 of each, better is more negative."""
        wanted = "" if keys is None else self.bind(list(keys))
        parts = []
        for phrase in phrases_of(node):
            rarity = find_rarity(statistics.frequency(phrase), statistics.chunks)
            found = self.phrase(phrase, weights, wanted)
            parts.append(f"SELECT key, length, freq, {self.bind(rarity)}::float8 AS rarity FROM ({found}) f")
        fixed, growing = _SATURATION * (1 - _LENGTH), _SATURATION * _LENGTH / (statistics.mean_length or 1.0)
        worth = (
            f"rarity * (freq * {self.bind(_SATURATION + 1)}::float8) "
            f"/ (freq + {self.bind(fixed)}::float8 + {self.bind(growing)}::float8 * length)"
        )
        plain = all(part in {"", "OR"} for part in _operators(node))
        where = "" if plain else f"WHERE key IN ({self.matches(node, wanted)})"
        return f"SELECT key, -sum({worth}) AS rank FROM ({' UNION ALL '.join(parts)}) f {where} GROUP BY key"


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
