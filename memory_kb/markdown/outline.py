"""Cut a text into its bullets and paragraphs, each with the headings above it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memory_kb.markdown.headings import Heading, find_headings
from memory_kb.markdown.lists_and_fences import find_items
from memory_kb.model import Span

_PARAGRAPH = re.compile(r"\S.*(?:\n[ \t]*\S.*)*")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n.*?^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
#: A block that memory-kb keeps in a file of other people.
OWN_BLOCK = re.compile(r"<!--\s*memory-kb:(?:begin|start)\b[^>]*-->.*?(?:<!--\s*memory-kb:end\s*-->|\Z)", re.DOTALL)


class Bullet(NamedTuple):
    """A bullet with all that belongs to it, or a paragraph; `headings` are those above it, the outermost first."""

    text: str
    line: int
    headings: tuple[str, ...]
    is_bullet: bool


def read_outline(text: str) -> Iterator[Bullet]:
    """Yield the outermost bullets and the paragraphs of a text.

    What is indented below a bullet is part of it. Frontmatter, comments and memory-kb's own blocks are left out.

    Example:
        >>> outline = read_outline("# A\\n## B\\n- one\\n  more\\n  - sub\\n- two\\n\\nPara.\\n")
        >>> [(item.text, item.headings[-1], item.line) for item in outline]
        [('one\\nmore\\n- sub', 'B', 3), ('two', 'B', 6), ('Para.', 'B', 8)]
    """
    text = _COMMENT.sub(_blank, OWN_BLOCK.sub(_blank, _FRONT.sub(_blank, text.replace("\r\n", "\n"))))
    above: list[Heading] = []
    start, line, counted = 0, 1, 0
    for heading in (*find_headings(text), None):
        end = heading.span.start if heading else len(text)
        for at, said, is_bullet in _blocks(text, Span(start, end)):
            line, counted = line + text.count("\n", counted, at), at
            yield Bullet(said.strip(), line, tuple(one.words for one in above), is_bullet)
        if heading:
            above = [*(one for one in above if one.level < heading.level), heading]
            start = heading.span.end


def _blank(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


def _blocks(text: str, place: Span) -> Iterator[tuple[int, str, bool]]:
    """Yield where each bullet and paragraph of a place begins, its text, and whether it is a bullet."""
    at = place.start
    for item in (*find_items(text, place), None):
        end = item.span.start if item else place.end
        for paragraph in _PARAGRAPH.finditer(text, at, end):
            yield paragraph.start(), paragraph[0], False
        if item:
            yield item.span.start, item.text, True
            at = item.span.end
