"""Find the words of a query in a text, and the excerpt that has most of them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from html import escape, unescape
from textwrap import dedent
from typing import NamedTuple

from memory_kb.context.relevance import stem
from memory_kb.search.query import parse_query
from memory_kb.stop_words import stop_words
from memory_kb.text import MARKED_WORD, has_cjk

_MOST_WORDS = 20_000
#: Characters of an excerpt, about; a paragraph, a table or a block of code is shown whole.
_WIDTH = 300
_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_BEGINNING = re.compile(r"#{1,6} |[ \t]{0,3}(?:[-*+]|\d{1,9}[.)]) ")
_RULE, _CELL_END = re.compile(r"[|: -]+$"), re.compile(r"(?<!\\)\|")
_TAG = re.compile(r"<(/?)([a-z][a-z0-9]*)([^>]*)>")
_LEFT_OUT = frozenset(("a", "audio", "video", "hr", "section", "sup", "mark"))
_REPLACED = {"details": "div", "summary": "p"} | {f"h{level}": "h3" for level in range(1, 7)}


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


def excerpt(text: str, query: str, path: str, width: int = _WIDTH) -> str:
    """Return the HTML of the part of a note that shows the most words of a query, marked; nothing in it can be followed.

    Example:
        >>> excerpt("## Tea\\n\\n- **Green** [[tea]]\\n- black\\n", "green tea", "a.md", 20)
        '<h3><mark>Tea</mark></h3>\\n<ul>\\n<li><strong><mark>Green</mark></strong> <mark>tea</mark></li>\\n</ul>\\n'
    """
    from memory_kb.web.render import LinkBase, render

    wanted, blocks = _read(query), _cut_blocks(text)
    found = [{stem(_fold(block[a:b])) for a, b in _find(block, wanted)} for block in blocks]
    windows = [_end_of_window(blocks, start, width) for start in range(len(blocks))]
    counts = [len(set().union(*found[start:end])) for start, end in enumerate(windows)]
    start = max(range(len(blocks)), key=lambda one: (counts[one], bool(found[one]), -one), default=0)
    shown = _with_head("".join(blocks[start : windows[start]]) if blocks else "")
    return _mark_html(_TAG.sub(_still, render(dedent(shown), LinkBase(path))), wanted)


def _cut_blocks(text: str) -> list[str]:
    r"""Return the paragraphs, items, tables and blocks of code of a text.

    Example:
        >>> _cut_blocks("One\ntwo\n\n- a\n  b\n- c\n```\n\nd\n```\n")
        ['One\ntwo\n\n', '- a\n  b\n', '- c\n', '```\n\nd\n```\n']
    """
    blocks: list[str] = []
    fence, is_after_blank = "", True
    for line in text.splitlines(keepends=True):
        sign = _FENCE.match(line)
        is_new = not fence and ((is_after_blank and line.strip()) or sign or _BEGINNING.match(line))
        if is_new or not blocks:
            blocks.append(line)
        else:
            blocks[-1] += line
        if sign and (not fence or sign[1].startswith(fence)):
            fence = "" if fence else sign[1]
        is_after_blank = not line.strip() or bool(sign and not fence) or line.startswith("#")
    return blocks


def _end_of_window(blocks: list[str], start: int, width: int) -> int:
    """Return where the blocks end that are shown from one on: a heading is shown with what is below it."""
    end, length = start + 1, len(blocks[start])
    while end < len(blocks) and (length + len(blocks[end]) <= width or blocks[end - 1].startswith("#")):
        length += len(blocks[end])
        end += 1
    while end > start + 1 and blocks[end - 1].startswith("#"):
        end -= 1
    return end


def _with_head(text: str) -> str:
    """Return a text in which a part of a table that lacks its head has an empty one below its first row."""
    first, _, rest = text.partition("\n")
    if not text.startswith("|") or _RULE.match(rest.partition("\n")[0]):
        return text
    return f"{first}\n{'|---' * len(_CELL_END.findall(first[1:]))}|\n{rest}"


def _still(found: re.Match[str]) -> str:
    """Return a tag of a note as it is in an excerpt: without links, pictures, fields, headings and names of places."""
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


def _mark_html(html: str, wanted: _Wanted) -> str:
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
            for one in _cut(text, list(_find(text, wanted)))
        ]
    return "".join(pieces)


def _read(query: str) -> _Wanted:
    words = [word for word in parse_query(query).words if not word.startswith("-")]
    words += re.findall(r"[\"“”„]([^\"“”„]*)", query)[::2]
    tokens = [_fold(token) for word in words for token in MARKED_WORD.findall(word)]
    stop = stop_words(tokens)
    tokens = [token for token in tokens if token not in stop] or tokens
    plain = [token for token in tokens if not has_cjk(token)]
    ends_open = query[-1:].isalnum() and plain and tokens[-1] == plain[-1] and len(plain[-1]) > 1
    return _Wanted(
        frozenset(map(stem, plain)), plain[-1] if ends_open else "", tuple(token for token in tokens if has_cjk(token))
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
    return stem(word) in wanted.stems


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
