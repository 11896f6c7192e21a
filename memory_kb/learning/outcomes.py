"""Credit the rules, pitfalls and skills that a task used with how it went."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.credentials import redact
from memory_kb.injected import strip
from memory_kb.learning.confidence import read_evidence, settle
from memory_kb.learning.playbook import RULE_KINDS, in_force, plan_feedback
from memory_kb.learning.reinforcement import changed_files, keep_used, words_of_work
from memory_kb.learning.rules import read_outcome
from memory_kb.model import EVERYTHING
from memory_kb.reports import RunReport
from memory_kb.store.events import Event, strings_of
from memory_kb.store.logs import Mark, Outcome, OutcomeLog, Retrieval, RetrievalLog, format_time
from memory_kb.store.plan import Change, Memory, Plan
from memory_kb.store.session_log import HOOKED, SessionFiles
from memory_kb.store.undo import undone_by

if TYPE_CHECKING:
    from memory_kb.learning.entry_store import EntryStore
    from memory_kb.store.session_log import TraceSession
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault


#: The kinds that an outcome says something about.
EVIDENCE_KINDS = (*RULE_KINDS, "skill")
_MARK = re.compile(r"\[memory-kb:\s*(helpful|harmful)\s+([^\[\]\n]{1,500}?)\s*\]", re.IGNORECASE)
_CREDIT_OF = {"helpful": "success", "harmful": "failure"}
#: What a mark begins with, in lower case.
_BEGINS = "[memory-kb:"
#: How long after hooks showed something in a session an outcome may still be reported for it.
_LATE = timedelta(days=1)
#: What is as outcome where an agent said of entries what they did, and nobody how the task went.
_MARKED = "marked"


class Credited(NamedTuple):
    """An entry and its credit; `before` and `after` are the confidence, of a skill its counter."""

    id: str
    kind: str
    title: str
    credit: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class OutcomeReport:
    """What the outcome of a task changed; `known` are entries that were credited for it before, `notice` says why nothing was."""

    agent: str
    task: str
    outcome: str
    credits: tuple[Credited, ...]
    known: tuple[str, ...]
    notice: str
    run: RunReport


class Showing(NamedTuple):
    """What an agent was shown for a task, and in which sessions.

    `hooked` is the session whose hooks showed it; None where it was shown for the task by its name.
    """

    agent: str
    task: str
    ids: tuple[str, ...]
    sessions: tuple[str, ...] = ()
    hooked: str | None = None

    @property
    def session(self) -> str | None:
        """The session that its outcome belongs to."""
        return self.hooked or next(reversed(self.sessions), None)


def find_named(retrievals: Iterable[Retrieval], agent: str, task: str, session: str | None = None) -> Showing | None:
    """Return what was shown to an agent for a task by its name, in one session or in all."""
    named = (one for one in retrievals if one.injected and (one.agent, one.task) == (agent, task))
    return _join([one for one in named if session in (None, one.session)], agent, task)


def find_hooked(retrievals: Iterable[Retrieval], session: str) -> Showing | None:
    """Return what hooks showed in a session."""
    found = [one for one in retrievals if one.is_hooked and one.session == session]
    return _join(found, next((one.agent for one in found if one.agent), ""), f"session {session}", session)


def _join(found: Sequence[Retrieval], agent: str, task: str, hooked: str | None = None) -> Showing | None:
    ids = tuple(dict.fromkeys(name for one in found for name in one.ids))
    sessions = tuple(dict.fromkeys(one.session for one in found if one.session))
    return Showing(agent, task, ids, sessions, hooked) if ids else None


def find_showing(
    retrievals: Sequence[Retrieval], agent: str, tasks: Sequence[str], session: str | None, hooked: str | None
) -> Showing | None:
    """Return what an agent was shown for a task, by one of its names; else what hooks showed in a session."""
    named = (find_named(retrievals, agent, task, session) for task in tasks)
    shown = find_hooked(retrievals, hooked) if hooked else None
    return next(filter(None, named), shown and shown._replace(agent=agent, task=tasks[-1]))


def parse_marks(text: str) -> dict[str, str]:
    """Return what a text says of entries; the last word on each counts.

    Example:
        >>> parse_marks("[memory-kb: helpful b-1, b-2] then // [memory-kb: Harmful b-2] - it broke the build")
        {'b-1': 'success', 'b-2': 'failure'}
    """
    marks: dict[str, str] = {}
    for found in _MARK.finditer(text):
        marks |= dict.fromkeys(filter(None, re.split(r"[,\s]+", found[2])), _CREDIT_OF[found[1].lower()])
    return marks


def find_marks(events: Iterable[Event]) -> dict[str, str]:
    """Return what was said of entries in a session: in messages and in what tools were called with.

    Results of tools are left out, since a file may hold the marks of another task.
    """
    marks: dict[str, str] = {}
    for event in events:
        if event.type not in ("message", "tool_call") or event.injected == "whole":
            continue
        for text in (event.content or "", *(strings_of(event.args) if event.args else ())):
            if _BEGINS in text.lower():
                marks |= parse_marks(strip(text))
    return marks


def read_marks(files: SessionFiles, sessions: Iterable[str], shown: Sequence[str]) -> dict[str, str]:
    """Return what the agents of some sessions said of what was shown; ids may be cut where that is unique."""
    marks: dict[str, str] = {}
    for name in set(files.ids()).intersection(sessions):
        marks |= find_marks(files.read(name, only=lambda line: _BEGINS.encode() in line.lower()))
    resolved: dict[str, str] = {}
    for name, credit in marks.items():
        fitting = [name] if name in shown else [one for one in shown if one.startswith(name)]
        if len(fitting) == 1:
            resolved[fitting[0]] = credit
    return resolved


def find_credits(
    outcomes: Iterable[Outcome], undone: Collection[str], memories: Iterable[Memory]
) -> frozenset[tuple[str, str]]:
    """Return the entries that some outcomes have credited already, each with what it got.

    Runs that were undone do not count. An outcome that was never confirmed was killed on the
    way; whether its notes were written, the counter of each entry says.
    """
    entries = {memory.id: memory for memory in in_force(memories)}
    held = list(outcomes)
    credited: set[tuple[str, str]] = set()
    for outcome, following in zip(held, [*held[1:], None], strict=False):
        if outcome.is_done and outcome.run not in undone:
            credited.update((name, mark.credit) for name, mark in outcome.marks.items())
        elif not outcome.is_done and not (following and following.is_done):
            for name, mark in outcome.marks.items():
                counter = f"{mark.credit}_count"
                if name in entries and mark.credit != "mixed" and entries[name].count(counter) >= mark.total:
                    credited.add((name, mark.credit))
    return frozenset(credited)


class Crediting(NamedTuple):
    """The credits of a task, what to log of them, and the changes to make."""

    credits: tuple[Credited, ...]
    marks: Mapping[str, Mark]
    changes: Plan


def plan_credits(memories: Iterable[Memory], wanted: Mapping[str, str], today: date, reason: str) -> Crediting:
    """Plan to credit those of the wanted entries that are live rules, pitfalls and skills, each as `wanted` says."""
    entries = {one.id: one for one in in_force(memories) if one.is_live and one.kind in EVIDENCE_KINDS}
    credits_, marks, changes = list[Credited](), dict[str, Mark](), list[Change | None]()
    for memory, credit in ((entries[name], credit) for name, credit in wanted.items() if name in entries):
        change = plan_feedback(memory, credit, today, f"Feedback: {credit}. {reason}")
        count = 0 if credit == "mixed" else memory.count(f"{credit}_count")
        marks[memory.id] = Mark(credit, count + (credit != "mixed"))
        evidence = read_evidence(memory)
        numbers = (evidence.decayed(today), settle(evidence, credit, today).confidence)
        numbers = (count, marks[memory.id].total) if memory.kind == "skill" else numbers
        credits_.append(Credited(memory.id, memory.kind, memory.title, credit, *numbers))
        changes.append(change)
    return Crediting(tuple(credits_), marks, changes)


def find_used(outcomes: Iterable[Outcome], shown: Sequence[Retrieval], session: str) -> tuple[str, ...]:
    """Return the entries that outcomes of a session name as used; `shown` is what was shown there."""
    about = (one for one in outcomes if one.session == session or any(is_about(one, each) for each in shown))
    return tuple(dict.fromkeys(name for one in about for name in one.used))


def is_about(outcome: Outcome, shown: Retrieval) -> bool:
    """Return whether an outcome is of the task that something was shown for, or of the session that hooks showed it in."""
    if shown.is_hooked:
        return outcome.session == shown.session
    return (outcome.agent, outcome.task) == (shown.agent, shown.task) and outcome.session in (None, shown.session)


@dataclass(frozen=True)
class Outcomes:
    """The verb outcome, and what a session's end makes of what was shown in it."""

    _vault: Vault
    _writer: Writer
    _store: EntryStore
    _recognise: Callable[[str], str | None]
    _trace: TraceSession

    def outcome(
        self,
        agent: str,
        task: str,
        outcome: str,
        *,
        used: Sequence[str] = (),
        task_id: str | None = None,
        session: str | None = None,
        dry_run: bool = False,
    ) -> OutcomeReport:
        """Say how a task went; the rules, pitfalls and skills that were used are credited for it, each once for a task.

        Used is what `used` names; without it, what was shown and left a third of its longer words in what the session did,
        if that changed a file or committed (with `reinforcement.counts: shown` all that was shown). What the agent itself said
        (`[memory-kb: helpful ID]`) counts too. In a session that hooks log, all of it counts when that ends.

        Where nothing was shown for the task by name, it is what hooks showed in its session: the one that is named here or by
        `MEMORY_KB_SESSION`, else the one in which hooks showed this agent something last, within a day.

        Raises:
            UsageError: there is no such outcome.
            UnknownEntry: one that was used does not exist.
        """
        word = read_outcome(outcome)
        agent, task = redact(agent).text, redact(task).text
        names = [redact(task_id).text, task] if task_id else [task]
        with self._writer.lock(dry_run=dry_run):
            if not dry_run:
                self._writer.recover()
            retrievals = list(self._retrievals.read(session))
            hooked = session or self._session_of(retrievals, agent)
            showing = find_showing(retrievals, agent, names, session, hooked)
            if showing is None:
                where = f" in session {session}" if session else ""
                notice = f"Nothing was shown to {agent} for {task}{where}: `context` must name the same agent and task. Nothing is credited."
                return OutcomeReport(agent, task, word, (), (), notice, RunReport(None, "outcome"))
            wanted = (used,) if isinstance(used, str) else used
            named = tuple(name if name in showing.ids else self._store.find(name).id for name in wanted)
            if not dry_run and self._waits_for_end(showing):
                self._log.append(self._about(showing, word, {}, named))
                notice = f"Noted: it counts when session {showing.session} ends, if that changed a file or committed."
                return OutcomeReport(agent, showing.task, word, (), (), notice, RunReport(None, "outcome"))
            return self._credit(showing, word, named, dry_run=dry_run)

    def credit_session(self, session: str, word: str | None, *, dry_run: bool = False) -> tuple[RunReport, ...]:
        """Credit what was shown in a session that is over: by the outcomes reported in it, `word`, and what its agents said.

        A session that changed no file and committed nothing credits nothing, unless all that is shown counts.
        """
        if not self._counts_shown and not changed_files(self._trace(session)):
            return ()
        with self._writer.lock(dry_run=dry_run):
            shown = [one for one in self._retrievals.read(session) if one.injected]
            runs = [
                self._credit(showing, one.outcome, one.used, dry_run=dry_run).run
                for one in self._find_noted(session)
                if (showing := find_showing(shown, one.agent, [one.task], session, session))
            ]
            tasks = dict.fromkeys((one.agent, one.task) for one in shown if one.agent and one.task)
            by_name = (find_named(shown, agent or "", task or "", session) for agent, task in tasks)
            showings = list(filter(None, (*by_name, find_hooked(shown, session))))
            for each in (word, _MARKED) if word else (_MARKED,):
                runs += [self._credit(one, each, dry_run=dry_run).run for one in showings]
            return tuple(runs)

    def _waits_for_end(self, showing: Showing) -> bool:
        """Return whether what was shown counts when its session ends, which hooks will say."""
        session = showing.session
        return session is not None and not self._counts_shown and (self._files.folder / HOOKED / session).exists()

    def _about(self, showing: Showing, word: str, marks: Mapping[str, Mark], named: tuple[str, ...]) -> Outcome:
        now = format_time(self._vault.clock())
        return Outcome(now, showing.agent, showing.task, word, marks, showing.session, used=named)

    def _find_noted(self, session: str) -> list[Outcome]:
        """Return the outcomes of a session that were written down and have not counted yet."""
        held = [one for one in self._log.read_all() if one.session == session]
        done = {(one.agent, one.task, one.outcome) for one in held if one.is_done}
        return [one for one in held if not (one.is_done or one.marks or (one.agent, one.task, one.outcome) in done)]

    def _credit(self, showing: Showing, word: str, named: tuple[str, ...] = (), *, dry_run: bool) -> OutcomeReport:
        """Credit what was shown and is not credited yet with an outcome, or with what its agent said of it.

        The vault's lock is held. What an agent said of an entry counts for that, whatever became of the task.
        """
        memories = self._store.all(EVERYTHING._replace(kinds=EVIDENCE_KINDS))
        asked = {} if word == _MARKED else dict.fromkeys(named or self._count_unnamed(showing, memories), word)
        asked |= read_marks(self._files, showing.sessions, showing.ids)
        reported = self._find_reported(showing, word)
        # A mark that was undone is not read again; an outcome may be reported again.
        undone = undone_by(self._writer.journal.undoings()) if reported and word != _MARKED else ()
        done = find_credits(reported, undone, memories)
        known = {name for name, credit in done if word != _MARKED or asked.get(name) == credit}
        wanted = {name: credit for name, credit in asked.items() if name not in known}
        today, said = self._vault.today(), f"{showing.agent} on {showing.task}: {word}."
        plan = plan_credits(memories, wanted, today, said)
        about = self._about(showing, word, plan.marks, named)
        run = self._write(about, plan, lambda held: plan_credits(held, wanted, today, said).changes, dry_run=dry_run)
        left = {conflict.id for conflict in run.conflicts}
        credits_ = tuple(one for one in plan.credits if one.id not in left)
        notice = _explain(showing, plan, is_known=bool(known), is_named=bool(named))
        again = tuple(one for one in asked if one in known)
        return OutcomeReport(showing.agent, showing.task, word, credits_, again, notice, run)

    def _session_of(self, retrievals: Sequence[Retrieval], agent: str) -> str | None:
        """Return the session that an agent works in: the one that runs this command, else where hooks showed it something last."""
        held = self._vault.session
        hooked = [one for one in retrievals if one.is_hooked]
        if held and (held in self._files.ids() or any(one.session == held for one in hooked)):
            return held
        name, since = self._recognise(agent), format_time(self._vault.clock() - _LATE)
        return next((one.session for one in reversed(hooked) if name and one.agent == name and one.ts >= since), None)

    @property
    def _counts_shown(self) -> bool:
        return self._vault.settings.reinforcement.counts == "shown"

    @property
    def _retrievals(self) -> RetrievalLog:
        return RetrievalLog(self._vault.machine / "log")

    @property
    def _log(self) -> OutcomeLog:
        return OutcomeLog(self._vault.machine / "log")

    @property
    def _files(self) -> SessionFiles:
        return SessionFiles(self._vault.machine)

    def _find_reported(self, showing: Showing, word: str) -> list[Outcome]:
        """Return the outcomes that credited what was shown: of the task by name; for hooks and marks, of their session."""
        session, named = showing.session, (showing.agent, showing.task)
        is_of_session = bool(session and (showing.hooked or word == _MARKED))
        about = self._log.read_about(showing.task, session)
        return [one for one in about if (one.agent, one.task) == named or (is_of_session and one.session == session)]

    def _count_unnamed(self, showing: Showing, memories: Sequence[Memory]) -> tuple[str, ...]:
        """Return what counts where nobody named what was used: what can be seen in what the sessions did, or everything."""
        if self._counts_shown:
            return showing.ids
        files = self._files
        worked = showing.sessions or (self._session_of(list(self._retrievals.read(None)), showing.agent),)
        sessions = [name for name in set(files.ids()).intersection(worked) if changed_files(self._trace(name))]
        words = frozenset[str]().union(*(words_of_work(files.read(name)) for name in sessions))
        return keep_used(showing.ids, memories, words)

    def _write(
        self, about: Outcome, plan: Crediting, planner: Callable[[Sequence[Memory]], Plan], *, dry_run: bool
    ) -> RunReport:
        """Write credits down, then into the notes, then that it is done."""
        if dry_run:
            return self._writer.run("outcome", plan.changes, dry_run=True)
        if not plan.marks:
            if about.used:
                self._log.append(about._replace(is_done=True))
            return RunReport(None, "outcome")
        self._log.append(about)
        run, left = None, set[str | None](plan.marks)
        try:
            run = self._store.carry_out("outcome", planner, plan.changes)
            left = {conflict.id for conflict in run.conflicts}
        finally:
            kept = {name: mark for name, mark in plan.marks.items() if name not in left}
            self._log.append(about._replace(marks=kept, run=run.run if run else None, is_done=True))
        return run


def _explain(showing: Showing, plan: Crediting, *, is_known: bool, is_named: bool) -> str:
    """Return why nothing was credited, or what else is worth knowing."""
    if plan.credits:
        where = f"Nothing was shown for this task by name; this is what hooks showed in session {showing.hooked}."
        return where if showing.hooked else ""
    if is_known:
        return "All of it was credited before."
    if is_named:
        return "None of it is a rule, pitfall or skill; what was used counts when the session ends."
    return "No rule, pitfall or skill that was shown can be seen in what the session did: name in `used` what was. Nothing is credited."
