"""The values that verbs return: runs and their conflicts, findings, reports of a session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from memory_kb.model import Problem


class ActionLine(NamedTuple):
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


class CheckResult(NamedTuple):
    """The last result of a test run, build, lint run or deployment; `words` is that result in words."""

    kind: str
    is_ok: bool
    words: str = ""


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
        seen: the files that were read; `constraints` are what the person said must always or never be.
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
    steps: tuple[ActionLine, ...] = ()
    head: int = 0
    missing: int = 0
    failures: tuple[Failure, ...] = ()
    more_failures: int = 0
    checks: tuple[CheckResult, ...] = ()
    commits: tuple[Commit, ...] = ()
    changed: tuple[str, ...] = ()
    seen: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
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


class Near(NamedTuple):
    """An entry that says the contrary of a new one, or nearly the same; `how` says which."""

    how: str
    id: str
    title: str
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Learned:
    """Where a learning went, and whether it is new.

    One that is not new strengthened one that was there. `run` is what was written for it. With
    `is_waiting` it is not in use before a person approves it. Entries `near` to it may need a look.
    """

    id: str
    path: str
    action: str
    run: RunReport | None = None
    is_waiting: bool = False
    near: tuple[Near, ...] = ()


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
    team: TeamState | None = None

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
    """The team's index that the settings name: this vault's name there, and what the server said or that it does not answer."""

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
        cause: `start`; `events` that the system reported; `poll` and `reconcile`, a comparison of
            everything; `overflow` after lost events; `reopened` after a replacement.
        problems: what is to be fixed and was not reported by the batches before.
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
        notices: what was fixed of an earlier run that was killed, and that the index could not be brought up to date.
    """

    run: str | None
    verb: str
    changes: tuple[ChangeView, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    diff: str = ""
    notices: tuple[str, ...] = ()


class WrittenRun(NamedTuple):
    """A run that has just written: its name and verb, its files, what it reverted, and what it was part of.

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
    """A run that can be undone, as `undo --list` shows it.

    `undoes` names the run that it reverted, `undone_by` the one that reverted it, `occasion` what
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
