"""The values that a search is made of and answers with."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from os import stat_result
from typing import NamedTuple


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
    is `prominence` to the power of `ranking.prominence_exponent`.
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

    `path` is relative to the vault, `line` and `end_line` count from 1.
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
