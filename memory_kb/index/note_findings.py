"""Check a note while it is written, and report each finding at its exact place."""

from __future__ import annotations

import re
from typing import NamedTuple

from memory_kb.markdown.splice import yaml_span
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


def field_span(text: str, entry: Entry, field: str) -> Span:
    """Return where the value of a field is, or the first line of the entry.

    Example:
        >>> from memory_kb.markdown.document import parse_document
        >>> note = "---\\nid: x\\nkind: oops # why\\n---\\nText.\\n"
        >>> span = field_span(note, parse_document(note, "a.md").entries[0], "kind")
        >>> note[span.start : span.end]
        'oops'
    """
    if not entry.has_frontmatter:
        return line_span(text, entry.line)
    block = yaml_span(text, entry)
    found = re.compile(rf"^[\"']?{re.escape(field)}[\"']?[ \t]*:[ \t]*", re.MULTILINE).search(
        text, block.start, block.end
    )
    if found is None:
        return line_span(text, entry.line)
    end = text.find("\n", found.end())
    value = re.sub(r"\s+#.*", "", text[found.end() : block.end if end < 0 else min(end, block.end)]).rstrip()
    return Span(found.end(), found.end() + len(value)) if value else Span(found.start(), found.end())


def link_span(text: str, entry: Entry, value: str) -> Span:
    """Return where the target of a link is in the frontmatter, or the field of the links."""
    if not entry.has_frontmatter:
        return line_span(text, entry.line)
    block = yaml_span(text, entry)
    found = re.compile(rf"(?<![\w-]){re.escape(value)}(?![\w-])").search(text, block.start, block.end)
    return Span(*found.span()) if found else field_span(text, entry, "links")


def claim_span(text: str, entry: Entry, message: str) -> Span:
    """Return the place of a claim that has a finding."""
    named = re.match(r"cites ([^,]+)", message)
    if named and text.find(named[1], entry.span.start, entry.body.start) >= 0:
        start = text.find(named[1], entry.span.start, entry.body.start)
        return Span(start, start + len(named[1]))
    return field_span(text, entry, "valid_until" if "valid" in message else "cites")
