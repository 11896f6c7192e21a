"""A Markdown text as blocks that should stay whole: headings, paragraphs, list items, tables, fences.

A line scanner rather than a CommonMark parser, because it runs over every byte of a vault; the
tests hold it against markdown-it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t\r]*$")
_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|\r?$)")
_FENCE = re.compile(r"(`{3,}(?=[^`]*$)|~{3,})")
_BULLETS = "-*+0123456789"
_CONTAINERS = "`~<"
_SPECIAL = frozenset("#=|>" + _BULLETS + _CONTAINERS)


#: Where a block starts, where it ends with its line break, its heading level (1 to 6, else 0), its heading.
Block = tuple[int, int, int, str]


def scan_blocks(text: str, start: int, end: int) -> Iterator[Block]:
    """Yield the blocks between two places of a text, in order, without the blank lines between them.

    One loop over the lines with all its state in local variables: this is the innermost loop of
    indexing, and calls made it three times slower.

    Example:
        >>> text = "# One\\npara\\n\\n- item\\n  more\\n- next\\n"
        >>> [text[start:end].strip() for start, end, _, _ in scan_blocks(text, 0, len(text))]
        ['# One', 'para', '- item\\n  more', '- next']
    """
    opened = -1  # where the open block starts, or -1
    closed = 0  # where its last line ends, line break included
    is_item = is_text = after_blank = False
    closing = ""  # what ends the fence or comment we are in
    for line in text[start:end].split("\n"):
        place = start
        start += len(line) + 1
        bare = line.strip()
        if closing:
            closed = start
            if "-->" in bare if closing == "-->" else len(bare) >= len(closing) and not bare.strip(closing[0]):
                closing = ""
                if not is_item:
                    yield opened, closed, 0, ""
                    opened = -1
            continue
        if not bare:
            after_blank = True
            if opened >= 0 and not is_item:
                yield opened, closed, 0, ""
                opened = -1
            continue
        first = bare[0]
        if is_item and opened >= 0:
            if line[0] == "\t" or line[:2] == "  ":
                closed = start
                after_blank = False
                if first in _CONTAINERS:
                    closing = _closing_of(bare)
                continue
            if after_blank:
                yield opened, closed, 0, ""
                opened = -1
        after_blank = False
        if first not in _SPECIAL:
            if opened < 0:
                opened, is_item, is_text = place, False, True
            closed = start
            continue
        indented = line[:4] == "    " or line[0] == "\t"
        if first == "#" and (heading := _ATX.match(line)):
            if opened >= 0:
                yield opened, closed, 0, ""
                opened = -1
            yield place, start, len(heading[1]), " ".join((heading[2] or "").split())
        elif first in "=-" and opened >= 0 and is_text and not indented and not bare.strip(first):
            yield opened, start, 1 if first == "=" else 2, " ".join(text[opened:closed].split())
            opened = -1
        elif first in _BULLETS and not indented and (opened < 0 or is_item or first in "-*+") and _ITEM.match(line):
            if opened >= 0:
                yield opened, closed, 0, ""
            opened, closed, is_item, is_text = place, start, True, False
        elif first in "`~" and not indented and _FENCE.match(bare):
            if opened >= 0:
                yield opened, closed, 0, ""
            opened, closed, is_item, is_text = place, start, False, False
            closing = _closing_of(bare)
        else:
            if opened < 0:
                opened, is_item, is_text = place, False, first not in "|>" and not indented
                closing = _closing_of(bare) if first in _CONTAINERS and not indented else ""
            closed = start
    if opened >= 0:
        yield opened, closed, 0, ""


def _closing_of(bare: str) -> str:
    """Return what ends the fence or comment that a line opens, or an empty text."""
    if bare[0] == "<":
        return "-->" if bare.startswith("<!--") and "-->" not in bare else ""
    fence = _FENCE.match(bare)
    return fence[1] if fence else ""
