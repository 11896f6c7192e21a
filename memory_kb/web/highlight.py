"""Find the words of a query in a text, and mark them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from html import escape, unescape
from textwrap import dedent
from typing import NamedTuple

from memory_kb.context.relevance import strip_endings
from memory_kb.search.query import parse_query
from memory_kb.stop_words import stop_words
from memory_kb.text import MARKED_WORD, has_cjk

_MOST_WORDS = 20_000
_TAG = re.compile(r"<(/?)([a-z][a-z0-9]*)([^>]*)>")
_LEFT_OUT = frozenset(("a", "audio", "video", "hr", "section", "sup", "mark"))
_REPLACED = {"details": "div", "summary": "p"} | {f"h{level}": "h3" for level in range(1, 7)}


class Stretch(NamedTuple):
    """A stretch of text, and whether the query asked for it."""

    text: str
    is_hit: bool


class _QueryWords(NamedTuple):
    stems: frozenset[str]
    beginning: str
    runs: tuple[str, ...]


def mark(text: str, query: str) -> tuple[Stretch, ...]:
    """Return a text cut at the words that the query asked for.

    Example:
        >>> [piece.text for piece in mark("Testing the flakiest test.", "tests flak") if piece.is_hit]
        ['Testing', 'flakiest', 'test']
    """
    return tuple(_cut(text, list(_find_words(text, _read_query(query)))))


def render_passage(text: str, query: str, path: str) -> str:
    """Return the HTML of a passage of a note, with the words of a query marked; nothing in it can be followed.

    Example:
        >>> render_passage("## Tea\\n\\n- **Green** [[tea]]\\n", "green tea", "a.md")
        '<h3><mark>Tea</mark></h3>\\n<ul>\\n<li><strong><mark>Green</mark></strong> <mark>tea</mark></li>\\n</ul>\\n'
    """
    from memory_kb.web.render import LinkBase, render

    return _mark_html(_TAG.sub(_without_action, render(dedent(text), LinkBase(path))), _read_query(query))


def _without_action(found: re.Match[str]) -> str:
    """Return a tag of a note as it is in a passage: without links, pictures, fields, headings and names of places."""
    close, name, attributes = found[1], found[2], found[3]
    if name == "img":
        shown = re.search(r'alt="([^"]*)"', attributes)
        return f'<span class="picture">{shown[1]}</span>' if shown else ""
    if name == "input":
        return "☑ " if "checked=" in attributes else "☐ "
    if name in _LEFT_OUT:
        return ""
    name = _REPLACED.get(name, name)
    kept = "".join(re.findall(r' (?:class|xmlns|display)="[^"]*"', attributes))
    return f"<{close}{name}{kept}>"


def _mark_html(html: str, wanted: _QueryWords) -> str:
    """Return HTML with the words of a query marked, but for those in formulas."""
    pieces, is_formula = [], False
    for number, piece in enumerate(re.split(r"(<[^>]*>)", html)):
        is_formula = piece.startswith("<math") or (is_formula and piece != "</math>")
        if number % 2 or is_formula:
            pieces.append(piece)
            continue
        text = unescape(piece)
        pieces += [
            f"<mark>{escape(one.text)}</mark>" if one.is_hit else escape(one.text)
            for one in _cut(text, list(_find_words(text, wanted)))
        ]
    return "".join(pieces)


def _read_query(query: str) -> _QueryWords:
    words = [word for word in parse_query(query).words if not word.startswith("-")]
    words += re.findall(r"[\"“”„]([^\"“”„]*)", query)[::2]
    tokens = [_fold(token) for word in words for token in MARKED_WORD.findall(word)]
    stop = stop_words(tokens)
    tokens = [token for token in tokens if token not in stop] or tokens
    plain = [token for token in tokens if not has_cjk(token)]
    ends_open = query[-1:].isalnum() and plain and tokens[-1] == plain[-1] and len(plain[-1]) > 1
    return _QueryWords(
        frozenset(map(strip_endings, plain)),
        plain[-1] if ends_open else "",
        tuple(token for token in tokens if has_cjk(token)),
    )


def _find_words(text: str, wanted: _QueryWords) -> Iterator[tuple[int, int]]:
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


def _fits(word: str, wanted: _QueryWords) -> bool:
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
