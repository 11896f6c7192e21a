"""The values that travel between the rooms, and the closed word lists of the file format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True)
class Kind:
    """What one kind of entry implies when its frontmatter says nothing else."""

    layer: str
    type: str
    priority: str
    folder: str


KINDS: Mapping[str, Kind] = {
    "policy": Kind("semantic", "directive", "critical", "learnings"),
    "preference": Kind("semantic", "directive", "medium", "learnings"),
    "architecture": Kind("semantic", "declarative", "high", "learnings"),
    "decision": Kind("semantic", "declarative", "medium", "learnings"),
    "fact": Kind("semantic", "declarative", "normal", "learnings"),
    "rule": Kind("semantic", "procedural", "medium", "rules"),
    "pitfall": Kind("semantic", "corrective", "high", "rules"),
    "skill": Kind("procedural", "procedural", "high", "skills"),
    "episode": Kind("episodic", "declarative", "normal", "episodes"),
    "handoff": Kind("working", "declarative", "medium", "handoffs"),
    "ledger": Kind("working", "declarative", "medium", "ledgers"),
}
KIND_ALIASES: Mapping[str, str] = {
    "workflow": "skill",
    "procedure": "skill",
    "pattern": "rule",
    "anti-pattern": "pitfall",
    "diary": "episode",
}
#: The kind of an entry that names only its type.
KIND_OF_TYPE: Mapping[str, str] = {
    "declarative": "fact",
    "procedural": "rule",
    "directive": "preference",
    "corrective": "pitfall",
}
TYPES = tuple(KIND_OF_TYPE)
DOMAINS = ("task", "team")
STATUSES = ("active", "compacted", "retired", "archived", "proposed", "rejected")
LIVE_STATUSES = frozenset({"active", "compacted"})
#: What a search sees when it does not ask for a status.
SEARCHED_STATUSES = frozenset({"active", "compacted", "archived"})
#: Kinds that a search returns only when asked for them by name.
WORKING_KINDS = frozenset({"handoff", "ledger"})
PRIORITIES: Mapping[str, float] = {"critical": 0.95, "high": 0.8, "medium": 0.5, "normal": 0.4}
SOURCES = ("user_explicit", "observed", "inferred", "external_unverified", "extracted", "consolidated")
RELATIONS = (
    "derived_from",
    "related_to",
    "contradicts",
    "elaborates",
    "example_of",
    "supersedes",
    "superseded_by",
)
MATURITIES = ("nascent", "established", "proven")
OUTCOMES = ("success", "failure", "mixed")
#: Scopes from the most specific to the widest; other words for them are in `SCOPE_ALIASES`.
SCOPES = ("task", "job", "project", "global")
SCOPE_ALIASES: Mapping[str, str] = {"team": "task", "dispatch": "task", "session": "job"}
LEARNING_TYPES = ("task", "institutional", "proxy")


class Span(NamedTuple):
    """A half-open range of characters in a file's text."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Problem:
    """Something a person should mend, at a place they can open."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass(frozen=True, slots=True)
class Link:
    """A typed relation to another entry."""

    to: str
    relation: str


@dataclass(frozen=True, slots=True)
class Location:
    """Where a file stands among the scopes, told by its path alone."""

    scope: str = "project"
    job: str | None = None
    task: str | None = None
    learning_type: str = "task"


@dataclass(frozen=True, slots=True)
class Entry:
    """One memory: what its frontmatter says, with every default filled in, and where its text is.

    `metadata` is the frontmatter as parsed, unknown keys included; the other attributes are the
    checked reading of it. `span` covers frontmatter and body, `body` the body alone. `dated` is
    the day the entry is about, `seen` the day its age counts from; None means it has no date.
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
    """One searchable piece of an entry; the fields are the columns of the `chunks` table.

    A tuple rather than a dataclass because a large vault makes a hundred thousand at once and
    each goes straight into an SQL statement. `content` is `text[char_offset:][:len(content)]`
    of the file decoded as UTF-8 with replacement; `part` counts the chunks of one entry from 0.
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
    headings: str
    content: str
    tags: str
    applies_to: str
    dated: str | None
    title_terms: str | None
    terms: str | None
    metadata: str | None


class FileStat(NamedTuple):
    """A Markdown file as the walk finds it: `path` as shown, `location` as the system opens it."""

    path: str
    location: str
    size: int
    mtime_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class Filters:
    """Which entries a search or a list may return; an empty tuple or None leaves all in.

    `file` is a path relative to the project; it keeps entries whose `applies_to` globs match
    it. `since` keeps entries dated on or after that day.
    """

    kinds: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    learning_types: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    file: str | None = None
    job: str | None = None
    task: str | None = None
    since: date | None = None


@dataclass(frozen=True, slots=True)
class Parts:
    """The factors of a hit's score: `score = relevance * prominence * scope` (halved if superseded)."""

    bm25: float | None
    vector: float | None
    relevance: float
    prominence: float
    scope: float


@dataclass(frozen=True, slots=True)
class Hit:
    """One answer to a search. `path` is relative to the vault, `line` and `end_line` count from 1."""

    rank: int
    id: str
    title: str
    kind: str
    type: str
    scope: str
    status: str
    path: str
    line: int
    end_line: int
    score: float
    parts: Parts
    text: str
    explanation: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Freshness:
    """Which state of the index answered, and how many files on disk it does not hold yet; None if nobody looked."""

    generation: int
    pending: int | None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits, best first, and how far they can be trusted."""

    query: str
    mode: str
    hits: tuple[Hit, ...]
    degraded: tuple[str, ...]
    freshness: Freshness


@dataclass(frozen=True, slots=True)
class SyncReport:
    """What one comparison of disk and index changed."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    problems: tuple[Problem, ...] = ()
    seconds: float = 0.0
    notices: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the index was already right."""
        return not (self.added or self.changed or self.removed)


@dataclass(frozen=True, slots=True)
class Learned:
    """Where a learning went, and whether it is new or strengthened one that was there."""

    id: str
    path: str
    action: str


@dataclass(frozen=True, slots=True)
class EntryView:
    """An entry as `show`, `list` and `links` give it; `text` is its source, when asked for."""

    id: str
    title: str
    kind: str
    type: str
    scope: str
    status: str
    path: str
    line: int
    end_line: int
    tags: tuple[str, ...] = ()
    dated: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """One end of a link: the entry it leads to, or only the written target when there is none."""

    relation: str
    target: str
    entry: EntryView | None


@dataclass(frozen=True, slots=True)
class LinkReport:
    """The links of one entry, in both directions."""

    entry: EntryView
    outgoing: tuple[Reference, ...]
    incoming: tuple[Reference, ...]


@dataclass(frozen=True, slots=True)
class Stats:
    """How much a vault holds."""

    files: int
    entries: int
    chunks: int
    tokens: int
    kinds: Mapping[str, int]
    types: Mapping[str, int]
    statuses: Mapping[str, int]
    scopes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Status:
    """The index held against the disk, without changing either."""

    vault: str
    home: str
    index: str
    generation: int
    indexed_at: datetime | None
    files: int
    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    problems: tuple[Problem, ...]

    @property
    def pending(self) -> int:
        """Files that the next sync will add, replace or remove."""
        return len(self.added) + len(self.changed) + len(self.removed)


@dataclass(frozen=True, slots=True)
class Findings:
    """What an examination found, and what it repaired on the way."""

    problems: tuple[Problem, ...]
    repaired: tuple[str, ...] = ()
