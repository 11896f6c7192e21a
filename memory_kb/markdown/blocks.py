"""Cut Markdown into blocks: headings, paragraphs, items of lists, fences, tables and comments."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory_kb.lazy_regex import lazy_regex

#: A rule, the opening of a fence, and what an item of a list may begin with.
RULE = r"(?P<sign>[-*_])[ \t]*(?:(?P=sign)[ \t]*){2,}\r?$"
FENCE = r"`{3,}(?=[^`\n]*$)|~{3,}"
BULLETS = frozenset("-*+0123456789")
_RULE, _FENCE = lazy_regex(RULE, re.MULTILINE), lazy_regex(FENCE, re.MULTILINE)
_ATX = lazy_regex(r" {0,3}(#{1,6})(?=[ \t\r]|$)")
_ITEM = lazy_regex(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|\r?$)")
_CONTAINERS = "`~<"
_SPECIAL = frozenset("#=|>_" + _CONTAINERS) | BULLETS

#: The level of a block that should be left whole: a fence, a table, a list item.
WHOLE = -1
#: Where a block starts, where it ends with its line break, its heading level (1 to 6, 0 for
#: text, WHOLE), and its heading.
Block = tuple[int, int, int, str]


def scan_blocks(text: str, start: int, end: int) -> Iterator[Block]:
    """Yield the blocks between two places of a text, in order.

    The blank lines between them are left out. One loop over the lines with all its state in local
    variables: this is the innermost loop of indexing, and calls made it three times slower.

    Example:
        >>> text = "# One\\npara\\n\\n- item\\n  more\\n- next\\n"
        >>> [text[start:end].strip() for start, end, _, _ in scan_blocks(text, 0, len(text))]
        ['# One', 'para', '- item\\n  more', '- next']
    """
    opened = -1  # where the open block starts, or -1
    closed = 0  # where its last line ends, line break included
    level = 0  # of the open block: 0 or WHOLE
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
                    yield opened, closed, level, ""
                    opened = -1
            continue
        if not bare:
            after_blank = True
            if opened >= 0 and not is_item:
                yield opened, closed, level, ""
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
                yield opened, closed, level, ""
                opened = -1
        after_blank = False
        if first not in _SPECIAL or line[:4] == "    " or line[0] == "\t":
            if opened < 0:
                opened, level, is_item, is_text = place, 0, False, line[:4] != "    " and line[0] != "\t"
            closed = start
        elif first == "#" and (heading := _ATX.match(line)):
            if opened >= 0:
                yield opened, closed, level, ""
                opened = -1
            yield place, start, len(heading[1]), heading_text(line[heading.end() :])
        elif first in "=-" and opened >= 0 and is_text and not bare.strip(first):
            yield opened, start, 1 if first == "=" else 2, " ".join(text[opened:closed].split())
            opened = -1
        elif first in "-*_" and _RULE.match(bare):
            if opened >= 0:
                yield opened, closed, level, ""
                opened = -1
            yield place, start, 0, ""
        elif (
            first in BULLETS
            and (opened < 0 or is_item or first in "-*+" or bare[:2] in ("1.", "1)"))
            and (marker := _ITEM.match(line))
        ):
            if opened >= 0:
                yield opened, closed, level, ""
            opened, closed, level, is_item, is_text = place, start, WHOLE, True, False
            rest = line[marker.end() :].strip()
            closing = _closing_of(rest) if rest and rest[0] in _CONTAINERS else ""
        elif first in _CONTAINERS and ((first == "<" and bare.startswith("<!--")) or _FENCE.match(bare)):
            if opened >= 0:
                yield opened, closed, level, ""
            opened, closed, level, is_item, is_text = place, start, 0 if first == "<" else WHOLE, False, False
            closing = _closing_of(bare)
            if not closing:
                yield opened, closed, level, ""
                opened = -1
        else:
            if opened < 0:
                opened, level, is_item, is_text = place, WHOLE if first == "|" else 0, False, first not in "|>"
            closed = start
    if opened >= 0:
        yield opened, closed, level, ""


def _closing_of(bare: str) -> str:
    """Return what ends the fence or comment that a line opens, or no text."""
    if bare[0] == "<":
        return "-->" if bare.startswith("<!--") and "-->" not in bare[4:] else ""
    fence = _FENCE.match(bare)
    return fence[0] if fence else ""


def heading_text(line: str) -> str:
    """Return what a heading says, from the text behind its signs; closing signs are no part of it.

    Example:
        >>> heading_text("  Retry  twice ## "), heading_text(" C#")
        ('Retry twice', 'C#')
    """
    line = line.strip()
    bare = line.rstrip("#")
    return " ".join((bare if not bare or bare[-1] in " \t" else line).split())
