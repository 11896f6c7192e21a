"""Places inside of a note that links name: `[[Note#Heading]]`, `[[Note#Part#Detail]]`, `[[Note#^block]]`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memory_kb.entry import Span

_HEADING = re.compile(r"^ {0,3}(#{1,6})(?:[ \t]+(?=\S)|[ \t]*$)", re.MULTILINE)
#: Behind a blank line, which tells it from the last field of a block and the rule that closes it.
_UNDERLINED = re.compile(
    r"(?:\A|(?<=\n\n)|(?<=\n\r\n)) {0,3}(?![#>|\-*+=` \t])(\S[^\n]*)\n {0,3}(=+|-+)[ \t]*$", re.MULTILINE
)
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*\n.*?(?:^ {0,3}\1[`~]*[ \t]*\r?$|\Z)", re.DOTALL | re.MULTILINE)
_LAST_MARKS = re.compile(r"[ \t]+#+[ \t]*\Z")


class Heading(NamedTuple):
    """A heading: how deep it is, its words, and where its line stands."""

    level: int
    words: str
    span: Span


def _without_fences(text: str) -> str:
    return _FENCE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text) if "```" in text or "~~~" in text else text


def find_headings(text: str) -> Iterator[Heading]:
    """Yield the headings of a text in their order; what looks like one in code is none.

    Example:
        >>> [(one.level, one.words) for one in find_headings("# Tea `x`\\n\\nGreen\\n-----\\n\\n```\\n# no\\n```\\n## Steps ##\\n")]
        [(1, 'Tea `x`'), (2, 'Green'), (2, 'Steps')]
    """
    bare = _without_fences(text)
    found = [_heading(text, len(one[1]), one.start(), one.end()) for one in _HEADING.finditer(bare)]
    found += [
        _heading(text, 1 if one[2][0] == "=" else 2, one.start(1), one.start(1)) for one in _UNDERLINED.finditer(bare)
    ]
    yield from sorted((one for one in found if one.words), key=lambda one: one.span)


def _heading(text: str, level: int, start: int, words: int) -> Heading:
    end = text.find("\n", start)
    stop = len(text) if end < 0 else end
    return Heading(
        level,
        _LAST_MARKS.sub("", text[words:stop].strip()).strip(),
        Span(start, start + len(text[start:stop].rstrip())),
    )


def normal_heading(words: str) -> str:
    """Return a heading as links are compared with it: words alone, as links cannot hold all signs.

    Example:
        >>> normal_heading("Why **we** use: `uv`?") == normal_heading("why we use uv")
        True
    """
    return " ".join(re.findall(r"\w+", words.casefold().replace("_", " "))) or words.strip()


def say_missing(target: str, anchor: str) -> str:
    """Return what is said of a link to a place that its note does not have."""
    what = f"block {anchor}" if anchor.startswith("^") else f"heading {anchor!r}"
    return f"the wikilink to '{target}#{anchor}' leads to a note without the {what}"


def find_anchor(text: str, anchor: str) -> Span | None:
    """Return the line of a heading or block that a link names, or None.

    Example:
        >>> note = "# Tea\\n\\n## Steps\\n\\nBoil. ^b1\\n"
        >>> [note[one.start : one.end] for one in (find_anchor(note, "steps"), find_anchor(note, "^B1"), find_anchor(note, "Tea#Steps")) if one]
        ['## Steps', 'Boil. ^b1', '## Steps']
        >>> find_anchor(note, "Nope")
    """
    anchor = anchor.strip()
    if anchor.startswith("^"):
        line = re.compile(
            rf"^[^\n]*?(?:^|[ \t\]])\^{re.escape(anchor[1:])}(?=[ \t]*\r?$)", re.MULTILINE | re.IGNORECASE
        )
        found = line.search(_without_fences(text))
        return Span(*found.span()) if found else None
    parts = [normal_heading(part) for part in anchor.split("#") if part.strip()]
    done = 0
    for heading in find_headings(text):
        if done < len(parts) and normal_heading(heading.words) == parts[done]:
            done += 1
            if done == len(parts):
                return heading.span
    return None
