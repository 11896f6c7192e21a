"""Find the words of a query in a text, to show what a hit was found by."""

from __future__ import annotations

import re
from typing import NamedTuple

from memory_kb.context.relevance import ENDINGS, strip_endings
from memory_kb.search.query import parse_query
from memory_kb.stop_words import stop_words
from memory_kb.terms import MARKED_WORD, needs_cutting


class Stretch(NamedTuple):
    """A stretch of text, and whether the query asked for it."""

    text: str
    is_hit: bool


def mark(text: str, query: str) -> tuple[Stretch, ...]:
    """Return a text cut at the words that the query asked for.

    Example:
        >>> [piece.text for piece in mark("Testing the flakiest test.", "tests flak") if piece.is_hit]
        ['Testing', 'flakiest', 'test']
    """
    return mark_words(text, read_query_words(query))


def read_query_words(query: str) -> re.Pattern[str] | None:
    """Return an expression for the words of a query with any endings, None where it has none.

    Excluded words and words of every sentence are left out. In scripts without spaces a word is found anywhere; a word
    that the query ends in may still be typed, and is found by its beginning.
    """
    words = [word for word in parse_query(query).words if not word.startswith("-")]
    words += re.findall(r"[\"“”„]([^\"“”„]*)", query)[::2]
    tokens = [token.lower() for word in words for token in MARKED_WORD.findall(word)]
    stop = stop_words(tokens)
    tokens = [token for token in tokens if token not in stop] or tokens
    forms = list(map(_any_ending, tokens))
    if tokens and query[-1:].isalnum() and len(tokens[-1]) > 1 and not needs_cutting(tokens[-1]):
        forms.insert(0, rf"\b{re.escape(tokens[-1])}\w*")
    return re.compile("|".join(forms), re.IGNORECASE) if forms else None


def _any_ending(token: str) -> str:
    if needs_cutting(token):
        return re.escape(token)
    stem = strip_endings(token) if token.isascii() else token
    return rf"\b{re.escape(stem)}(?:{ENDINGS}){{0,2}}\b"


def mark_words(text: str, wanted: re.Pattern[str] | None) -> tuple[Stretch, ...]:
    """Return a text cut at the words of a query."""
    pieces, done = list[Stretch](), 0
    for found in wanted.finditer(text) if wanted else ():
        pieces += [Stretch(text[done : found.start()], False), Stretch(found[0], True)]
        done = found.end()
    return tuple(piece for piece in (*pieces, Stretch(text[done:], False)) if piece.text)
