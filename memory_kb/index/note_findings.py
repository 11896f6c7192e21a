"""Check a note while it is written, and report each finding at its exact place."""

from __future__ import annotations

import re
from typing import NamedTuple

from memory_kb.model import Entry, Span


class Remark(NamedTuple):
    """Something to fix in a text.

    Attributes:
        code: `block`, `field`, `link`, `picture`, `id`, `twin`, `secret`, `budget` or `claim`.
        weight: `error`, `warning` or `hint`.
        about: what it is about: the field, the target of a link, or the entry that says the same.
    """

    span: Span
    code: str
    weight: str
    message: str
    about: str = ""


def say_dead(kind: str, target: str) -> str:
    """Return the message about a link that leads nowhere.

    Example:
        >>> say_dead("link", "a.md"), say_dead("wikilink", "a")
        ("the link to 'a.md' leads to no file", "the wikilink to 'a' leads to no entry")
    """
    return f"the {kind} to {target!r} leads to no {'file' if kind == 'link' else 'entry'}"


def say_double(entry_id: str, place: str) -> str:
    """Return the message about an id that is used twice."""
    return f"the id {entry_id} is also used at {place}; both are kept, give one a new id"


def line_span(text: str, line: int) -> Span:
    """Return where the words of a line are, counted from 1.

    Example:
        >>> line_span("one\\n  two \\n", 2)
        Span(start=6, end=9)
    """
    start = 0
    for _ in range(line - 1):
        following = text.find("\n", start)
        if following < 0:
            break
        start = following + 1
    end = text.find("\n", start)
    words = text[start : len(text) if end < 0 else end]
    lead = len(words) - len(words.lstrip())
    return Span(start + lead, start + max(lead, len(words.rstrip())))


def find_line(text: str, entry: Entry, *words: str) -> int:
    """Return the line, counted from 1, of the first of some words in an entry's frontmatter, else of the entry.

    Example:
        >>> from memory_kb.markdown.document import parse_document
        >>> note = "---\\nid: x\\nkind: oops\\n---\\nText.\\n"
        >>> entry = parse_document(note, "a.md").entries[0]
        >>> find_line(note, entry, "\\nkind:"), find_line(note, entry, "nowhere")
        (3, 1)
    """
    places = (text.find(one, entry.span.start, entry.body.start) for one in words)
    place = next((one for one in places if one >= 0), None)
    return entry.line if place is None else text.count("\n", 0, place + 1) + 1


def find_claim(text: str, entry: Entry, message: str) -> int:
    """Return the line of a claim that has a finding."""
    named = re.match(r"cites ([^,]+)", message)
    return find_line(
        text, entry, *((named[1],) if named else ()), "\nvalid_until:" if "valid" in message else "\ncites:"
    )
