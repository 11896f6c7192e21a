"""Find the words of a query in a text, and the excerpt that has most of them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from memory_kb.search.query import parse_query
from memory_kb.text import MARKED_WORD, has_cjk

_BLANKS = re.compile(r"\s+")
_ENDINGS = re.compile(r"(?:ational|ations?|ements?|ments?|ings?|ies|ied|edly|ed|es|ers?|ly|s|y|i|e)$")
#: A word may be so much longer than the stem that it shares with the query.
_LONGEST_ENDING = 7
_MOST_WORDS = 20_000


class Stretch(NamedTuple):
    """A stretch of text, and whether the query asked for it."""

    text: str
    is_hit: bool


class _Wanted(NamedTuple):
    stems: frozenset[str]
    beginning: str
    runs: tuple[str, ...]


def mark(text: str, query: str) -> tuple[Stretch, ...]:
    """Return a text cut at the words that the query asked for.

    Example:
        >>> [piece.text for piece in mark("Testing the flakiest test.", "tests flak") if piece.is_hit]
        ['Testing', 'flakiest', 'test']
    """
    return tuple(_cut(text, list(_find(text, _read(query)))))


def excerpt(text: str, query: str, width: int = 300) -> tuple[Stretch, ...]:
    """Return the stretch of a text, on one line, that shows the most different words of a query.

    Example:
        >>> "".join(piece.text for piece in excerpt("one " * 50 + "flaky test " + "two " * 50, "flaky", 30))
        '… one one flaky test two two …'
    """
    line = _BLANKS.sub(" ", text).strip()
    spans = list(_find(line, _read(query)))
    if len(line) <= width:
        return tuple(_cut(line, spans))
    start = _choose(line, spans, width)
    end = start + width
    if end < len(line):
        end = max(line.rfind(" ", start, end), start + width // 2)
    if start:
        start = min(line.find(" ", start) + 1 or start, start + width // 4)
    inside = [(begin - start, stop - start) for begin, stop in spans if start <= begin and stop <= end]
    pieces = list(_cut(line[start:end], inside))
    return (*([Stretch("… ", False)] if start else []), *pieces, *([Stretch(" …", False)] if end < len(line) else []))


def _choose(line: str, spans: list[tuple[int, int]], width: int) -> int:
    """Return where the stretch begins that holds the most different words, a little before the first of them."""
    best, place = 0, 0
    for number, (begin, _) in enumerate(spans):
        inside = {_fold(line[a:b])[:4] for a, b in spans[number : number + 60] if b <= begin + width * 3 // 4}
        if len(inside) > best:
            best, place = len(inside), begin
    return min(max(0, place - width // 3), max(0, len(line) - width))


def _read(query: str) -> _Wanted:
    words = [word for word in parse_query(query).words if not word.startswith("-")]
    words += re.findall(r"[\"“”„]([^\"“”„]*)", query)[::2]
    tokens = [_fold(token) for word in words for token in MARKED_WORD.findall(word)]
    plain = [token for token in tokens if not has_cjk(token)]
    ends_open = query[-1:].isalnum() and plain and tokens[-1] == plain[-1] and len(plain[-1]) > 1
    return _Wanted(
        frozenset(map(_stem, plain)), plain[-1] if ends_open else "", tuple(token for token in tokens if has_cjk(token))
    )


def _find(text: str, wanted: _Wanted) -> Iterator[tuple[int, int]]:
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


def _fits(word: str, wanted: _Wanted) -> bool:
    if wanted.beginning and word.startswith(wanted.beginning):
        return True
    return _stem(word) in wanted.stems


def _cut(text: str, spans: list[tuple[int, int]]) -> Iterator[Stretch]:
    done = 0
    for begin, end in spans:
        if begin > done:
            yield Stretch(text[done:begin], False)
        yield Stretch(text[begin:end], True)
        done = end
    if done < len(text):
        yield Stretch(text[done:], False)


def _stem(word: str) -> str:
    """Return a word without its ending, near enough to the index's own.

    Example:
        >>> _stem("tests"), _stem("testing"), _stem("is"), _stem("queries")
        ('test', 'test', 'is', 'quer')
    """
    stem = _ENDINGS.sub("", word)
    return stem if len(stem) >= 3 and len(word) - len(stem) <= _LONGEST_ENDING else word


def _fold(word: str) -> str:
    """Return a word in lower case and without accents, the same length where that can be."""
    if word.isascii():
        return word.lower()
    return "".join(one for one in unicodedata.normalize("NFKD", word.casefold()) if not unicodedata.combining(one))
