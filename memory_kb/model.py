"""The values that travel between rooms: entries, chunks, filters, hits, and the words of the file format.

One entry is an `Entry` as its file has it, with the places of its bytes; `Chunk` values, its sections as rows of the
index; a `StoredEntry` as the index lists it, without its text; a `Memory` (`memory_kb.memory`) with its text, from which
changes are planned; and an `EntryView` (`memory_kb.reports`) as it is shown to whoever asks for it.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from os import stat_result
from typing import Any, NamedTuple, TypedDict, Unpack

from memory_kb.errors import UsageError
from memory_kb.text import printable

UNKNOWN_WORD = "is not a known word"


class Problem(NamedTuple):
    """Something a person should fix, at a place they can open."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"

    @property
    def is_unknown_word(self) -> bool:
        """Whether a field has a word of another tool, of which a vault may have thousands."""
        return UNKNOWN_WORD in self.message


class Location(NamedTuple):
    """The scope of a file, as its path alone says."""

    scope: str = "project"
    job: str | None = None
    task: str | None = None
    learning_type: str = "task"

    def is_within(self, other: "Location") -> bool:
        """Return whether what holds at another place holds here.

        Example:
            >>> here = Location("job", "api")
            >>> [here.is_within(place) for place in (here, Location(), Location("job", "web"), Location("task", "api", "t"))]
            [True, True, False, False]
        """
        match other.scope:
            case "global":
                return True
            case "project":
                return self.scope != "global"
            case "job":
                return self.job == other.job
        return (self.job, self.task) == (other.job, other.task)


class FileStat(NamedTuple):
    """A Markdown file as the walk finds it; `path` is as shown, `os_path` as the system opens it."""

    path: str
    os_path: str
    size: int
    mtime_ns: int
    inode: int

    @classmethod
    def of(cls, path: str, os_path: str, found: stat_result) -> "FileStat":
        """Return what identifies a file and its state.

        Its time may be a year beyond 2262, its inode a hash of 64 bits (mergerfs, ReFS).
        """
        return cls(path, os_path, found.st_size, to_int64(found.st_mtime_ns), to_int64(found.st_ino))


def to_int64(number: int) -> int:
    """Return a number within the 64 bits of SQLite's integers, the same one if it fits.

    Example:
        >>> to_int64(-1), to_int64(2**63 - 1), to_int64(2**64 - 1)
        (-1, 9223372036854775807, -1)
    """
    return number if -(2**63) <= number < 2**63 else (number + 2**63) % 2**64 - 2**63


#: As the file of some filters: one outside the project, which no glob matches.
NOWHERE = ""


class Filters(NamedTuple):
    """The entries that a search or a list may return; an empty tuple or None leaves all in.

    `file` is a path relative to the project, or `NOWHERE`; it keeps entries whose `applies_to` globs match it.
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


class Parts(NamedTuple):
    """The factors of a hit's score.

    `score = relevance * prominence_factor * scope` (halved if superseded), and `prominence_factor`
    is `prominence`, from 0.01 to 29, to the power of `ranking.prominence_exponent`.
    """

    bm25: float | None
    vector: float | None
    relevance: float
    prominence: float
    scope: float
    prominence_factor: float = 1.0


class Hit(NamedTuple):
    """One answer to a search; `path` is relative to the vault, `line` and `end_line` count from 1.

    `copies` are further places, as `path:line`, that say the same under the same title. `vault` is the name of a vault
    of the team's index, where several were searched.
    """

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
    copies: tuple[str, ...] = ()
    vault: str | None = None


class Freshness(NamedTuple):
    """The state of the index that answered, and how many files on disk it lacks; None if nobody looked."""

    generation: int
    pending: int | None


class SearchResult(NamedTuple):
    """The hits, best first, and how far they can be trusted."""

    query: str
    mode: str
    hits: tuple[Hit, ...]
    degraded: tuple[str, ...]
    freshness: Freshness

    @property
    def notes(self) -> list[list[Hit]]:
        """The hits of each note together, in the order of the best of them."""
        groups: dict[tuple[str | None, str, str], list[Hit]] = {}
        for hit in self.hits:
            groups.setdefault((hit.vault, hit.path, hit.title), []).append(hit)
        return list(groups.values())


class SyncReport(NamedTuple):
    """What one comparison of disk and index changed."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    problems: tuple[Problem, ...] = ()
    seconds: float = 0.0
    notices: tuple[str, ...] = ()
    unreadable: int = 0
    embedded: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether the index was already right."""
        return not (self.added or self.changed or self.removed)


class Span(NamedTuple):
    """A half-open range of characters in a file's text."""

    start: int
    end: int


class Link(NamedTuple):
    """A typed relation to another entry."""

    to: str
    relation: str


class Entry(NamedTuple):
    """One memory: what its frontmatter says, and where its text is.

    Every default is filled in. `metadata` is the frontmatter as parsed, unknown keys included;
    the other attributes are the checked reading of it. `span` covers frontmatter and body, `body`
    the body alone. `dated` is the day the entry is about, `seen` the day its age counts from;
    None means it has no date. `fault` is the line from which its frontmatter cannot be read; such
    an entry has its block as text, and is not written to before that is fixed.
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


class Document(NamedTuple):
    """A file's entries in file order, with what was wrong with it."""

    entries: tuple[Entry, ...]
    problems: tuple[Problem, ...]


class Chunk(NamedTuple):
    """One searchable piece of an entry: a row of the `chunks` table.

    `content` is `text[char_offset:][:len(content)]` of the file as `decode_text` reads it; `part` counts the chunks of
    one entry from 0; `is_titled` is 0 where the title is only the file's name; `names` are the other names of the
    entry, one a line. `supersedes` are the ids, as JSON, whose place the entry takes; `is_superseded` is what its own
    links say of it.
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
    names: str
    title_terms: str | None
    terms: str | None
    metadata: str | None
    text_tags: str
    fault: int | None
    supersedes: str | None


class Kind(NamedTuple):
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
#: The kinds that instruct people and agents.
INSTRUCTING = frozenset(name for name, kind in KINDS.items() if kind.type != "declarative")
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
#: Kinds that always hold when their priority is high enough.
BASELINE_KINDS = ("policy", "architecture", "preference")
PRIORITIES: Mapping[str, float] = {"critical": 0.95, "high": 0.8, "medium": 0.5, "normal": 0.4}
SOURCES = ("user_explicit", "observed", "inferred", "external_unverified", "extracted", "consolidated")
#: The source of what came from outside and nobody has looked at.
UNVERIFIED = "external_unverified"
RELATIONS = (
    "derived_from",
    "related_to",
    "contradicts",
    "elaborates",
    "example_of",
    "supersedes",
    "superseded_by",
)
#: Scopes from the most specific to the widest; other words for them are in `SCOPE_ALIASES`.
SCOPES = ("task", "job", "project", "global")
#: The most hits of one entry in a list that people read, while others match.
PER_ENTRY = 3
#: The scope of what an agent remembers by itself: found in a search, and never written.
HOST = "host"
SCOPE_ALIASES: Mapping[str, str] = {"team": "task", "dispatch": "task", "session": "job"}
LEARNING_TYPES = ("task", "institutional", "proxy")


#: Filters that leave everything in.
EVERYTHING = Filters(kinds=tuple(KINDS), statuses=STATUSES, learning_types=LEARNING_TYPES)


class FilterWords(TypedDict, total=False):
    """The filters of search and list, in the words of the caller; each list may also be one word.

    `since` is the first day; `job` and `task` say whose siblings are hidden.
    """

    kind: Sequence[str]
    type: Sequence[str]
    learning_type: Sequence[str]
    scope: Sequence[str]
    tag: Sequence[str]
    status: Sequence[str]
    file: str | None
    job: str | None
    task: str | None
    since: date | None


def make_filters(**words: Unpack[FilterWords]) -> Filters:
    """Return filters from the words of a caller; aliases of kinds and scopes resolve.

    Example:
        >>> make_filters(kind=["workflow"], scope="team").kinds
        ('skill',)
    """
    file, job, task = (
        printable(word) if word else None for word in (words.get("file"), words.get("job"), words.get("task"))
    )
    if task and not job:
        raise UsageError("a task is named without its job", "add --job")
    return Filters(
        kinds=_words("kind", words.get("kind", ()), KINDS, KIND_ALIASES),
        types=_words("type", words.get("type", ()), TYPES),
        learning_types=_words("learning type", words.get("learning_type", ()), LEARNING_TYPES),
        scopes=_words("scope", words.get("scope", ()), (*SCOPES, HOST), SCOPE_ALIASES),
        tags=tuple(map(printable, _listed(words.get("tag", ())))),
        statuses=_words("status", words.get("status", ()), STATUSES),
        file=file or None,
        job=job,
        task=task,
        since=words.get("since"),
    )


def _listed(words: Sequence[str]) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)


def _words(
    name: str,
    words: Sequence[str],
    known: Sequence[str] | Mapping[str, object],
    aliases: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    found = tuple((aliases or {}).get(word.lower(), word.lower()) for word in _listed(words))
    for word in found:
        if word not in known:
            raise UsageError(f"unknown {name} {word!r}", f"it may be {', '.join(known)}")
    return found


def make_place(scope: str, job: str | None, task: str | None) -> Location:
    """Return where a new entry goes.

    Example:
        >>> make_place("project", "api", None)
        Location(scope='job', job='api', task=None, learning_type='task')
    """
    scope = SCOPE_ALIASES.get(scope, scope)
    for name in (job, task):
        if name is not None and (
            not name.isprintable() or not name.strip() or name.startswith(".") or "/" in name or "\\" in name
        ):
            raise UsageError(f"{name!r} is not a name for a job or task", "use letters, digits and dashes")
    if task and not job:
        raise UsageError("a task is named without its job", "add --job")
    if scope == "global" and not job:
        return Location("global")
    if scope == "project" or (scope == "job" and job) or (scope == "task" and task):
        return Location("task" if task else "job" if job else "project", job, task)
    raise UsageError(
        f"scope {scope!r} does not go with {'a job' if job else 'no job'}",
        "learn at global or project scope, or name --job and --task",
    )


def place_of_work(job: str | None, task: str | None) -> Location:
    """Return the place that the events of a session name; the project where their names cannot be those of folders.

    Example:
        >>> place_of_work("api", None).scope, place_of_work("feat/login", None).scope
        ('job', 'project')
    """
    try:
        return make_place("project", job, task if job else None)
    except UsageError:
        return Location()


class StoredEntry(NamedTuple):
    """An entry as the index knows it.

    `line` is where its text begins, `metadata` is JSON or None. `tags` are those of its frontmatter, `text_tags` those
    that are in its text as `#tag`, both with commas between them. `fault` is the line from which its frontmatter cannot
    be read, or None. `is_superseded` follows from its own links and from those of the entries that supersede it.
    """

    id: str
    title: str
    kind: str
    type: str
    scope: str
    status: str
    path: str
    line: int
    end_line: int
    tags: str
    dated: str | None
    metadata: str | None
    text_tags: str = ""
    fault: int | None = None
    is_superseded: int = 0

    @property
    def is_in_people_file(self) -> bool:
        """Whether it is in MEMORY.md, whose text is rewritten by people alone."""
        return self.path.rpartition("/")[2] == "MEMORY.md"
