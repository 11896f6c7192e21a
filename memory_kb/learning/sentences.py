"""Split a text into sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator

_QUOTED = re.compile(
    r'(?<![\w"])"[^"\n]{1,600}"(?!\w)|“[^”\n]{1,600}”|„[^“”\n]{1,600}[“”]|«[^»\n]{1,600}»|「[^」\n]{1,300}」|`[^`\n]{1,300}`'
    r"|(?<![\w'])'(?![\s'])[^'\n]{1,300}(?<!\s)'(?!\w)|‘[^’\n]{1,300}’(?!\w)"
)
_STOP = re.compile(r"(?<![\d\s.!?…])[.!?…]+[\"'”’)*_]*(?=\s|$)|(?<=\d)[.!?]+(?=\s|$)|[。！？]|\n+")
_ABBREVIATION = re.compile(
    r"\b(?:e\.g|i\.e|etc|vs|approx|resp|incl|cf|z\.\s?B|d\.\s?h|p\.\s?ex|No|Nr|bzw|ca)\.$", re.IGNORECASE
)
_BULLET = re.compile(r"\s*(?:(?:[-*+•–]|\d{1,3}[.)]|\[.?\])\s+)*[\s*_]*")
#: A line this long that does not end a sentence was wrapped.
_WRAPPED = 60


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text; a line is one of its own unless it was wrapped, and none ends within quotes.

    Example:
        >>> list(sentences('fix it, e.g. with a lock\\n- call it "a. b". And UTC!'))
        ['fix it, e.g. with a lock', 'call it "a. b".', 'And UTC!']
    """
    text = _unwrapped(text)
    masked = _QUOTED.sub(lambda found: "x" * len(found[0]), text)
    place = 0
    for stop in _STOP.finditer(masked):
        if stop[0][0] != "\n" and _ABBREVIATION.search(masked, max(place, stop.end() - 8), stop.end()):
            continue
        yield from _trimmed(text[place : stop.end()])
        place = stop.end()
    yield from _trimmed(text[place:])


def _unwrapped(text: str) -> str:
    lines: list[str] = []
    for line in text.splitlines():
        last = lines[-1] if lines else ""
        goes_on = len(last.rpartition("\n")[2]) >= _WRAPPED and last[-1] not in ".!?:…" and line[:1].islower()
        if goes_on:
            lines[-1] = f"{last} {line.strip()}"
        else:
            lines.append(line)
    return "\n".join(lines)


def _trimmed(sentence: str) -> Iterator[str]:
    start = _BULLET.match(sentence)
    bare = " ".join(sentence[start.end() if start else 0 :].replace("**", "").split()).strip("*_ ")
    if bare:
        yield bare
