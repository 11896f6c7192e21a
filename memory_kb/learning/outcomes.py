"""The verbs outcome and reinforce: credit what was used with how its task went, and count what a session used."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from memory_kb.credentials import redact
from memory_kb.injected_text import is_own_call, remove_injected
from memory_kb.learning.exposure import Showing, belongs_to, find_showing, group_showings
from memory_kb.learning.memories import Memories
from memory_kb.learning.playbook import RULE_KINDS, add_outcome, in_force, parse_outcome, plan_feedback, read_evidence
from memory_kb.markdown.splice import Value
from memory_kb.memory import Memory
from memory_kb.model import EVERYTHING
from memory_kb.reports import RunReport
from memory_kb.store.changes import Change, Plan, plan_fields
from memory_kb.store.logs import Credit, Mark, Outcome, OutcomeLog, Retrieval, RetrievalLog, format_time
from memory_kb.store.session_events import Event, strings_of
from memory_kb.store.session_log import SessionFiles
from memory_kb.store.undo import undone_by
from memory_kb.store.writer import Writer
from memory_kb.terms import has_cjk, word_tokens
from memory_kb.vault import Vault

#: The shortest word that says something, and the share of such words of an entry that occur where it was used.
_LONG, _USED = 4, 1 / 3
_MARK = re.compile(r"\[memory-kb:\s*(helpful|harmful)\s+([^\[\]\n]{1,500}?)\s*\]", re.IGNORECASE)
_BEGINS = "[memory-kb:"
_DAY = "day:"
#: The kinds that an outcome says something about.
_WITH_EVIDENCE = EVERYTHING._replace(kinds=(*RULE_KINDS, "skill"))
#: How long after hooks showed something in a session an outcome may still be reported for it.
_LATE = timedelta(days=1)
#: Why nothing was credited, or what else is worth knowing.
_SHOWN_BY_HOOKS = "Nothing was shown for this task by name; this is what hooks showed in session {session}."
_NOT_SHOWN = (
    "Nothing was shown to {agent} for {task}{where}: `context` must name the same agent and task. Nothing is credited."
)
_KNOWN = "All of it was credited before."
_NOTHING_USED = (
    "No rule, pitfall or skill is credited: name in `used` what was. Other entries count when the session ends."
)
#: The outcome of credits that follow from the marks of agents alone, where nobody said how the task went.
_MARKED = "marked"


def words_of_work(events: Iterable[Event]) -> frozenset[str]:
    """Return the longer words of what agents said and did in a session; calls of memory-kb itself do not count."""
    found: set[str] = set()
    for event in events:
        if event.injected == "whole" or is_own_call(event.tool, event.args):
            continue
        if event.type == "message" and event.role == "assistant":
            found.update(_long_words(remove_injected(event.content or "")))
        elif event.type == "tool_call" and event.args:
            found.update(_long_words(" ".join(strings_of(event.args))))
    return frozenset(found)


def keep_used(
    shown: Iterable[str], memories: Iterable[Memory], work: frozenset[str], named: Collection[str] = ()
) -> tuple[str, ...]:
    """Return which of the shown entries are `named`, or have a third of their longer words in what a session did."""
    texts = {memory.id: memory.text for memory in memories}

    def is_used(entry_id: str) -> bool:
        words = _long_words(texts.get(entry_id, ""))
        return entry_id in named or (bool(words) and len(words & work) >= _USED * len(words))

    return tuple(filter(is_used, shown))


def _long_words(text: str) -> frozenset[str]:
    """Return the longer words of a text; scripts without spaces count by the terms that they are cut into."""
    terms = word_tokens(text.replace("_", " "))
    return frozenset(term for term in terms if len(term) >= (2 if has_cjk(term) else _LONG))


def parse_marks(text: str) -> dict[str, str]:
    """Return what a text says of entries; the last word on each counts.

    Example:
        >>> parse_marks("[memory-kb: helpful b-1, b-2] then // [memory-kb: Harmful b-2] - it broke the build")
        {'b-1': 'success', 'b-2': 'failure'}
    """
    marks: dict[str, str] = {}
    for found in _MARK.finditer(text):
        marks |= dict.fromkeys(filter(None, re.split(r"[,\s]+", found[2])), parse_outcome(found[1]))
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
                marks |= parse_marks(remove_injected(text))
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


#: Entries that are not counted yet, by the session, or the `day:2026-03-01` outside any, in which they were shown.
Due = Mapping[str, tuple[str, ...]]


def find_due(
    retrievals: Iterable[Retrieval], credits_: Iterable[Credit], counts: Mapping[str, int], session: str | None
) -> Due:
    """Return the entries to count for one session, or for what was shown outside of any session.

    Each entry counts once for a session however often it was shown there, and once a day outside. `counts` has the
    `reinforcement_count` of each entry: where a run was killed, it says whether the entry was counted.
    """
    shown = defaultdict[str, dict[str, None]](dict)
    for one in retrievals:
        if one.session == session:
            shown[session or f"{_DAY}{one.ts[:10]}"] |= dict.fromkeys(one.ids)
    done = defaultdict[str, set[str]](set)
    for credit in credits_:
        counted = (name for name, count in credit.counts.items() if credit.is_done or counts.get(name, 0) >= count)
        done[credit.key].update(counted)
    left = {key: tuple(one for one in ids if one not in done[key]) for key, ids in shown.items()}
    return {key: ids for key, ids in left.items() if ids}


def choose_countable(memories: Iterable[Memory]) -> dict[str, Memory]:
    """Return the entries that may be counted, by id: live, in force, and memories by their frontmatter."""
    ours = in_force(memory for memory in memories if memory.is_ours)
    return {memory.id: memory for memory in reversed(ours) if memory.is_live}


def plan_reinforcements(due: Due, memories: Iterable[Memory], now: datetime) -> tuple[Plan, tuple[Credit, ...]]:
    """Plan to count what is due; return with the changes what to log before they are made."""
    entries = choose_countable(memories)
    counts = {entry_id: memory.reinforcement_count for entry_id, memory in entries.items()}
    days = {entry_id: (memory.last_reinforced or "")[:10] for entry_id, memory in entries.items()}
    today, reasons, credits_ = now.astimezone(UTC).date().isoformat(), dict[str, list[str]](), list[Credit]()
    for key, ids in due.items():
        known = [entry_id for entry_id in ids if entry_id in entries]
        day = key.removeprefix(_DAY) if key.startswith(_DAY) else ""
        for entry_id in known:
            counts[entry_id] += 1
            reasons.setdefault(entry_id, []).append(f"Retrieved on {day}." if day else f"Retrieved in session {key}.")
            days[entry_id] = max(days[entry_id], day or today)
        credits_.append(Credit(key, {entry_id: counts[entry_id] for entry_id in known}, is_done=False))
    changes = []
    for entry_id, why in reasons.items():
        fields: dict[str, Value] = {"reinforcement_count": counts[entry_id], "last_reinforced": days[entry_id]}
        changes.append(plan_fields(entries[entry_id], fields, " ".join(why)))
    return changes, tuple(one for one in credits_ if one.counts)


class CreditedEntry(NamedTuple):
    """An entry and its credit; `before` and `after` are the confidence, of a skill its counter."""

    id: str
    kind: str
    title: str
    credit: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class OutcomeReport:
    """What the outcome of a task changed; `known` were credited for it before, `notice` says why nothing was."""

    agent: str
    task: str
    outcome: str
    credits: tuple[CreditedEntry, ...]
    known: tuple[str, ...]
    notice: str
    run: RunReport


def find_credits(
    outcomes: Iterable[Outcome], undone: Collection[str], memories: Iterable[Memory]
) -> frozenset[tuple[str, str]]:
    """Return the entries that some outcomes have credited already, each with what it got.

    Runs that were undone do not count. Whether one was killed before or after its notes were written, the counter of
    each entry says.
    """
    entries = {memory.id: memory for memory in in_force(memories)}

    def has(name: str, mark: Mark) -> bool:
        return name in entries and entries[name].count(f"{mark.credit}_count") >= mark.total > 0

    held = (one for one in outcomes if one.run is None or one.run not in undone)
    return frozenset(
        (name, mark.credit) for one in held for name, mark in one.marks.items() if one.is_done or has(name, mark)
    )


def plan_credits(
    memories: Iterable[Memory], wanted: Mapping[str, str], today: date, reason: str
) -> Iterator[tuple[CreditedEntry, Mark, Change | None]]:
    """Yield the live rules, pitfalls and skills to credit as `wanted` says, with the mark to log and the change."""
    entries = {one.id: one for one in in_force(memories) if one.is_live}
    for memory, credit in ((entries[name], credit) for name, credit in wanted.items() if name in entries):
        change = plan_feedback(memory, credit, today, f"Feedback: {credit}. {reason}")
        count = 0 if credit == "mixed" else memory.count(f"{credit}_count")
        mark, evidence = Mark(credit, count + (credit != "mixed")), read_evidence(memory)
        numbers = (evidence.decayed(today), add_outcome(evidence, credit, today).confidence)
        numbers = (count, mark.total) if memory.kind == "skill" else numbers
        yield CreditedEntry(memory.id, memory.kind, memory.title, credit, *numbers), mark, change


@dataclass(frozen=True)
class Outcomes:
    """The verbs outcome and reinforce, and what a session's end makes of what was shown in it."""

    _vault: Vault
    _writer: Writer
    _memories: Memories
    _recognise: Callable[[str], str | None]
    _has_changed_files: Callable[[str], bool]

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
        """Record how a task went; the rules, pitfalls and skills that were used are credited, each once for a task.

        Used is what `used` names; without it, what was shown and left a third of its longer words in what the session
        did, if that changed a file or committed (with `reinforcement.counts: shown` all that was shown). What the agent
        itself said (`[memory-kb: helpful ID]`) counts too. In a session that hooks log, all of it counts when that
        ends.

        Where nothing was shown for the task by name, it is what hooks showed in its session: the one that is named here
        or by `MEMORY_KB_SESSION`, else the one in which hooks showed this agent something last, within a day.
        """
        word = parse_outcome(outcome)
        agent, task = redact(agent).text, redact(task).text
        names = [redact(task_id).text, task] if task_id else [task]
        with self._writer.lock(dry_run=dry_run):
            retrievals = list(self._retrievals.read(session))
            showing = find_showing(retrievals, agent, names, session or self._session_of(retrievals, agent))
            if showing is None:
                where = f" in session {session}" if session else ""
                notice = _NOT_SHOWN.format(agent=agent, task=task, where=where)
                return OutcomeReport(agent, task, word, (), (), notice, RunReport(None, "outcome"))
            wanted = (used,) if isinstance(used, str) else used
            named = tuple(name if name in showing.ids else self._memories.find(name).id for name in wanted)
            is_hooked = showing.session is not None and self._files.hook_mark(showing.session).exists()
            if is_hooked and not self._counts_shown and not dry_run:
                self._log.append(self._make_outcome(showing, word, {}, named))
                notice = f"Noted: it counts when session {showing.session} ends, if that changed a file or committed."
                return OutcomeReport(agent, showing.task, word, (), (), notice, RunReport(None, "outcome"))
            return self._credit(showing, word, named, dry_run=dry_run)

    def credit_session(self, session: str, word: str | None, *, dry_run: bool = False) -> tuple[RunReport, ...]:
        """Credit what a finished session was shown, by its reported outcomes, by `word`, and by what its agents said.

        A session that changed no file and committed nothing credits nothing, unless all that is shown counts.
        """
        if not self._counts_shown and not self._has_changed_files(session):
            return ()
        with self._writer.lock(dry_run=dry_run):
            shown = list(self._retrievals.read(session))
            held = [one for one in self._log.read_all() if one.session == session]
            counted = {(one.agent, one.task, one.outcome) for one in held if one.is_done}
            runs = [
                self._credit(showing, one.outcome, one.used, dry_run=dry_run).run
                for one in held
                if not one.marks
                and (one.agent, one.task, one.outcome) not in counted
                and (showing := find_showing(shown, one.agent, [one.task], session))
            ]
            showings = sorted(group_showings(shown).values(), key=lambda one: one.hooked is not None)
            for each in (word, _MARKED) if word else (_MARKED,):
                runs += [self._credit(one, each, dry_run=dry_run).run for one in showings]
            return tuple(runs)

    def reinforce(self, session: str | None = None, *, dry_run: bool = False) -> RunReport:
        """Count what a session used of what it was shown, once for each entry.

        Nothing counts if the session changed no file and made no commit. With `reinforcement.counts: shown` everything
        that was shown counts, and without a session what was shown outside any, once a day for each entry.
        """
        now, log = self._vault.clock(), self._retrievals
        with self._writer.lock(dry_run=dry_run):
            shown = list(log.read(session))
            reported = self._log.read_all() if session else ()
            about = (one for one in reported if one.session == session or any(belongs_to(one, each) for each in shown))
            used = tuple(dict.fromkeys(name for one in about for name in one.used))
            named = Retrieval(format_time(now), "outcome", used, session=session)
            memories = self._memories.all() if shown or used else ()
            counts = {name: one.reinforcement_count for name, one in choose_countable(memories).items()}
            due = find_due([*shown, named], log.credits(session), counts, session)
            due = self._choose_due(due, memories, session, used)
            _, begun = plan_reinforcements(due, memories, now)
            if begun and not dry_run:
                log.credit(format_time(now), begun)
            report = self._memories.run_plan(
                "reinforce", lambda held: plan_reinforcements(due, held, now)[0], dry_run=dry_run
            )
            if begun and not dry_run:
                left = {conflict.id for conflict in report.conflicts}
                kept = [{name: count for name, count in one.counts.items() if name not in left} for one in begun]
                done = [Credit(one.key, counts, is_done=True) for one, counts in zip(begun, kept, strict=True)]
                log.credit(format_time(now), done)
        return report

    def _choose_due(self, due: Due, memories: Sequence[Memory], session: str | None, used: Collection[str]) -> Due:
        """Return which of the shown and named entries count, by the settings."""
        if self._counts_shown or not due:
            return due
        if session is None or session not in self._files.ids() or not self._has_changed_files(session):
            return {}
        shown = due[session]
        helpful = [name for name, word in read_marks(self._files, [session], shown).items() if word == "success"]
        kept = keep_used(shown, memories, self._words_of([session]), {*used, *helpful})
        return {session: kept} if kept else {}

    def _make_outcome(self, showing: Showing, word: str, marks: Mapping[str, Mark], named: tuple[str, ...]) -> Outcome:
        now = format_time(self._vault.clock())
        return Outcome(now, showing.agent, showing.task, word, marks, showing.session, used=named)

    def _credit(self, showing: Showing, word: str, named: tuple[str, ...] = (), *, dry_run: bool) -> OutcomeReport:
        """Credit what was shown and is not credited yet with an outcome, or with what its agent said of it.

        What an agent said of an entry counts for that, whatever became of the task.
        """
        memories = self._memories.all(_WITH_EVIDENCE)
        asked = {} if word == _MARKED else dict.fromkeys(named or self._count_unnamed(showing, memories), word)
        asked |= read_marks(self._files, showing.sessions, showing.ids)
        reported = self._find_reported(showing, word)
        # A mark that was undone is not read again; an outcome may be reported again.
        undone = undone_by(self._writer.journal.undoings()) if reported and word != _MARKED else ()
        done = find_credits(reported, undone, memories)
        known = {name for name, credit in done if word != _MARKED or asked.get(name) == credit}
        wanted = {name: credit for name, credit in asked.items() if name not in known}
        today, said = self._vault.today(), f"{showing.agent} on {showing.task}: {word}."
        plan = list(plan_credits(memories, wanted, today, said))
        about = self._make_outcome(showing, word, {entry.id: mark for entry, mark, _ in plan}, named)

        def planner(held: Iterable[Memory]) -> Plan:
            return (change for _, _, change in plan_credits(held, wanted, today, said))

        run = self._write_credits(about, planner, dry_run=dry_run)
        left = {conflict.id for conflict in run.conflicts}
        credited = tuple(entry for entry, _, _ in plan if entry.id not in left)
        if plan:
            notice = _SHOWN_BY_HOOKS.format(session=showing.hooked) if showing.hooked else ""
        else:
            notice = _KNOWN if known else _NOTHING_USED
        again = tuple(one for one in asked if one in known)
        return OutcomeReport(showing.agent, showing.task, word, credited, again, notice, run)

    def _session_of(self, retrievals: Sequence[Retrieval], agent: str) -> str | None:
        """Return an agent's session: that of this command, else the last in which hooks showed it something."""
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
        """Return the outcomes that credited what was shown: of the task, or of the session for hooks and marks."""
        session, named = showing.session, (showing.agent, showing.task)
        is_of_session = bool(session and (showing.hooked or word == _MARKED))
        about = self._log.read_about(showing.task, session)
        return [one for one in about if (one.agent, one.task) == named or (is_of_session and one.session == session)]

    def _count_unnamed(self, showing: Showing, memories: Sequence[Memory]) -> tuple[str, ...]:
        """Return the ids to credit where nobody named any: those that the sessions' work reflects, or all."""
        if self._counts_shown:
            return showing.ids
        sessions = showing.sessions or (self._session_of(list(self._retrievals.read(None)), showing.agent),)
        worked = [name for name in set(self._files.ids()).intersection(sessions) if self._has_changed_files(name)]
        return keep_used(showing.ids, memories, self._words_of(worked))

    def _words_of(self, sessions: Iterable[str]) -> frozenset[str]:
        return frozenset[str]().union(*(words_of_work(self._files.read(name)) for name in sessions))

    def _write_credits(
        self, about: Outcome, planner: Callable[[Sequence[Memory]], Plan], *, dry_run: bool
    ) -> RunReport:
        """Log credits, write them into the notes, then log that they are written."""
        if dry_run:
            return self._memories.run_plan("outcome", planner, _WITH_EVIDENCE, dry_run=True)
        if not about.marks:
            if about.used:
                self._log.append(about._replace(is_done=True))
            return RunReport(None, "outcome")
        self._log.append(about)
        run = self._memories.run_plan("outcome", planner, _WITH_EVIDENCE)
        left = {conflict.id for conflict in run.conflicts}
        kept = {name: mark for name, mark in about.marks.items() if name not in left}
        self._log.append(about._replace(marks=kept, run=run.run, is_done=True))
        return run
