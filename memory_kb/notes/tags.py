"""Tags inside of text, as `#urgent` and `#deploy/prod`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from memory_kb.notes.wikilinks import without_code

#: A tag begins a line, or stands behind a blank, an opening bracket or a mark of emphasis.
_TAG = re.compile(r"#(?<![^\s(*>,;、。，（「]#)(?<!\]\(#)([^\W_][\w/-]*+)(?![.+=@:\[{]\w|[+(])", re.MULTILINE)
#: What names other things: links and their targets, addresses, HTML.
_ELSEWHERE = re.compile(r"\[\[[^\]\n]*\]\]|\]\([^)\n]*\)|\b[a-z][a-z0-9+.-]*://\S+|<[^<>\n]*>|&#\w+;", re.IGNORECASE)
_HEX = re.compile(r"(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})\Z", re.IGNORECASE)
_GREY = re.compile(r"(.)\1+\Z|((.)\3(.)\4(.)\5)\Z", re.IGNORECASE)
_TICKET = re.compile(r"[A-Z][A-Z0-9]*-\d+\Z")
_OF_COLOURS = re.compile(
    r"colou?r|background|palette|\bhex\b|\brgb|\bfill\b|\bstroke\b|\bcss\b|\bborder\b|\btheme\b", re.IGNORECASE
)
#: Directives of C, C# and the like, which people paste without marking them as code.
_DIRECTIVES = frozenset(("include", "define", "undef", "ifdef", "ifndef", "elif", "endif", "pragma", "if", "else"))
_DIRECTIVES_WITH = re.compile(r"(?:import|error|warning|line|region|endregion|using|load|require)[ \t]*[\"'<\d]")


def find_tags(text: str) -> tuple[str, ...]:
    """Return the `#tags` in a text, each once.

    Headings, numbers of issues, colours, directives, links and code have none.

    Example:
        >>> find_tags("# Head\\nUses #sqlite and (#db/index), issue #12, `#no`, [x](#y), a #fff line.\\n#include <x>")
        ('sqlite', 'db/index')
    """
    if not _TAG.search(text):
        return ()
    return tuple(dict.fromkeys(_tags(_ELSEWHERE.sub(_blank, without_code(text)))))


def _tags(text: str) -> Iterator[str]:
    for found in _TAG.finditer(text):
        tag, place = found[1].rstrip("/-"), found.start(1)
        is_name = any(sign.isalpha() for sign in tag) and not _TICKET.match(tag)
        if is_name and not _is_colour(tag, text, place) and not _is_directive(tag, text, place):
            yield tag


def _is_colour(tag: str, text: str, place: int) -> bool:
    """Tell whether a tag is a colour: with digits, grey or doubled, or where colours are spoken of.

    `#add`, `#face` and `#decade` are words as well.
    """
    if not _HEX.match(tag):
        return False
    if any(sign.isdigit() for sign in tag) or _GREY.match(tag):
        return True
    start, end = text.rfind("\n", 0, place) + 1, text.find("\n", place)
    return _OF_COLOURS.search(text, start, len(text) if end < 0 else end) is not None


def _is_directive(tag: str, text: str, place: int) -> bool:
    return tag in _DIRECTIVES or _DIRECTIVES_WITH.match(text, place) is not None


def _blank(found: re.Match[str]) -> str:
    return " " * len(found[0])


def fits_tag(tags: Iterable[str], wanted: Iterable[str]) -> bool:
    """Tell whether any tag is one of those wanted, or below it.

    Example:
        >>> fits_tag(["Deploy/prod"], ["deploy"]), fits_tag(["deploy"], ["deploy/prod", "#deploy"]), fits_tag(["deploying"], ["deploy"])
        (True, True, False)
    """
    heads = tuple(word.lstrip("#").casefold() for word in wanted)
    return any(tag == head or tag.startswith(f"{head}/") for tag in map(str.casefold, tags) for head in heads if head)
