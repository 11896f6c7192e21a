"""`Entry`, `Trace`, reports, `RunOptions`, word lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from os import stat_result
from typing import Any, NamedTuple, TypedDict, Unpack

from memory_kb.errors import UsageError
from memory_kb.text import printable


@dataclass(frozen=True, slots=True)
class Problem:
    """Something a person should mend, at a place they can open."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


class Location(NamedTuple):
    """Where a file stands among the scopes, told by its path alone."""

    scope: str = "project"
    job: str | None = None
    task: str | None = None
    learning_type: str = "task"

    def is_within(self, other: Location) -> bool:
        """Tell whether what holds at another place holds here.

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
    """A Markdown file as the walk finds it.

    `path` is as shown, `location` as the system opens it; the numbers are made to fit a database.
    """

    path: str
    location: str
    size: int
    mtime_ns: int
    inode: int

    @classmethod
    def of(cls, path: str, location: str, found: stat_result) -> FileStat:
        """Return what identifies a file and its state.

        Its time may be a year beyond 2262, its inode a hash of 64 bits (mergerfs, ReFS).
        """
        mtime, inode = found.st_mtime_ns, found.st_ino
        if inode > _LARGEST or not -_LARGEST <= mtime <= _LARGEST:
            mtime, inode = wrap(mtime), wrap(inode)
        return cls(path, location, found.st_size, mtime, inode)


_LARGEST = 2**63 - 1


def wrap(number: int) -> int:
    """Return a number within the 64 bits of SQLite's integers, the same one if it fits.

    Example:
        >>> wrap(-1), wrap(2**63 - 1), wrap(2**64 - 1)
        (-1, 9223372036854775807, -1)
    """
    return (number + 2**63) % 2**64 - 2**63


class Region(NamedTuple):
    """A folder whose notes are looked at, by itself or with all that is below it, or a single note.

    `path` is as shown; that of a folder ends in a slash, and is empty for the vault's own. `without`
    is the path of a folder below it that is left out.
    """

    path: str
    location: str
    is_deep: bool = False
    without: str | None = None

    @property
    def is_file(self) -> bool:
        """Whether it is a single note."""
        return self.path != "" and self.path[-1] != "/"


#: As the file of some filters: one outside the project, which no glob matches.
NOWHERE = ""


class Filters(NamedTuple):
    """The entries that a search or a list may return.

    An empty tuple or None leaves all in. `file` is a path relative to the project, or `NOWHERE`; it
    keeps entries whose `applies_to` globs match it. `since` keeps entries dated on or after that day.
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
    is `prominence`, from 0.08 to 4.2, to the power of `ranking.prominence_exponent`.
    """

    bm25: float | None
    vector: float | None
    relevance: float
    prominence: float
    scope: float
    prominence_factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Hit:
    """One answer to a search.

    `path` is relative to the vault, `line` and `end_line` count from 1. `copies` are the further
    places, as `path:line`, that say the same under the same title.
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


class Freshness(NamedTuple):
    """The state of the index that answered, and what it lacks.

    That is how many files on disk it does not hold yet; None if nobody looked.
    """

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


class Step(NamedTuple):
    """One line of an action log, for `times` actions one after another; `t` is in seconds since the beginning."""

    t: float
    action: str
    result: str
    times: int = 1
    targets: tuple[str, ...] = ()


class Failure(NamedTuple):
    """An error of a session: how many `times` it came, and what made it go away, None while nothing has."""

    type: str
    message: str
    command: str
    times: int = 1
    resolution: str | None = None

    @property
    def named(self) -> str:
        """Type and message on one line."""
        return f"{self.type}: {self.message}".rstrip(": ")


class Check(NamedTuple):
    """The last result of a test run, build, lint run or deployment; `told` is that result in words."""

    kind: str
    is_ok: bool
    told: str = ""


class Commit(NamedTuple):
    """A commit that a tool reported."""

    hash: str
    subject: str


class Retry(NamedTuple):
    """A command that failed and then succeeded with a small change, nothing else having been done in between.

    `seq` is the number of the event that reports the failure, `error` the line it reports.
    """

    seq: int
    failed: str
    worked: str
    error: str


class Reverted(NamedTuple):
    """A change that a person asked to revert, and that was reverted; `seq` is the event with their words."""

    seq: int
    request: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """The facts of one task of a session, as its log has them.

    Attributes:
        seq: the number of the last event that counts for it.
        began: the moment of the first event, or ""; `ended` that of the last. Where the session was
            ended much later than it was worked on, or its log was begun later, that does not count.
        goal: the task as the person put it.
        turns: how many messages people wrote.
        actions: how many calls there were.
        steps: the actions, head and tail; `missing` were left out after the first `head`.
        checks: the last results of test runs, builds, lint runs and deployments, the newest last.
        outcome: as the end of the session states it, or None; `summary` likewise.
    """

    session: str
    job: str | None = None
    task: str | None = None
    agent: str | None = None
    seq: int = 0
    began: str = ""
    ended: str = ""
    goal: str = ""
    turns: int = 0
    actions: int = 0
    steps: tuple[Step, ...] = ()
    head: int = 0
    missing: int = 0
    failures: tuple[Failure, ...] = ()
    more_failures: int = 0
    checks: tuple[Check, ...] = ()
    commits: tuple[Commit, ...] = ()
    changed: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    retries: tuple[Retry, ...] = ()
    reverted: tuple[Reverted, ...] = ()
    outcome: str | None = None
    summary: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was done that is worth an episode: a question and its answer are none."""
        return not (self.actions or self.outcome or self.summary)


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
#: The kinds that tell people and agents what to do.
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
SCOPE_ALIASES: Mapping[str, str] = {"team": "task", "dispatch": "task", "session": "job"}
LEARNING_TYPES = ("task", "institutional", "proxy")


#: Filters that leave everything in.
EVERYTHING = Filters(kinds=tuple(KINDS), statuses=STATUSES, learning_types=LEARNING_TYPES)


class FilterWords(TypedDict, total=False):
    """The filters of search and list, in the words of the caller.

    Each list may also be one word. `file` is the path of a file of the project, `since` the first
    day, and `job` and `task` say whose siblings are hidden.
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
    """Return filters from the words of a caller.

    Aliases of kinds and scopes resolve, and a word from nowhere is an error.

    Raises:
        UsageError: a word is not one of the format's, or a task is named without its job.

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
        scopes=_words("scope", words.get("scope", ()), SCOPES, SCOPE_ALIASES),
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

    Raises:
        UsageError: the words contradict each other.

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


@dataclass(frozen=True, slots=True)
class Learned:
    """Where a learning went, and whether it is new.

    One that is not new strengthened one that was there. `run` is what was written for it. With
    `is_waiting` it is not in use before a person approves it.
    """

    id: str
    path: str
    action: str
    run: RunReport | None = None
    is_waiting: bool = False


@dataclass(frozen=True, slots=True)
class EntryView:
    """An entry as `show`, `list` and `links` give it.

    `text` is its source, when asked for.
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
    tags: tuple[str, ...] = ()
    dated: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Retired(EntryView):
    """An entry as it was before it was forgotten, what was written for it, and what else was purged of its text."""

    run: RunReport | None = None
    purged: Purged | None = None


class Purged(NamedTuple):
    """Where the text of a purged entry was deleted beside the notes.

    Attributes:
        files: of machine folders that were rewritten or deleted.
        runs: how many runs the journal lost; those cannot be undone.
        left: what still contains the text or a part of it, in sentences.
        git: what the history of git contains, and what to do about it, in sentences.
    """

    files: tuple[str, ...]
    runs: int
    left: tuple[str, ...]
    git: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """One end of a link: the entry it leads to, or the written target.

    There is only the written target when there is no such entry.
    """

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
    vectors: tuple[VectorCount, ...] = ()

    @property
    def pending(self) -> int:
        """Files that the next sync will add, replace or remove."""
        return len(self.added) + len(self.changed) + len(self.removed)


class VectorCount(NamedTuple):
    """The vectors of one embedding model, and how many chunks have none."""

    provider: str
    model: str
    dimension: int
    chunks: int
    missing: int


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Where a search lost an entry.

    `step` is a word for scripts, `reason` a sentence; `score` and `needed` are on the scale of
    that step. The step `found` means that it was not lost.
    """

    query: str
    id: str
    path: str
    step: str
    reason: str
    rank: int | None = None
    score: float | None = None
    needed: float | None = None
    details: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WatchReport:
    """What one batch of changes brought into the index while it was watched.

    Attributes:
        cause: `start`; `events` that the system told of; `poll` and `reconcile`, a comparison of
            everything; `overflow` after lost events; `reopened` after a replacement.
        problems: what is to be mended and was not reported by the batches before.
        generation: the state of the index from this batch on.
        files: how many files the index holds.
    """

    cause: str
    added: int
    changed: int
    removed: int
    problems: tuple[Problem, ...]
    seconds: float
    generation: int
    files: int


@dataclass(frozen=True, slots=True)
class Findings:
    """What an examination found, and what it repaired on the way."""

    problems: tuple[Problem, ...]
    repaired: tuple[str, ...] = ()


class Conflict(NamedTuple):
    """A change that was not made, and why; nothing of anybody's was overwritten.

    `code` is `changed` where somebody else wrote to the file, and `cannot-edit` where the change
    would touch bytes that are not its own.
    """

    path: str
    id: str | None
    reason: str
    message: str
    code: str = "changed"


@dataclass(frozen=True, slots=True)
class ChangeView:
    """A change of a run: what was done, to what, and why."""

    action: str
    path: str
    id: str | None
    reason: str
    to: str | None = None


@dataclass(frozen=True, slots=True)
class RunReport:
    """What a writing verb did, or would do.

    Attributes:
        run: what `undo` calls it; None for one that only looked, or had nothing to change.
        conflicts: what was left as it is because somebody else wrote there.
        diff: how the files would change, where it was only asked for.
        notices: what was mended of an earlier run that was killed, and that the index could not be brought up to date.
    """

    run: str | None
    verb: str
    changes: tuple[ChangeView, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    diff: str = ""
    notices: tuple[str, ...] = ()


class WrittenRun(NamedTuple):
    """A run that has just written: its name and verb, its files, what it took back, and what it was part of.

    `is_whole` is not so where somebody interrupted it; the next run completes it.
    """

    run: str
    verb: str
    files: tuple[str, ...]
    undoes: str | None = None
    occasion: str | None = None
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class StageReport:
    """The stage of a project or job: the one before, the one now, and what was done about it.

    `notice` says why there is no other, or how it was found out.
    """

    before: str
    stage: str
    notice: str
    run: RunReport

    @property
    def is_new(self) -> bool:
        """Whether a stage was entered."""
        return self.before != self.stage


@dataclass(frozen=True, slots=True)
class StepReport:
    """What one step of several came to.

    Attributes:
        outcome: `done`, `nothing` where there was nothing to change, `skipped` where it could not
            be done here, or `failed`.
        message: what, or why not, in a sentence; may be empty.
        seconds: how long it took.
        runs: what it wrote, by the names that `undo` knows.
        changes: what it changed, or would change.
        conflicts: what it left because somebody else wrote there.
        diff: how the files would change, where it was only asked for.
        exit_code: what the command line ends with because it failed; else 0.
    """

    name: str
    outcome: str
    message: str
    seconds: float
    runs: tuple[str, ...] = ()
    changes: tuple[ChangeView, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    diff: str = ""
    exit_code: int = 0


@dataclass(frozen=True, slots=True)
class MaintenanceReport:
    """The steps of the maintenance that were due, and when the next is."""

    steps: tuple[StepReport, ...]
    next_due: datetime


@dataclass(frozen=True, slots=True)
class RunView:
    """A run that can be taken back, as `undo --list` shows it.

    `undoes` names the run that it took back, `undone_by` the one that took it back, `occasion` what
    it was part of, such as `session s1`.
    """

    run: str
    time: str
    verb: str
    summary: str
    files: tuple[str, ...]
    undoes: str | None = None
    undone_by: str | None = None
    occasion: str | None = None


@dataclass(frozen=True, slots=True)
class SessionHit:
    """An event that fits a search.

    `offset` is where its line begins in the file of the session, in bytes; `content_snippet` has
    the words that fit between `>>>` and `<<<`.
    """

    rank: int
    session: str
    seq: int
    ts: str
    job: str | None
    task: str | None
    agent: str | None
    type: str
    event: str | None
    role: str | None
    tool: str | None
    ok: bool | None
    injected: bool
    offset: int
    score: float
    content_snippet: str

    @property
    def burst_id(self) -> str:
        """The session, as the logs of orchestrators call it."""
        return self.session


@dataclass(frozen=True, slots=True)
class SessionSearch:
    """The events that fit, best first, and how far that can be trusted."""

    query: str
    hits: tuple[SessionHit, ...]
    degraded: tuple[str, ...] = ()


class SessionShare(NamedTuple):
    """How many events went to one of several sessions, and the number of its last."""

    session: str
    written: int
    seq: int


@dataclass(frozen=True, slots=True)
class SessionWritten:
    """What was written to a session; of several, to the last.

    Attributes:
        action: `started`, `resumed`, `appended`, `ended`, `corrected`, or `unchanged`.
        written: how many events.
        seq: the number of the session's last event.
        redacted: what the credentials looked like that were taken out before writing.
        steps: what followed the end, stage by stage.
        correction: what was said of it before and counts no more, in a sentence; else empty.
        shares: where the events went that were appended, session by session.
    """

    session: str
    path: str
    action: str
    written: int = 0
    seq: int = 0
    redacted: tuple[str, ...] = ()
    steps: tuple[StepReport, ...] = ()
    correction: str = ""
    shares: tuple[SessionShare, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionImported:
    """What an import brought into one session.

    Attributes:
        known: events that were there from an earlier import.
        ignored: records that hold nothing to keep, such as token counts.
        problems: lines that could not be read.
        injected: events that hold text which memory-kb itself gave the agent.
        elsewhere: the folder that the session worked in, where it was left out for that.
    """

    session: str
    source: str
    format: str
    added: int = 0
    known: int = 0
    ignored: int = 0
    injected: int = 0
    problems: tuple[Problem, ...] = ()
    redacted: tuple[str, ...] = ()
    elsewhere: str = ""


class StoredMemory(NamedTuple):
    """An entry with its text, its place, and the hash of the file it was read from."""

    entry: StoredEntry
    hash: str
    job: str | None
    task: str | None
    learning_type: str
    text: str


class StoredEntry(NamedTuple):
    """An entry as the index knows it.

    `line` is where its text begins, `metadata` is JSON or None. `tags` are those of its frontmatter,
    `text_tags` those that stand in its text as `#tag`; both with commas between them. `fault` is the
    line from which its frontmatter cannot be read, or None.
    """

    entry_id: str
    title: str
    kind: str
    type: str
    scope: str
    status: str
    source: str
    line: int
    end_line: int
    tags: str
    dated: str | None
    metadata: str | None
    text_tags: str = ""
    fault: int | None = None
