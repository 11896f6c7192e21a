"""The bullets of a Markdown file, each with the headings it stands under."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memory_kb.learning.imports.pieces import heading_on

_BULLET = re.compile(r"(?P<indent>[ \t]*)(?:[-*+]|\d{1,9}[.)])[ \t]+(?P<text>\S.*)$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_OURS = re.compile(r"<!--\s*memory-kb:(?:begin|start)\b[^>]*-->.*?(?:<!--\s*memory-kb:end\s*-->|\Z)", re.DOTALL)


class Item(NamedTuple):
    """A bullet with all that belongs to it, or a paragraph.

    `headings` are those above it, the outermost first.
    """

    text: str
    line: int
    headings: tuple[str, ...]
    is_bullet: bool


class Outline(NamedTuple):
    """The items of a text, and the lines of the blocks in it that memory-kb keeps itself."""

    items: tuple[Item, ...]
    ours: tuple[int, ...]


def read_outline(text: str) -> Outline:
    """Return the outermost bullets and the paragraphs of a text.

    What is indented below a bullet is part of it. Comments and memory-kb's own blocks are no text.

    Example:
        >>> outline = read_outline("# A\\n## B\\n- one\\n  more\\n  - sub\\n- two\\n\\nPara.\\n")
        >>> [(item.text, item.headings[-1], item.line) for item in outline.items]
        [('one\\nmore\\n- sub', 'B', 3), ('two', 'B', 6), ('Para.', 'B', 8)]
    """
    ours = tuple(text.count("\n", 0, found.start()) + 1 for found in _OURS.finditer(text))
    text = _COMMENT.sub(_blank, _OURS.sub(_blank, text.replace("\r\n", "\n")))
    return Outline(tuple(_items(text)), ours)


def _blank(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")


class _Open(NamedTuple):
    """An item that is being read: its lines, where it began, and how far in it stands."""

    lines: list[str]
    line: int
    indent: int
    is_bullet: bool


def _items(text: str) -> Iterator[Item]:
    headings: list[tuple[int, str]] = []
    current: _Open | None = None
    fence, blank = "", False

    def close() -> Iterator[Item]:
        if current and any(line.strip() for line in current.lines):
            yield Item(
                "\n".join(current.lines).strip(), current.line, tuple(name for _, name in headings), current.is_bullet
            )

    for number, line in enumerate(text.split("\n"), 1):
        mark = _FENCE.match(line.strip()) if line.strip().startswith(("`", "~")) else None
        is_inside = bool(fence)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        indent = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
        if not is_inside and not mark:
            heading = heading_on(line)
            bullet = _BULLET.match(line)
            if heading:
                yield from close()
                current = None
                headings = [*((level, name) for level, name in headings if level < heading[0]), heading]
                continue
            starts = bullet and (current is None or not current.is_bullet or indent <= current.indent)
            if bullet and starts:
                yield from close()
                current, blank = _Open([bullet["text"]], number, indent, is_bullet=True), False
                continue
            goes_on = (
                current is not None
                and line.strip()
                and not (blank and (not current.is_bullet or indent <= current.indent))
            )
            if line.strip() and not goes_on:
                yield from close()
                current, blank = _Open([], number, indent, is_bullet=False), False
        elif current is None or (not is_inside and blank and (not current.is_bullet or indent <= current.indent)):
            yield from close()
            current = _Open([], number, indent, is_bullet=False)
        blank = not line.strip() and not fence
        if current:
            cut = min(indent, current.indent + 2) if current.is_bullet else 0
            current.lines.append(line.expandtabs(4)[cut:].rstrip() if cut else line.rstrip())
    yield from close()
