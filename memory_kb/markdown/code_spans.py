"""Find the code and the comments in Markdown."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from memory_kb.lazy_regex import lazy_regex
from memory_kb.markdown.blocks import BULLETS, FENCE, RULE
from memory_kb.model import Span

_QUOTES = lazy_regex(r"(?: {0,3}>[ \t]?)*")
_BLANKS = lazy_regex(r"[ \t]*")
_ITEM = lazy_regex(r"(?:[-*+]|\d{1,9}[.)])(?=[ \t\r\n]|\Z)")
#: What is no part of a paragraph.
_APART = lazy_regex(
    rf"(?P<rule>{RULE})|(?P<heading>#{{1,6}}[ \t\r\n]|=+[ \t]*\r?$)|(?P<fence>{FENCE})|(?P<comment><!--)", re.MULTILINE
)
#: What may begin code or a comment within a paragraph; a backslash takes a sign its meaning.
_MARK = lazy_regex(r"\\[\\`<]|<!--|`+")
_TICKS = lazy_regex("`+")
#: How a line may begin that does not just go on with a paragraph or begin one.
_OPENERS = frozenset(" \t\r\n>#=`~<-*_+0123456789")
#: Without one of these a text holds neither code nor comments.
_HIDING = ("`", "    ", "\t", "<!--", "~~~")
#: With what that begins which is no part of a paragraph.
_APART_SIGNS = frozenset("-*_#=`~<")
_TAB = 4
#: Items within items; nobody writes so many, and time grows with their square.
_DEEPEST = 100


def find_code(text: str) -> Iterator[Span]:
    """Yield the stretches of a text that are code or comments, in their order.

    Example:
        >>> text = "Use `a`.\\n\\n```sh\\nls\\n```\\n\\n    b\\n\\n<!-- c -->\\n"
        >>> [text[span.start : span.end].strip() for span in find_code(text)]
        ['`a`', '```sh\\nls\\n```', 'b', '<!-- c -->']
    """
    return _CodeFinder(text).find() if any(sign in text for sign in _HIDING) else iter(())


class _Line(NamedTuple):
    """A line behind the signs of the quotes and list items that it is in.

    `at` is where its text begins, `indent` the columns in front of that. `apart` is what it is that is no part of a
    paragraph; `is_opened` says that a quote or an item begins with it.
    """

    at: int
    end: int
    indent: int
    is_blank: bool
    apart: re.Match[str] | None
    is_opened: bool
    is_quoted: bool


class _CodeFinder:
    """One pass over the lines of a text, which finds code and comments."""

    def __init__(self, text: str) -> None:
        self._text = text
        #: Whether the next line may go on with a paragraph, and where that begins, or what is not searched yet.
        self._has_text, self._began = False, 0
        self._is_quoted = False
        #: The columns at which the open list items have their text.
        self._items: list[int] = []

    def find(self) -> Iterator[Span]:
        """Yield what is code or a comment."""
        text, place = self._text, 0
        while place < len(text):
            end = _end_of_line(text, place)
            # The most frequent lines first: one of a paragraph, and a blank one.
            if text[place] not in _OPENERS:
                if not self._has_text:
                    self._began, self._has_text, self._is_quoted = place, True, False
                    self._items.clear()
            elif text[place] == "\n":
                yield from self._search_until(place)
                self._is_quoted, self._has_text, self._began = self._is_quoted and self._has_text, False, end
            else:
                line = self._read_line(place, end)
                if line.is_opened:
                    yield from self._search_until(place)
                block = self._find_block(line) if line.apart or line.indent >= _TAB else None
                if block:
                    yield from self._search_until(place)
                    yield block
                    end = self._began = block.end
                    self._has_text = False
                elif line.is_blank or (line.apart and line.apart.lastgroup in ("rule", "heading")):
                    yield from self._search_until(place if line.is_blank else end)
                    self._began, self._has_text = end, False
                elif not self._has_text:
                    self._began, self._has_text = place, True
            place = end
        yield from self._search_until(len(text))

    def _search_until(self, end: int) -> Iterator[Span]:
        """Yield the code and comments within the paragraph that goes on to `end`."""
        began, self._began = self._began, end
        return _inline(self._text, began, end)

    def _read_line(self, place: int, end: int) -> _Line:
        """Read the signs in front of a line, and open or close the quote and the list items that it is in."""
        text, items = self._text, self._items
        quotes = _QUOTES.match(text, place, end) if text[place] in " >" else None
        left = at = quotes.end() if quotes else place
        is_opened = left > place and not self._is_quoted
        self._is_quoted = left > place or (self._is_quoted and self._has_text)
        if is_opened:
            self._has_text = False
            items.clear()
        while True:
            at = _past_blanks(text, at) if at < end and text[at] in " \t" else at
            column = _width(text[left:at]) if at > left else 0
            is_blank = at >= end or text[at] in "\r\n"
            sign = "" if is_blank else text[at]
            apart = _APART.match(text, at, end) if sign in _APART_SIGNS else None
            item = _ITEM.match(text, at, end) if sign in BULLETS and not apart else None
            if item or apart:
                self._is_quoted = left > place
            if not is_blank and (item or apart or not self._has_text):
                while items and items[-1] > column and not is_opened:
                    items.pop()
            indent = column - (items[-1] if items else 0)
            if item is None or indent >= _TAB or len(items) == _DEEPEST:
                return _Line(at, end, indent, is_blank, apart, is_opened, left > place)
            self._has_text, is_opened = False, True
            at = item.end()
            behind = _width(text[left : _past_blanks(text, at)]) - _width(text[left:at])
            items.append(_width(text[left:at]) + (behind if 0 < behind <= _TAB else 1))

    def _find_block(self, line: _Line) -> Span | None:
        """Return the indented code, the fence or the comment that a line begins with."""
        if line.is_blank or line.indent >= _TAB:
            return None if line.is_blank or self._has_text else Span(line.at, line.end)
        what = line.apart.lastgroup if line.apart else None
        if line.apart and what == "fence":
            column = self._items[-1] if self._items else 0
            return Span(line.at, _end_of_fence(self._text, line.end, line.apart[0], column, is_quoted=line.is_quoted))
        close = self._text.find("-->", line.at) if what == "comment" else -1
        return Span(line.at, close + 3) if close >= 0 else None


def _inline(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the code spans and comments within a paragraph."""
    if text.find("`", start, end) < 0 and text.find("<!--", start, end) < 0:
        return
    runs: dict[str, list[int]] = {}
    for run in _TICKS.finditer(text, start, end):
        runs.setdefault(run[0], []).append(run.start())
    place = start
    while found := _MARK.search(text, place, end):
        place = found.end()
        if found[0] == "<!--":
            inner = text.find("<!--", place, end)
            stop = text.find("-->", place, end if inner < 0 else inner) + 3
        else:
            # A backslash and a sign are no run.
            ends = runs.get(found[0], [])
            following = bisect_left(ends, place)
            stop = ends[following] + len(found[0]) if following < len(ends) else 0
        if stop > place:
            yield Span(found.start(), stop)
            place = stop


def _end_of_line(text: str, place: int) -> int:
    return text.find("\n", place) + 1 or len(text)


def _past_blanks(text: str, place: int) -> int:
    found = _BLANKS.match(text, place)
    return found.end() if found else place


def _width(lead: str) -> int:
    return len(lead.expandtabs(_TAB))


def _end_of_fence(text: str, place: int, mark: str, column: int, *, is_quoted: bool) -> int:
    """Return where a fence ends: behind its closing line, or where the quote or list item ends that it is in."""
    closing = rf"{re.escape(mark[0])}{{{len(mark)},}}[ \t]*\r?$\n?"
    if not column and not is_quoted:
        found = re.compile(f"^ {{0,3}}{closing}", re.MULTILINE).search(text, place)
        return found.end() if found else len(text)
    while place < len(text):
        end = _end_of_line(text, place)
        quotes = _QUOTES.match(text, place, end) if is_quoted else None
        left = quotes.end() if quotes else place
        if is_quoted and left == place:
            return place
        at = _past_blanks(text, left)
        indent = _width(text[left:at]) - column
        is_blank = at >= end or text[at] in "\r\n"
        if indent < 0 and not is_blank:
            return place
        if indent < _TAB and re.fullmatch(closing, text[at:end]):
            return end
        place = end
    return len(text)
