"""The verbs outcome and reinforce: credit what was used with how its task went, and count what a session used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.credentials import redact
from memory_kb.learning.confidence import read_evidence, settle
from memory_kb.learning.playbook import RULE_KINDS, in_force, plan_feedback
from memory_kb.learning.rules import read_outcome
from memory_kb.learning.usage import changed_files, keep_used, read_marks, words_of_work
from memory_kb.model import EVERYTHING, SCOPES, Memory
from memory_kb.reports import RunReport
from memory_kb.store.logs import Credit, Mark, Outcome, OutcomeLog, Retrieval, RetrievalLog, format_time
from memory_kb.store.plan import Change, Plan, plan_fields
from memory_kb.store.session_log import HOOKED, SessionFiles
from memory_kb.store.undo import undone_by

if TYPE_CHECKING:
    from memory_kb.learning.entry_store import EntryStore
    from memory_kb.store.session_log import TraceSession
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault


_DAY = "day:"
#: The kinds that an outcome says something about.
EVIDENCE_KINDS = (*RULE_KINDS, "skill")
#: How long after hooks showed something in a session an outcome may still be reported for it.
_LATE = timedelta(days=1)
#: Why nothing was credited, or what else is worth knowing.
_SHOWN_BY_HOOKS = "Nothing was shown for this task by name; this is what hooks showed in session {session}."
_KNOWN = "All of it was credited before."
_NO_EVIDENCE = "None of it is a rule, pitfall or skill; what was used counts when the session ends."
_NOT_USED = (
    "No rule, pitfall or skill that was shown can be seen in what the session did: name in `used` what was. "
    "Nothing is credited."
)
#: What is as outcome where an agent said of entries what they did, and nobody how the task went.
_MARKED = "marked"


class Due(NamedTuple):
    """Entries that a session, or a `day:2026-03-01` outside any, was shown, and that are not counted for it yet.

    `begun` are the counts that a run was about to write when it was killed.
    """

    key: str
    ids: tuple[str, ...]
    begun: Mapping[str, int]

    @property
    def day(self) -> str:
        """The day, where it was outside any session."""
        return self.key.removeprefix(_DAY) if self.key.startswith(_DAY) else ""

    @property
    def reason(self) -> str:
        """Why they are reinforced, in words."""
        return f"Retrieved on {self.day}." if self.day else f"Retrieved in session {self.key}."


def find_due(
    retrievals: Iterable[Retrieval], credits_: Iterable[Credit], session: str | None = None
) -> tuple[Due, ...]:
    """Return what is to be counted for one session, or for what was shown outside of any.

    Each entry counts once for a session however often it was shown there, and once a day outside.
    """
    shown = defaultdict[str, dict[str, None]](dict)
    for one in retrievals:
        if one.session == session:
            shown[session or f"{_DAY}{one.ts[:10]}"] |= dict.fromkeys(one.ids)
    done, begun = defaultdict[str, set[str]](set), defaultdict[str, dict[str, int]](dict)
    for credit in credits_:
        if credit.is_done:
            done[credit.key].update(credit.counts)
        else:
            begun[credit.key].update(credit.counts)
    left = {key: tuple(one for one in ids if one not in done[key]) for key, ids in shown.items()}
    return tuple(Due(key, ids, begun[key]) for key, ids in left.items() if ids)


def plan_reinforcements(
    due: Sequence[Due], memories: Iterable[Memory], now: datetime
) -> tuple[Plan, tuple[Credit, ...]]:
    """Plan to count what is due; return with the changes what to log before and after they are made.

    Only live entries count, and only those that are memories by their frontmatter. Of several with one id it is the most
    specific.
    """
    wanted = {entry_id for one in due for entry_id in one.ids}
    by_id: dict[str, Memory] = {}
    for memory in sorted(memories, key=lambda one: SCOPES.index(one.place.scope)):
        if memory.id in wanted and memory.is_live and memory.is_ours:
            by_id.setdefault(memory.id, memory)
    counts = {entry_id: memory.reinforcement_count for entry_id, memory in by_id.items()}
    today, reasons, credits_ = now.astimezone(UTC).date().isoformat(), dict[str, list[str]](), list[Credit]()
    days = {entry_id: (memory.last_reinforced or "")[:10] for entry_id, memory in by_id.items()}
    for one in due:
        known = [entry_id for entry_id in one.ids if entry_id in by_id]
        for entry_id in known:
            # What a killed run has counted already is only written down.
            if one.begun.get(entry_id, counts[entry_id] + 1) > counts[entry_id]:
                counts[entry_id] += 1
                reasons.setdefault(entry_id, []).append(one.reason)
                days[entry_id] = max(days[entry_id], one.day or today)
        credits_.append(Credit(one.key, {entry_id: counts[entry_id] for entry_id in known}, is_done=False))
    changes = (
        plan_fields(
            by_id[entry_id],
            {"reinforcement_count": counts[entry_id], "last_reinforced": days[entry_id]},
            " ".join(why),
        )
        for entry_id, why in reasons.items()
    )
    return changes, tuple(credits_)


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


def plan_credits(
    memories: Iterable[Memory], wanted: Mapping[str, str], today: date, reason: str
) -> tuple[list[Credited], dict[str, Mark], list[Change | None]]:
    """Plan to credit those of the wanted entries that are live rules, pitfalls and skills, each as `wanted` says.

    Return their credits, what to log of them, and the changes.
    """
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
    return credits_, marks, changes


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
    """The verbs outcome and reinforce, and what a session's end makes of what was shown in it."""

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

    def reinforce(self, session: str | None = None, *, dry_run: bool = False) -> RunReport:
        """Count what a session used of what it was shown, once for each entry.

        Nothing counts if the session changed no file and made no commit. With `reinforcement.counts: shown` everything that
        was shown counts, and without a session what was shown outside any, once a day for each entry.
        """
        now, log = self._vault.clock(), self._retrievals
        with self._writer.lock():
            shown = list(log.read(session))
            used = find_used(self._log.read_all(), shown, session) if session else ()
            named = Retrieval(format_time(now), "outcome", used, session=session)
            due = self._choose_due(find_due([*shown, named], log.credits(session), session), session, used)
            changes, credits_ = plan_reinforcements(due, self._store.all(), now) if due else ((), ())
            counted = [credit for credit in credits_ if credit.counts]
            if counted and not dry_run:
                log.credit(format_time(now), counted)
            report = self._store.carry_out(
                "reinforce",
                lambda memories: plan_reinforcements(due, memories, now)[0],
                changes,
                dry_run=dry_run,
            )
            if counted and not dry_run:
                left = {conflict.id for conflict in report.conflicts}
                kept = ({name: count for name, count in one.counts.items() if name not in left} for one in counted)
                done = zip(counted, kept, strict=True)
                log.credit(format_time(now), (one._replace(counts=counts, is_done=True) for one, counts in done))
        return report

    def _choose_due(self, due: tuple[Due, ...], session: str | None, used: Collection[str]) -> tuple[Due, ...]:
        """Return what counts of what was shown or named as used, as the settings have it."""
        if self._counts_shown or not due:
            return due
        if session is None or session not in self._files.ids() or not changed_files(self._trace(session)):
            return ()
        shown = [entry_id for one in due for entry_id in one.ids]
        helpful = [name for name, word in read_marks(self._files, [session], shown).items() if word == "success"]
        kept = keep_used(shown, self._store.all(), self._words_of([session]), {*used, *helpful})
        left = (one._replace(ids=tuple(name for name in one.ids if name in kept)) for one in due)
        return tuple(one for one in left if one.ids)

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

        What an agent said of an entry counts for that, whatever became of the task.
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
        credits_, marks, changes = plan_credits(memories, wanted, today, said)
        about = self._about(showing, word, marks, named)
        run = self._write(about, changes, lambda held: plan_credits(held, wanted, today, said)[2], dry_run=dry_run)
        left = {conflict.id for conflict in run.conflicts}
        credited = tuple(one for one in credits_ if one.id not in left)
        if credits_:
            notice = _SHOWN_BY_HOOKS.format(session=showing.hooked) if showing.hooked else ""
        else:
            notice = _KNOWN if known else _NO_EVIDENCE if named else _NOT_USED
        again = tuple(one for one in asked if one in known)
        return OutcomeReport(showing.agent, showing.task, word, credited, again, notice, run)

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
        sessions = showing.sessions or (self._session_of(list(self._retrievals.read(None)), showing.agent),)
        worked = [name for name in set(self._files.ids()).intersection(sessions) if changed_files(self._trace(name))]
        return keep_used(showing.ids, memories, self._words_of(worked))

    def _words_of(self, sessions: Iterable[str]) -> frozenset[str]:
        return frozenset[str]().union(*(words_of_work(self._files.read(name)) for name in sessions))

    def _write(
        self, about: Outcome, changes: Plan, planner: Callable[[Sequence[Memory]], Plan], *, dry_run: bool
    ) -> RunReport:
        """Write credits down, then into the notes, then that it is done."""
        if dry_run:
            return self._writer.run("outcome", changes, dry_run=True)
        if not about.marks:
            if about.used:
                self._log.append(about._replace(is_done=True))
            return RunReport(None, "outcome")
        self._log.append(about)
        run, left = None, set[str | None](about.marks)
        try:
            run = self._store.carry_out("outcome", planner, changes)
            left = {conflict.id for conflict in run.conflicts}
        finally:
            kept = {name: mark for name, mark in about.marks.items() if name not in left}
            self._log.append(about._replace(marks=kept, run=run.run if run else None, is_done=True))
        return run
