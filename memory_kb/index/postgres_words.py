"""Translate a full-text expression to SQL over postings, with BM25."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from memory_kb.index.filters import LAST
from memory_kb.index.postgres_schema import BLOCK_BITS, KEY_BITS, LENGTH_BITS, MOST_TERM_CHARS, PLACE_KEY, WORD_BITS
from memory_kb.index.tokenizer import COLUMN_BITS, PLACE_BITS

#: SQLite's constants of BM25, and the least that it counts a term.
_SATURATION, _LENGTH, _LEAST_RARITY = 1.2, 0.75, 1e-6
_PART = re.compile(r'"([^"]*)"( \*)?( AND\b)?|(NOT)\b')
#: What holds for the rows of the vaults that are searched.
IN_VAULTS = "vault = ANY(%(vaults)s)"


class Phrase(NamedTuple):
    """Adjacent terms, empty if nothing can match; with `is_open` the last one may be a prefix."""

    terms: tuple[str, ...]
    is_open: bool = False

    @property
    def is_term(self) -> bool:
        """Whether it is one whole term."""
        return len(self.terms) == 1 and not self.is_open


class Words(NamedTuple):
    """A parsed expression: it matches chunks with one of `some` phrases, all of `every` and none of `without`."""

    some: tuple[Phrase, ...]
    every: tuple[Phrase, ...] = ()
    without: tuple[Phrase, ...] = ()


def parse(expression: str, cut: Callable[[str], list[str]]) -> Words:
    """Read a full-text expression as a search writes it.

    It has phrases with OR between them; before them may be some with AND, and after them, behind NOT, others with OR.

    Example:
        >>> words = parse('("a b" AND ("a b" OR "c" *)) NOT ("d")', str.split)
        >>> words.every == words.some[:1], words.some[1], words.without
        (True, Phrase(terms=('c',), is_open=True), (Phrase(terms=('d',), is_open=False),))
    """
    some: list[Phrase] = []
    every: list[Phrase] = []
    without: list[Phrase] = []
    rest = some
    for text, star, conjunction, negation in _PART.findall(expression):
        if negation:
            rest = without
        else:
            terms = tuple(cut(text))
            phrase = Phrase(terms if max(map(len, terms), default=0) <= MOST_TERM_CHARS else (), bool(star))
            (every if conjunction else rest).append(phrase)
    return Words(tuple(some), tuple(every), tuple(without))


class Bm25(NamedTuple):
    """The numbers of BM25 that do not depend on the chunk.

    `worth` is what a phrase counts where it is said without end, `weights` what one place in each column does.
    """

    worth: Mapping[Phrase, float]
    mean_length: float
    weights: Sequence[float]


def find_rarity(chunks: int, matching: int) -> float:
    """Return the most that BM25 gives for a phrase, however often it occurs, if `matching` of the chunks contain it.

    Example:
        >>> round(find_rarity(100, 3), 3), find_rarity(10, 9) > 0
        (7.32, True)
    """
    rarity = math.log((chunks - matching + 0.5) / (matching + 0.5))
    return (_SATURATION + 1) * (rarity if rarity > 0 else _LEAST_RARITY)


class PostingsQuery:
    """A query over the postings of the vaults that are searched, or of some chunks alone, with its named values."""

    def __init__(self, keys: Collection[int] | None = None) -> None:
        self.values: dict[str, object] = {}
        self._postings, self._near, self._among = "postings p", f"p.{IN_VAULTS}", "true"
        if keys is not None:
            blocks = self._bind(sorted({key >> BLOCK_BITS for key in keys}))
            self._postings = f"unnest({blocks}::bigint[]) b, postings p"
            self._near = f"p.block = b AND p.vault = (b >> {KEY_BITS - BLOCK_BITS})::integer"
            self._among = f"key = ANY({self._bind(list(keys))}::bigint[])"

    def _bind(self, value: object) -> str:
        """Bind a value and return its placeholder."""
        name = f"v{len(self.values)}"
        self.values[name] = value
        return f"%({name})s"

    def _starts(self, phrase: Phrase) -> str:
        """Return the query for where a phrase starts: a term is as many places later as it has before it."""
        parts = []
        for number, term in enumerate(phrase.terms):
            says = f"p.term = {self._bind(term)}"
            if phrase.is_open and number == len(phrase.terms) - 1:
                says = f"p.term >= {self._bind(term)} AND p.term < {self._bind(term + LAST)}"
            found = f"FROM {self._postings} WHERE {self._near} AND {says}"
            parts.append(f"SELECT p.block, unnest(p.places) - {number} AS place {found}")
        return " INTERSECT ".join(parts)

    def _places(self, worth: Mapping[Phrase, float]) -> str:
        """Return the query for the places of phrases, with the number and the worth of each; all terms are read at once."""
        terms = {phrase.terms[0]: value for phrase, value in worth.items() if phrase.is_term}
        asked = f"unnest({self._bind([*terms])}::text[], {self._bind([*terms.values()])}::float8[])"
        said = (
            f"{asked} WITH ORDINALITY q (term, worth, number), {self._postings} WHERE {self._near} AND p.term = q.term"
        )
        parts = [f"SELECT p.block, unnest(p.places) AS place, q.number, q.worth FROM {said}"]
        for number, (phrase, value) in enumerate(worth.items(), len(terms) + 1):
            if phrase.terms and not phrase.is_term:
                parts.append(
                    f"SELECT block, place, {number}, {self._bind(value)}::float8 FROM ({self._starts(phrase)}) s"
                )
        return " UNION ALL ".join(parts)

    def _saying(self, phrases: Iterable[Phrase]) -> str:
        """Return the query for the keys of the chunks that say one of some phrases, some of them more than once."""
        places = self._places(dict.fromkeys(phrases, 0.0))
        return f"SELECT key FROM (SELECT {PLACE_KEY} AS key FROM ({places}) s) k WHERE {self._among}"

    def matches(self, words: Words) -> str:
        """Return the query for the keys of the chunks that match, some of them more than once."""
        conditions = [f"key IN ({self._saying([phrase])})" for phrase in words.every]
        if words.without:
            conditions.append(f"key NOT IN ({self._saying(words.without)})")
        return f"SELECT key FROM ({self._saying(words.some)}) m WHERE {' AND '.join(conditions) or 'true'}"

    def count(self, words: Words) -> str:
        """Return the query for the number of chunks that match."""
        if words.some and words.some[0].is_term and words == Words(words.some[:1]):
            term = self._bind(words.some[0].terms[0])
            return f"SELECT sum(p.chunks) FROM {self._postings} WHERE {self._near} AND p.term = {term}"
        return f"SELECT count(DISTINCT key) FROM ({self.matches(words)}) m"

    def ranks(self, words: Words, bm25: Bm25) -> str:
        """Return the query for the keys of the chunks that match with the BM25 of each, better is more negative."""
        weights = self._bind(list(bm25.weights))
        said = (
            f"SELECT {PLACE_KEY} AS key, place >> {WORD_BITS} & {(1 << LENGTH_BITS) - 1} AS length, worth, "
            f"sum(({weights}::float8[])[(place >> {PLACE_BITS} & {(1 << COLUMN_BITS) - 1}) + 1]) AS freq "
            f"FROM ({self._places(bm25.worth)}) s GROUP BY 1, 2, worth, number"
        )
        fixed, growing = _SATURATION * (1 - _LENGTH), _SATURATION * _LENGTH / (bm25.mean_length or 1.0)
        damped = f"1 + ({self._bind(fixed)}::float8 + {self._bind(growing)}::float8 * length) / freq"
        condition = f" AND key IN ({self.matches(words)})" if words.every or words.without else ""
        return (
            f"SELECT key, -sum(worth / ({damped})) AS rank FROM ({said}) f WHERE {self._among}{condition} GROUP BY key"
        )
