"""The values that verbs return: runs and their conflicts, entries, findings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from memory_kb.model import Problem


class Near(NamedTuple):
    """An entry that says the contrary of a new one, or nearly the same; `how` says which."""

    how: str
    id: str
    title: str
    path: str
    line: int


class Learned(NamedTuple):
    """Where a learning went: a new entry, or one that was there and is stronger now.

    With `is_waiting` it is not in use before a person approves it, because of what it `waits_for`, "" where that is its
    source. Entries `near` to it may need a look. With `needs_background_update` too many notes were not indexed yet to
    compare it with all of them.
    """

    id: str
    path: str
    action: str
    run: "RunReport | None" = None
    is_waiting: bool = False
    near: tuple[Near, ...] = ()
    waits_for: str = ""
    needs_background_update: bool = False


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
class Retired(EntryView):
    """An entry as it was before it was forgotten, what was written for it, and what else was purged of its text."""

    run: "RunReport | None" = None
    purged: "Purged | None" = None


class Purged(NamedTuple):
    """The files that lost a purged text, how many runs the journal lost, and what still has it, in sentences."""

    files: tuple[str, ...]
    runs: int
    left: tuple[str, ...]
    git: tuple[str, ...]


class Reference(NamedTuple):
    """One end of a link: the target as written, and the entry it leads to if there is one."""

    relation: str
    target: str
    entry: EntryView | None


class LinkReport(NamedTuple):
    """The links of one entry, in both directions."""

    entry: EntryView
    outgoing: tuple[Reference, ...]
    incoming: tuple[Reference, ...]


class Stats(NamedTuple):
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
    """The differences between index and disk; neither was changed."""

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
    vectors: "tuple[VectorCount, ...]" = ()
    team: "TeamState | None" = None

    @property
    def pending(self) -> int:
        """Files that the next sync will add, replace or remove."""
        return len(self.added) + len(self.changed) + len(self.removed)


class TeamVault(NamedTuple):
    """A vault of a team's index that one may see; `revision` is the commit that was indexed, if it is in git."""

    name: str
    generation: int
    revision: str | None
    chunks: int
    vectors: int


class TeamState(NamedTuple):
    """The team's index that the settings name: this vault's name there, the server, and why it does not answer."""

    name: str | None
    server: str
    vaults: tuple[TeamVault, ...] = ()
    nearest: str = ""
    problem: str = ""


class VectorCount(NamedTuple):
    """The vectors of one embedding model, and how many chunks have none."""

    provider: str
    model: str
    dimension: int
    chunks: int
    missing: int


class WhyNot(NamedTuple):
    """The step that lost an entry, or `found`, with a reason; `score` and `needed` are on the scale of that step.

    `step` is hidden, filtered, phrase, excluded, no-shared-term, outside-pool, shadowed, copy, decayed, scope, score,
    variety, budget or not-indexed; of a hook it is off, few-words, shown, few-rare-words, below-floor or not-given, too.
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


class WatchReport(NamedTuple):
    """What one batch of changes brought into the index while it was watched; `problems` are those that are new.

    Its `cause` is `start`; `events` that the system reported; `poll` and `reconcile`, a comparison of everything;
    `reopened` after a replacement.
    """

    cause: str
    added: int
    changed: int
    removed: int
    problems: tuple[Problem, ...]
    seconds: float
    generation: int
    files: int


class Findings(NamedTuple):
    """What an examination found, and what it repaired on the way."""

    problems: tuple[Problem, ...]
    repaired: tuple[str, ...] = ()


class Conflict(NamedTuple):
    """A change that was not made: somebody else wrote there, or it `cannot-edit` without touching other bytes."""

    path: str
    id: str | None
    reason: str
    message: str
    code: str = "changed"


class ChangeView(NamedTuple):
    """A change of a run: what was done, to what, and why."""

    action: str
    path: str
    id: str | None
    reason: str
    to: str | None = None


class RunReport(NamedTuple):
    """What a writing verb did; `run` is None for one that only looked, or had nothing to change, `diff` is its preview.

    `notices` say what was fixed of an earlier run that was killed, and that the index could not be brought up to date.
    """

    run: str | None
    verb: str
    changes: tuple[ChangeView, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    diff: str = ""
    notices: tuple[str, ...] = ()


class StageReport(NamedTuple):
    """The stage of a project or job: the one before, the one now, and how it was found out."""

    before: str
    stage: str
    notice: str
    run: RunReport

    @property
    def is_new(self) -> bool:
        """Whether a stage was entered."""
        return self.before != self.stage


class StepReport(NamedTuple):
    """The result of one step of several.

    Its `outcome` is `done`, `nothing` where there was nothing to change, `skipped` where it could not be done here, or
    `failed`, which gives the command line its `exit_code`. `runs` are the names that `undo` knows.
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


class MaintenanceReport(NamedTuple):
    """The steps of the maintenance that were due, and when the next is."""

    steps: tuple[StepReport, ...]
    next_due: datetime


class RunView(NamedTuple):
    """A run that can be undone; `occasion` is what it was part of, such as `session s1`."""

    run: str
    time: str
    verb: str
    summary: str
    files: tuple[str, ...]
    undoes: str | None = None
    undone_by: str | None = None
    occasion: str | None = None


class SessionHit(NamedTuple):
    """An event that fits a search; `content_snippet` has the words that fit between `>>>` and `<<<`.

    `offset` is where its line begins in the file of the session, in bytes.
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


class SessionSearch(NamedTuple):
    """The events that fit, best first, and how far that can be trusted."""

    query: str
    hits: tuple[SessionHit, ...]
    degraded: tuple[str, ...] = ()


class SessionShare(NamedTuple):
    """How many events went to one of several sessions, and the number of its last."""

    session: str
    written: int
    seq: int


class SessionWritten(NamedTuple):
    """What was written to a session, of several to the last; `shares` has it session by session.

    Its `action` is `started`, `resumed`, `appended`, `ended`, or `unchanged`. `redacted` says what the credentials
    looked like that were taken out before writing.
    """

    session: str
    path: str
    action: str
    written: int = 0
    seq: int = 0
    redacted: tuple[str, ...] = ()
    steps: tuple[StepReport, ...] = ()
    shares: tuple[SessionShare, ...] = ()


class SessionImported(NamedTuple):
    """What an import brought into one session: events added, known from an earlier import, ignored as empty records.

    `injected` are events that hold text which memory-kb itself gave the agent. A session that worked in a folder
    `elsewhere` was left out.
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
