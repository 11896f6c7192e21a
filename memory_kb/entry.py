"""Entries and chunks: what a file says, with the exact places where it says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

from memory_kb.model import Problem


class Span(NamedTuple):
    """A half-open range of characters in a file's text."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Link:
    """A typed relation to another entry."""

    to: str
    relation: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One memory: what its frontmatter says, and where its text is.

    Every default is filled in. `metadata` is the frontmatter as parsed, unknown keys included;
    the other attributes are the checked reading of it. `span` covers frontmatter and body, `body`
    the body alone. `dated` is the day the entry is about, `seen` the day its age counts from;
    None means it has no date. `fault` is the line from which its frontmatter cannot be read; such
    an entry says what could be read of it, and is not written to before that is mended.
    """

    id: str
    kind: str
    type: str
    domain: str
    importance: float
    phase: str
    status: str
    reinforcement_count: int
    last_reinforced: str | None
    created_at: str | None
    title: str | None
    tags: tuple[str, ...]
    priority: str | None
    applies_to: tuple[str, ...]
    links: tuple[Link, ...]
    metadata: Mapping[str, Any]
    span: Span
    body: Span
    line: int
    has_frontmatter: bool
    has_own_id: bool
    dated: date | None
    seen: date | None
    fault: int | None = None

    @property
    def is_superseded(self) -> bool:
        """Whether a newer entry has taken this one's place."""
        return any(link.relation == "superseded_by" for link in self.links)


@dataclass(frozen=True, slots=True)
class Document:
    """A file's entries in file order, with what was wrong with it."""

    entries: tuple[Entry, ...]
    problems: tuple[Problem, ...]


class Chunk(NamedTuple):
    """One searchable piece of an entry.

    The fields are the columns of the `chunks` table. A tuple rather than a dataclass because a
    large vault makes a hundred thousand at once and each goes straight into an SQL statement.
    `content` is `text[char_offset:][:len(content)]` of the file as `decode_text` reads
    it; `part` counts the chunks of one entry from 0, and
    `is_titled` is 0 where the title is only the file's name.
    """

    source: str
    position: int
    part: int
    entry_id: str
    kind: str
    type: str
    status: str
    scope: str
    job: str | None
    task: str | None
    learning_type: str
    importance: float
    reinforcement_count: int
    seen: str | None
    is_superseded: int
    char_offset: int
    line: int
    end_line: int
    title: str
    is_titled: int
    headings: str
    content: str
    tags: str
    applies_to: str
    dated: str | None
    title_terms: str | None
    terms: str | None
    metadata: str | None
    text_tags: str
    fault: int | None
