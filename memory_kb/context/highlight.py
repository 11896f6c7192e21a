"""Find the words of a query in a text, to show what a hit was found by."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from memory_kb.context.relevance import strip_endings
from memory_kb.search.query import parse_query
from memory_kb.stop_words import stop_words
from memory_kb.text import MARKED_WORD, has_cjk

_MOST_WORDS = 20_000


class Stretch(NamedTuple):
    """A stretch of text, and whether the query asked for it."""

    text: str
    is_hit: bool


class QueryWords(NamedTuple):
    """The words of a query: stems, the beginning of a last word that is still typed, and runs of CJK."""

    stems: frozenset[str]
    beginning: str
    runs: tuple[str, ...]


def mark(text: str, query: str) -> tuple[Stretch, ...]:
    """Return a text cut at the words that the query asked for.

    Example:
        >>> [piece.text for piece in mark("Testing the flakiest test.", "tests flak") if piece.is_hit]
        ['Testing', 'flakiest', 'test']
    """
    return mark_words(text, read_query_words(query))


def mark_words(text: str, wanted: QueryWords) -> tuple[Stretch, ...]:
    """Return a text cut at the words of a query."""
    return tuple(_cut(text, list(_find_words(text, wanted))))


def read_query_words(query: str) -> QueryWords:
    """Return the words of a query as they are looked for in a text; excluded ones are left out."""
    words = [word for word in parse_query(query).words if not word.startswith("-")]
    words += re.findall(r"[\"“”„]([^\"“”„]*)", query)[::2]
    tokens = [_fold(token) for word in words for token in MARKED_WORD.findall(word)]
    stop = stop_words(tokens)
    tokens = [token for token in tokens if token not in stop] or tokens
    plain = [token for token in tokens if not has_cjk(token)]
    ends_open = query[-1:].isalnum() and plain and tokens[-1] == plain[-1] and len(plain[-1]) > 1
    return QueryWords(
        frozenset(map(strip_endings, plain)),
        plain[-1] if ends_open else "",
        tuple(token for token in tokens if has_cjk(token)),
    )


def _find_words(text: str, wanted: QueryWords) -> Iterator[tuple[int, int]]:
    for number, found in enumerate(MARKED_WORD.finditer(text)):
        if number >= _MOST_WORDS:
            return
        word = found[0]
        if wanted.runs and has_cjk(word):
            yield from _find_runs(word, found.start(), wanted.runs)
        elif _fits(_fold(word), wanted):
            yield found.span()


def _find_runs(word: str, offset: int, runs: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    done = 0
    for run in runs:
        place = word.casefold().find(run)
        if place >= done:
            done = place + len(run)
            yield offset + place, offset + done


def _fits(word: str, wanted: QueryWords) -> bool:
    if wanted.beginning and word.startswith(wanted.beginning):
        return True
    return strip_endings(word) in wanted.stems


def _cut(text: str, spans: list[tuple[int, int]]) -> Iterator[Stretch]:
    done = 0
    for begin, end in spans:
        if begin > done:
            yield Stretch(text[done:begin], False)
        yield Stretch(text[begin:end], True)
        done = end
    if done < len(text):
        yield Stretch(text[done:], False)


def _fold(word: str) -> str:
    """Return a word in lower case and without accents, the same length where that can be."""
    if word.isascii():
        return word.lower()
    return "".join(one for one in unicodedata.normalize("NFKD", word.casefold()) if not unicodedata.combining(one))
