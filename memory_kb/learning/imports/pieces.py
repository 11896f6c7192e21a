"""What every reader yields: the pieces of a source, each with what it becomes or why it is left out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from memory_kb.learning.remember import Draft
from memory_kb.model import Location
from memory_kb.notes.fields import parse_date
from memory_kb.notes.splice import Value
from memory_kb.text import slugify

#: What a source may be.
FORMATS = ("basic-memory", "obsidian", "daily-logs", "claude-export", "chatgpt-export", "mem0", "agents-md")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t#]*$")


class TextFile(NamedTuple):
    """A file of a source: its path as reports and entries name it, and its text."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Piece:
    """One thing that a source holds.

    Attributes:
        what: what it is there: `observation`, `note`, `bullet`, `memory`, `statement`.
        origin: where it stands, as its entry names it.
        line: the line in its file, from 1.
        key: what makes it this one and no other, when the source is imported again.
        draft: what it becomes; None where it is left out.
        why: why it is left out.
        place: where it belongs, where the source itself says that.
    """

    what: str
    origin: str
    line: int
    key: str = ""
    draft: Draft | None = None
    why: str = ""
    place: Location | None = None


def left_out(what: str, origin: str, line: int, why: str) -> Piece:
    """Return a piece that becomes nothing."""
    return Piece(what, origin, line, why=why)


def dated_fields(day: object) -> tuple[tuple[str, Value], ...]:
    """Return the fields of an entry that is as old as its source says; none for no good date.

    Example:
        >>> dated_fields("2026-03-01T10:00:00Z")
        (('created_at', '2026-03-01T10:00:00Z'), ('last_reinforced', '2026-03-01'))
    """
    found = parse_date(day)
    return (("created_at", str(day).strip()), ("last_reinforced", found.isoformat())) if found else ()


def tag_of(text: str) -> str:
    """Return a word or heading as a tag.

    Example:
        >>> tag_of("Code Style"), tag_of("数据库")
        ('code-style', '数据库')
    """
    return slugify(text, 40)


def heading_on(line: str) -> tuple[int, str] | None:
    """Return the level and the text of a heading.

    Example:
        >>> heading_on("## Rules ##"), heading_on("#tag")
        ((2, 'Rules'), None)
    """
    found = _HEADING.match(line)
    return (len(found[1]), found[2].strip()) if found else None
