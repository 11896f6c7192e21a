"""Where a Markdown text is not prose: code fences, indented code, code between backticks, HTML comments.

A scanner of lines, as CommonMark has them; the tests hold it against markdown-it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory_kb.entry import Span

_LINE = re.compile(r"[^\n]*(?:\n|\Z)")
_QUOTES = re.compile(r"(?: {0,3}>[ \t]?)*")
_BLANKS = re.compile(r"[ \t]*")
_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?=[ \t\r\n]|\Z)")
_RULE = re.compile(r"([-*_])[ \t]*(?:\1[ \t]*){2,}\r?$", re.MULTILINE)
_HEADING = re.compile(r"#{1,6}[ \t\r\n]|=+[ \t]*\r?$", re.MULTILINE)
_FENCE = re.compile(r"`{3,}(?=[^`\n]*$)|~{3,}", re.MULTILINE)
_COMMENT = re.compile("<!--")
#: Code or a comment within a paragraph; a backslash takes a sign its meaning, and a backtick alone has none.
_INLINE = re.compile(r"\\[\\`<]|(?P<found><!--(?:(?!<!--).)*?-->|(?P<ticks>`+).+?(?<!`)(?P=ticks)(?!`))|`+", re.DOTALL)
_TAB = 4


def find_code(text: str) -> Iterator[Span]:
    """Yield the stretches of a text that are code or comments, in their order.

    Example:
        >>> text = "Use `a`.\\n\\n```sh\\nls\\n```\\n\\n    b\\n\\n<!-- c -->\\n"
        >>> [text[span.start : span.end].strip() for span in find_code(text)]
        ['`a`', '```sh\\nls\\n```', 'b', '<!-- c -->']
    """
    place = began = 0  # `began`: where the paragraph does that the line may go on
    has_text = is_quoted = False
    items: list[int] = []  # the columns at which the open list items have their text
    while place < len(text):
        end = _end_of_line(text, place)
        quotes = _QUOTES.match(text, place, end)
        left = at = quotes.end() if quotes else place
        block: Span | None = None
        is_opened = left > place and not is_quoted
        is_quoted = left > place or (is_quoted and has_text)
        if is_opened:
            has_text = False
            items.clear()
        while True:
            at = _past_blanks(text, at)
            column = _width(text[left:at])
            is_blank = at >= end or text[at] in "\r\n"
            is_apart = any(sign.match(text, at, end) for sign in (_RULE, _FENCE, _HEADING, _COMMENT))
            item = None if is_blank or _RULE.match(text, at, end) else _ITEM.match(text, at, end)
            if item or is_apart:
                is_quoted = left > place
            if not is_blank and (item or is_apart or not has_text):
                while items and items[-1] > column and not is_opened:
                    items.pop()
            indent = column - (items[-1] if items else 0)
            if item is None or indent >= _TAB:
                break
            has_text, is_opened = False, True
            at = item.end()
            behind = _width(text[left : _past_blanks(text, at)]) - _width(text[left:at])
            items.append(_width(text[left:at]) + (behind if 0 < behind <= _TAB else 1))
        if is_opened:
            yield from _inline(text, began, place)
            began = place
        if is_blank:
            yield from _inline(text, began, place)
            began, has_text = end, is_opened and has_text
        elif indent >= _TAB and not has_text:
            block = Span(at, end)
        elif indent < _TAB and (fence := _FENCE.match(text, at, end)):
            block = Span(at, _end_of_fence(text, end, fence[0], items[-1] if items else 0, is_quoted=left > place))
        elif indent < _TAB and _COMMENT.match(text, at, end) and (close := text.find("-->", at)) >= 0:
            block = Span(at, close + 3)
        elif _RULE.match(text, at, end) or _HEADING.match(text, at, end):
            yield from _inline(text, began, end)
            began, has_text = end, False
        else:
            began, has_text = (began if has_text else place), True
        if block:
            yield from _inline(text, began, place)
            yield block
            began, has_text, end = block.end, False, block.end
        place = end
    yield from _inline(text, began, len(text))


def _inline(text: str, start: int, end: int) -> Iterator[Span]:
    for found in _INLINE.finditer(text, start, end):
        if found["found"]:
            yield Span(*found.span())


def _end_of_line(text: str, place: int) -> int:
    return text.find("\n", place) + 1 or len(text)


def _past_blanks(text: str, place: int) -> int:
    found = _BLANKS.match(text, place)
    return found.end() if found else place


def _width(lead: str) -> int:
    return len(lead.expandtabs(_TAB))


def _end_of_fence(text: str, place: int, mark: str, column: int, *, is_quoted: bool) -> int:
    """Return where a fence ends: behind its closing line, or where the quote or list item ends that it stands in."""
    closing = re.compile(rf"{re.escape(mark[0])}{{{len(mark)},}}[ \t]*\r?\n?\Z")
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
        if indent < _TAB and closing.match(text[at:end]):
            return end
        place = end
    return len(text)


def heading_text(line: str) -> str:
    """Return what a heading says, from the text behind its signs.

    Closing signs are no part of it.

    Example:
        >>> heading_text("  Retry  twice ## "), heading_text(" C#")
        ('Retry twice', 'C#')
    """
    line = line.strip()
    bare = line.rstrip("#")
    return " ".join((bare if not bare or bare[-1] in " \t" else line).split())
