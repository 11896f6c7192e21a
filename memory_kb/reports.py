"""The values that verbs return: runs and their conflicts, entries, findings."""

# Annotations are evaluated here: to parse them from text takes a named tuple twice as long to define.
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
    """Where a learning went, and whether it is new.

    One that is not new strengthened one that was there. `run` is what was written for it. With
    `is_waiting` it is not in use before a person approves it. Entries `near` to it may need a look.
    """

    id: str
    path: str
    action: str
    run: "RunReport | None" = None
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

    run: "RunReport | None" = None
    purged: "Purged | None" = None


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


class Reference(NamedTuple):
    """One end of a link: the entry it leads to, or the written target.

    There is only the written target when there is no such entry.
    """

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


class WhyNot(NamedTuple):
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


class WatchReport(NamedTuple):
    """What one batch of changes brought into the index while it was watched.

    Attributes:
        cause: `start`; `events` that the system reported; `poll` and `reconcile`, a comparison of
            everything; `reopened` after a replacement.
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


class Findings(NamedTuple):
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


class ChangeView(NamedTuple):
    """A change of a run: what was done, to what, and why."""

    action: str
    path: str
    id: str | None
    reason: str
    to: str | None = None


class RunReport(NamedTuple):
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


class StageReport(NamedTuple):
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


class StepReport(NamedTuple):
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


class MaintenanceReport(NamedTuple):
    """The steps of the maintenance that were due, and when the next is."""

    steps: tuple[StepReport, ...]
    next_due: datetime


class RunView(NamedTuple):
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
