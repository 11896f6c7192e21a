"""Credit what was used; exposure."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import UnknownEntry
from memory_kb.injected import strip
from memory_kb.learning.confidence import OUTCOMES, read_evidence, settle
from memory_kb.learning.playbook import RULE_KINDS, in_force, plan_feedback
from memory_kb.learning.rules import Rules, read_outcome
from memory_kb.model import EVERYTHING
from memory_kb.reports import RunReport
from memory_kb.store.events import Event, strings_of
from memory_kb.store.logs import Mark, Outcome, Retrieval
from memory_kb.store.plan import Change, Memory, SetFields
from memory_kb.text import count_tokens

if TYPE_CHECKING:
    from memory_kb.learning.entry_store import EntryStore
    from memory_kb.store.session_log import TraceSession
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault


#: The kinds that an outcome says something about.
EVIDENCE_KINDS = (*RULE_KINDS, "skill")
_MARK = re.compile(r"\[memory-kb:\s*(helpful|harmful)\s+([^\[\]\n]{1,500}?)\s*\]", re.IGNORECASE)
_SAYS = {"helpful": "success", "harmful": "failure"}


class Injected(NamedTuple):
    """What was put before an agent for a task: the entries in order, and the sessions it was in."""

    ids: tuple[str, ...]
    sessions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Account:
    """What is known of how a task went.

    Attributes:
        outcome: `success`, `failure` or `mixed`.
        used: the entries that were used: the ones somebody named, else those that the session's own words show.
        marks: what the agent itself said of some: `success` or `failure`.
    """

    outcome: str
    used: Collection[str] = ()
    marks: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_explicit(self) -> bool:
        """Whether anybody said which entries were used."""
        return bool(self.used or self.marks)


class Credited(NamedTuple):
    """An entry and its credit; `before` and `after` are the confidence, of a skill its counter."""

    id: str
    kind: str
    title: str
    credit: str
    before: float
    after: float


class Crediting(NamedTuple):
    """The credits of a task, what to log of them, and the changes to make."""

    credits: tuple[Credited, ...]
    marks: Mapping[str, Mark]
    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class OutcomeReport:
    """What the outcome of a task changed.

    Attributes:
        known: entries that this task of this agent had credited before.
        notice: why nothing was done, or what is worth knowing; empty otherwise.
    """

    agent: str
    task: str
    outcome: str
    credits: tuple[Credited, ...]
    known: tuple[str, ...]
    notice: str
    run: RunReport


def find_injected(retrievals: Iterable[Retrieval], agent: str, task: str, session: str | None = None) -> Injected:
    """Return what was injected for a task of an agent, in one session or in all.

    Example:
        >>> find_injected([Retrieval("", "context", ("a",), agent="coder", task="t", session="s", injected=True)], "coder", "t")
        Injected(ids=('a',), sessions=('s',))
    """
    found = [
        one
        for one in retrievals
        if one.injected and (one.agent, one.task) == (agent, task) and session in (None, one.session)
    ]
    sessions = dict.fromkeys(one.session for one in found if one.session)
    return Injected(tuple(dict.fromkeys(name for one in found for name in one.ids)), tuple(sessions))


def parse_marks(text: str) -> dict[str, str]:
    """Return what a text says of entries; the last word on each counts.

    Example:
        >>> parse_marks("[memory-kb: helpful b-1, b-2] then // [memory-kb: Harmful b-2] - it broke the build")
        {'b-1': 'success', 'b-2': 'failure'}
    """
    marks: dict[str, str] = {}
    for found in _MARK.finditer(text):
        marks |= dict.fromkeys(filter(None, re.split(r"[,\s]+", found[2])), _SAYS[found[1].lower()])
    return marks


#: What a mark begins with, in lower case.
_BEGINS = "[memory-kb:"


def may_hold_marks(line: bytes) -> bool:
    """Return whether a line of a log may hold a mark."""
    return _BEGINS.encode() in line.lower()


def find_marks(events: Iterable[Event]) -> dict[str, str]:
    """Return what was said of entries in a session: in messages and in what tools were called with.

    Results of tools are left out, since a file may hold the marks of another task, and so is
    memory-kb's own text.
    """
    marks: dict[str, str] = {}
    for event in events:
        if event.type not in ("message", "tool_call") or event.injected == "whole":
            continue
        for text in (event.content or "", *(strings_of(event.args) if event.args else ())):
            if _BEGINS in text.lower():
                marks |= parse_marks(strip(text))
    return marks


def resolve_marks(marks: Mapping[str, str], shown: Sequence[str]) -> dict[str, str]:
    """Return the marks of entries that were shown, their ids in full where they were cut.

    Example:
        >>> resolve_marks({"b-8f": "success", "ID": "failure", "b": "failure"}, ["b-8f3a2c", "b-77"])
        {'b-8f3a2c': 'success'}
    """
    resolved: dict[str, str] = {}
    for name, credit in marks.items():
        fitting = [name] if name in shown else [one for one in shown if one.startswith(name)]
        if len(fitting) == 1:
            resolved[fitting[0]] = credit
    return resolved


def choose_credit(memory: Memory, account: Account) -> str:
    """Return what an outcome means for one entry.

    - What the agent said of an entry counts for that entry, whatever became of the task.
    - An entry that was used gets the outcome.
    - Where everything shown counts (`reinforcement.counts: shown`) and something is known of use, the rest only settles
      its decay, as `mixed` does. Where nothing is, the rest gets the outcome, but no pitfall is blamed for a failure:
      that would wear out the warnings about the hardest tasks first.

    Example:
        >>> from memory_kb.model import Location
        >>> rule = Memory("r", "a.md", "", Location(), "T", "", kind="rule")
        >>> pitfall = Memory("p", "b.md", "", Location(), "T", "", kind="pitfall")
        >>> [choose_credit(memory, Account("failure")) for memory in (rule, pitfall)]
        ['failure', 'mixed']
        >>> choose_credit(rule, Account("success", used={"p"})), choose_credit(pitfall, Account("failure", used={"p"}))
        ('mixed', 'failure')
    """
    if memory.id in account.marks:
        return account.marks[memory.id]
    if memory.id in account.used:
        return account.outcome
    return (
        "mixed" if account.is_explicit or (memory.kind, account.outcome) == ("pitfall", "failure") else account.outcome
    )


def find_credits(
    outcomes: Iterable[Outcome], undone: Collection[str], memories: Iterable[Memory]
) -> frozenset[tuple[str, str]]:
    """Return the entries that some outcomes have credited already, each with what it got.

    Runs that were undone do not count. An outcome that was never confirmed was killed on the
    way; whether its notes were written, the counter of each entry tells.
    """
    entries = {memory.id: memory for memory in in_force(memories)}
    held = list(outcomes)
    credited: set[tuple[str, str]] = set()
    for outcome, following in zip(held, [*held[1:], None], strict=False):
        if outcome.is_done:
            credited.update((name, mark.credit) for name, mark in outcome.marks.items() if outcome.run not in undone)
        elif following is None or not following.is_done:
            credited.update(
                (name, mark.credit)
                for name, mark in outcome.marks.items()
                if name in entries and is_written(entries[name], mark)
            )
    return frozenset(credited)


def is_written(memory: Memory, mark: Mark) -> bool:
    """Tell by the counter of an entry whether it got a credit."""
    return mark.credit != "mixed" and memory.count(f"{mark.credit}_count") >= mark.total


def plan_outcome(
    memories: Iterable[Memory], wanted: Sequence[str], account: Account, today: date, reason: str
) -> Crediting:
    """Plan what an outcome means for those of the wanted entries that are live rules, pitfalls and skills."""
    asked = set(wanted)
    entries = {
        memory.id: memory
        for memory in in_force(memories)
        if memory.id in asked and memory.is_live and memory.kind in EVIDENCE_KINDS
    }
    credits_, marks, changes = list[Credited](), dict[str, Mark](), list[Change]()
    for memory in (entries[name] for name in dict.fromkeys(wanted) if name in entries):
        credit = choose_credit(memory, account)
        change = plan_feedback(memory, credit, today, f"Feedback: {credit}. {reason}")
        count = 0 if credit == "mixed" else memory.count(f"{credit}_count")
        marks[memory.id] = mark_of(memory, credit, today)
        credits_.append(Credited(memory.id, memory.kind, memory.title, credit, *_numbers(memory, change, count, today)))
        changes += [change] if change else []
    return Crediting(tuple(credits_), marks, tuple(changes))


def mark_of(memory: Memory, credit: str, today: date) -> Mark:
    """Return what is logged of a credit that an entry gets today.

    Example:
        >>> from memory_kb.model import Location
        >>> mark_of(Memory("r", "a.md", "", Location(), "T", "", kind="rule", metadata={"confidence": 0.98}), "success", date(2026, 1, 1))
        Mark(credit='success', total=1, added=0.02)
    """
    if credit == "mixed":
        return Mark(credit, 0)
    total = memory.count(f"{credit}_count") + 1
    if memory.kind == "skill":
        return Mark(credit, total)
    evidence = read_evidence(memory)
    return Mark(credit, total, round(settle(evidence, credit, today).confidence - evidence.decayed(today), 6))


def _numbers(memory: Memory, change: Change | None, count: int, today: date) -> tuple[float, float]:
    if memory.kind == "skill":
        return count, count + (change is not None)
    evidence = read_evidence(memory)
    values = dict(change.action.values) if change and isinstance(change.action, SetFields) else {}
    after = values.get("confidence", evidence.confidence)
    return evidence.decayed(today), float(after) if isinstance(after, int | float) else evidence.confidence


class Showing(NamedTuple):
    """What was shown, and the task of an agent that it counts for.

    Attributes:
        session: the session it belongs to; None where it belongs to the task by name.
        hooked: the agent whose hooks showed it, where it belongs to a session.
        since: when it was shown first.
    """

    agent: str
    task: str
    shown: Injected
    session: str | None = None
    hooked: str | None = None
    since: str = ""


def task_of(session: str) -> str:
    """Return the task that credits of a whole session stand under.

    Example:
        >>> task_of("0b1c42")
        'session 0b1c42'
    """
    return f"session {session}"


def find_shares(retrievals: Iterable[Retrieval], session: str) -> tuple[Showing, ...]:
    """Return what hooks showed in a session, for each agent of it.

    Example:
        >>> log = [Retrieval("t1", "context", ("a",), agent="codex", session="s", injected=True)]
        >>> [(one.agent, one.task, one.shown.ids, one.since) for one in find_shares(log, "s")]
        [('codex', 'session s', ('a',), 't1')]
    """
    shown: dict[str, dict[str, None]] = {}
    first: dict[str, str] = {}
    for one in retrievals:
        if one.is_hooked and one.session == session:
            agent = one.agent or ""
            shown.setdefault(agent, {}).update(dict.fromkeys(one.ids))
            first.setdefault(agent, one.ts)
    return tuple(
        Showing(agent, task_of(session), Injected(tuple(ids), (session,)), session, agent, first[agent])
        for agent, ids in shown.items()
    )


def find_told(outcomes: Iterable[Outcome], showing: Showing) -> tuple[Outcome, ...]:
    """Return the outcomes that credited what was shown: of the task by name, and in its session.

    One that names no session may have told of the same work, so that those of the agent since the
    first showing count too.
    """
    agents = (showing.agent, showing.hooked)

    def is_about(one: Outcome) -> bool:
        if (one.agent, one.task) == (showing.agent, showing.task):
            return True
        if showing.session is None:
            return False
        return one.session == showing.session or (
            one.session is None and one.agent in agents and one.ts >= showing.since
        )

    return tuple(filter(is_about, outcomes))


def choose_new_marks(marks: Mapping[str, str], credits_: Collection[tuple[str, str]]) -> dict[str, str]:
    """Return the marks that are not credited yet: what an outcome said of an entry already is not said twice.

    Example:
        >>> choose_new_marks({"a": "success", "b": "failure", "c": "success"}, {("a", "success"), ("b", "success"), ("c", "mixed")})
        {'b': 'failure', 'c': 'success'}
    """
    return {name: credit for name, credit in marks.items() if (name, credit) not in credits_}


def split_pairs(retrievals: Sequence[Retrieval], session: str) -> tuple[tuple[str, str], ...]:
    """Return the tasks of agents that were shown something by name in a session."""
    shown = (one for one in retrievals if one.session == session and one.injected and one.agent and one.task)
    return tuple(dict.fromkeys((one.agent or "", one.task or "") for one in shown))


@dataclass(frozen=True, slots=True)
class ShownTo:
    """One time that an entry was shown; what is not known is None.

    Attributes:
        verb: what showed it, such as `search` or `context`.
        injected: whether it was put before an agent unasked.
        outcome: how the task went, by the next outcome that was told of it.
        credit: what the entry itself got for that: `success`, `failure` or `mixed`.
        session_outcome: how the session ended, by its log.
    """

    ts: str
    verb: str
    session: str | None
    agent: str | None
    task: str | None
    query: str | None
    injected: bool
    outcome: str | None = None
    credit: str | None = None
    session_outcome: str | None = None


@dataclass(frozen=True, slots=True)
class Descendant:
    """An entry that was made of another, or points to it; `relation` says how."""

    id: str
    kind: str
    title: str
    path: str
    line: int
    status: str
    relation: str


class Totals(NamedTuple):
    """How often, to whom, and at what cost.

    Attributes:
        outcomes: how the tasks went, each task of an agent once.
        sessions_ended: how the sessions ended, each once.
        tokens_each: what the entry costs now each time, by the estimate of every budget.
        tokens_injected: that for each time it was put before an agent unasked.
    """

    shown: int
    injected: int
    sessions: int
    agents: int
    tasks: int
    outcomes: Mapping[str, int]
    sessions_ended: Mapping[str, int]
    tokens_each: int
    tokens_injected: int


@dataclass(frozen=True, slots=True)
class Exposure:
    """Where an entry has been.

    Attributes:
        path: None where the entry is there no more and only the log knows it.
        showings: oldest first.
        derived: what was made of it or points to it.
        sources: what it was made of itself.
        since: how far the log goes back; None where it is empty.
    """

    id: str
    kind: str | None
    title: str | None
    path: str | None
    line: int | None
    showings: tuple[ShownTo, ...]
    totals: Totals
    derived: tuple[Descendant, ...]
    sources: tuple[str, ...]
    since: str | None


def trace_exposure(
    entry_id: str,
    retrievals: Iterable[Retrieval],
    outcomes: Iterable[Outcome],
    memories: Iterable[Memory],
    ends: Mapping[str, str],
    undone: Collection[str] = (),
) -> Exposure:
    """Return where an entry has been.

    Args:
        entry_id: the entry, by its whole id.
        retrievals: the log of what was shown.
        outcomes: the log of outcomes; one that was undone gives no credit.
        memories: all entries.
        ends: how sessions ended.
        undone: the runs that were undone.
    """
    since, shown = None, list[Retrieval]()
    for one in retrievals:
        since = min(filter(None, (since, one.ts)), default=None)
        shown += [one] if entry_id in one.ids else []
    done = [one for one in outcomes if one.is_done]
    showings = tuple(
        sorted((_make_showing(entry_id, one, done, ends, undone) for one in shown), key=lambda one: one.ts)
    )
    held = list(memories)
    entry = next((one for one in held if one.id == entry_id), None)
    tokens = count_tokens(entry.text) if entry else 0
    return Exposure(
        id=entry_id,
        kind=entry.kind if entry else None,
        title=entry.title if entry else None,
        path=entry.path if entry else None,
        line=entry.line if entry else None,
        showings=showings,
        totals=_add_up(showings, tokens),
        derived=tuple(find_derived(entry_id, held)),
        sources=entry.words("sources") if entry else (),
        since=since,
    )


def _make_showing(
    entry_id: str, shown: Retrieval, outcomes: Sequence[Outcome], ends: Mapping[str, str], undone: Collection[str]
) -> ShownTo:
    told = [one for one in outcomes if _is_about(one, shown) and one.ts >= shown.ts]
    first = min((one for one in told if one.outcome in OUTCOMES), key=lambda one: one.ts, default=None)
    credited = (one.marks[entry_id].credit for one in told if entry_id in one.marks and one.run not in undone)
    return ShownTo(
        ts=shown.ts,
        verb=shown.verb,
        session=shown.session,
        agent=shown.agent,
        task=shown.task,
        query=shown.query,
        injected=shown.injected,
        outcome=first.outcome if first else None,
        credit=next(credited, None) if shown.injected else None,
        session_outcome=ends.get(shown.session or ""),
    )


def find_used(outcomes: Iterable[Outcome], shown: Sequence[Retrieval], session: str) -> tuple[str, ...]:
    """Return the entries that outcomes of a session name as used; `shown` is what was shown there."""
    about = (one for one in outcomes if one.session == session or any(_is_about(one, each) for each in shown))
    return tuple(dict.fromkeys(name for one in about for name in one.used))


def _is_about(outcome: Outcome, shown: Retrieval) -> bool:
    """Return whether an outcome is of the task that something was shown for, or of the session that hooks showed it in."""
    if shown.is_hooked:
        return outcome.session == shown.session
    return (outcome.agent, outcome.task) == (shown.agent, shown.task) and outcome.session in (None, shown.session)


def _add_up(showings: Sequence[ShownTo], tokens: int) -> Totals:
    injected = sum(one.injected for one in showings)
    tasks = {(one.agent, one.task or one.session): one.outcome for one in showings if one.outcome}
    sessions = {one.session: one.session_outcome for one in showings if one.session}
    return Totals(
        shown=len(showings),
        injected=injected,
        sessions=len(sessions),
        agents=len({one.agent for one in showings if one.agent}),
        tasks=len({(one.agent, one.task) for one in showings if one.task}),
        outcomes=dict(sorted(Counter(tasks.values()).items())),
        sessions_ended=dict(sorted(Counter(filter(None, sessions.values())).items())),
        tokens_each=tokens,
        tokens_injected=tokens * injected,
    )


def find_derived(entry_id: str, memories: Iterable[Memory]) -> Iterable[Descendant]:
    """Yield the entries that name another as a source or link to it, in path order.

    Example:
        >>> from memory_kb.model import Location
        >>> rule = Memory("r", "a.md", "", Location(), "T", "", kind="rule", metadata={"sources": ["ep-1"]})
        >>> [one.id for one in find_derived("ep-1", [rule])], [one.relation for one in find_derived("ep-1", [rule])]
        (['r'], ['source'])
    """
    for memory in sorted(memories, key=lambda one: (one.path, one.line)):
        relations = ["source"] if entry_id in memory.words("sources") else []
        relations += [link.relation for link in memory.links if link.to == entry_id]
        for relation in dict.fromkeys(relations):
            yield Descendant(memory.id, memory.kind, memory.title, memory.path, memory.line, memory.status, relation)


#: How long after a session of hooks an outcome may still be told of it.
_LATE = timedelta(days=1)
#: What stands as outcome where an agent said of entries what they did, and nobody how the task went.
_MARKED = "marked"


class Outcomes:
    """The verb outcome, and what a session's end makes of what hooks showed."""

    def __init__(
        self,
        vault: Vault,
        writer: Writer,
        store: EntryStore,
        rules: Rules,
        recognise: Callable[[str], str | None],
        trace: TraceSession,
    ) -> None:
        self._vault = vault
        self._writer = writer
        self._store = store
        self._rules = rules
        self._recognise = recognise
        self._trace = trace

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
        """Say how a task went; the rules, pitfalls and skills that were used are credited for it.

        Used is what `used` names. Without it, it is what was shown and left a third of its longer words in what the
        session did, if that changed a file or committed. What the agent itself said (`[memory-kb: helpful ID]`) counts
        in any case. With `reinforcement.counts: shown` all that was shown counts. Each entry is credited once for a
        task of an agent; a task that was shown nothing changes nothing.

        Where nothing was shown for the task by name, it is what hooks showed in its session: the
        one that is named here or by `MEMORY_KB_SESSION`, else the one of this agent that runs, or
        ran last. There each entry is credited once for the session.

        Entries of any kind that are named in `used` are reinforced when the session ends.

        Args:
            agent: who did it, as it was named when it was shown something.
            task: the task, named in the same way.
            outcome: `success`, `failure` or `mixed`.
            used: the entries that were used, by their ids.
            task_id: what the task is called, where `context` was told that too.
            session: only what was shown in this session.
            dry_run: whether only to tell what would change.

        Raises:
            UsageError: there is no such outcome.
            UnknownEntry: one that was used does not exist.
            UnreadableInput: a file cannot be written; everything is as it was.
        """
        from memory_kb.credentials import redact

        word = read_outcome(outcome)
        agent, task, task_id = redact(agent).text, redact(task).text, task_id and redact(task_id).text
        with self._store.planning(dry_run=dry_run):
            if not dry_run:
                self._writer.recover()
            showing = self._find_showing(self._retrievals(session), agent, task, session, task_id)
            if showing is None:
                where = f" in session {session}" if session else ""
                notice = f"Nothing was shown to {agent} for {task}{where}: `context` must name the same agent and task. Nothing is credited."
                return OutcomeReport(agent, task, word, (), (), notice, RunReport(None, "outcome"))
            report = self._count(showing, word, used, session, dry_run=dry_run)
        if showing.hooked is None or report.notice:
            return report
        return replace(
            report,
            notice=f"Nothing was shown for this task by name; this is what hooks showed in session {showing.session}.",
        )

    def credit_session(self, session: str, word: str | None, *, dry_run: bool = False) -> tuple[RunReport, ...]:
        """Credit what was shown in a session that is over; without an outcome only what its agents said of entries."""
        by_name, shares = self._showings_of(session)
        runs = (
            [self.outcome(one.agent, one.task, word, session=session, dry_run=dry_run).run for one in by_name]
            if word
            else []
        )
        with self._store.planning(dry_run=dry_run):
            runs += [self._count(one, word, (), session, dry_run=dry_run).run for one in shares] if word else []
            runs += [self._count_marks(one, session, dry_run=dry_run) for one in (*by_name, *shares)]
        return tuple(runs)

    def _showings_of(self, session: str) -> tuple[tuple[Showing, ...], tuple[Showing, ...]]:
        """Return what was shown in a session for tasks by their names, and what hooks showed there."""
        retrievals = self._retrievals(session)
        since = min((one.ts for one in retrievals if one.session == session), default="")
        named = (
            self._find_showing(retrievals, agent, task, session) for agent, task in split_pairs(retrievals, session)
        )
        return tuple(one._replace(session=session, since=since) for one in named if one), find_shares(
            retrievals, session
        )

    def _count(
        self, showing: Showing, word: str, used: Sequence[str], session: str | None, *, dry_run: bool
    ) -> OutcomeReport:
        """Give an outcome to what was shown and did not get one yet; the vault's lock is held."""
        agent, task, today = showing.agent, showing.task, self._vault.today()
        reason = f"{agent} on {task}: {word}."
        account = self._hear(word, showing, used, session)
        memories = self._store.all(EVERYTHING._replace(kinds=EVIDENCE_KINDS))
        named, counts_shown = account.used, self._vault.settings.reinforcement.counts == "shown"
        if not named and not counts_shown:
            account = replace(account, used=self._find_used(showing, session, memories))
        told = self._find_told(showing)
        known = {name for name, _ in find_credits(told, self._undone() if told else (), memories)}
        asked = dict.fromkeys((*account.used, *account.marks, *(showing.shown.ids if counts_shown else ())))
        wanted = [one for one in asked if one not in known]
        plan = plan_outcome(memories, wanted, account, today, reason)
        run = self._write_credits(
            plan,
            self._begin(showing, word, session)._replace(used=tuple(named)),
            lambda held: plan_outcome(held, wanted, account, today, reason),
            dry_run=dry_run,
        )
        left = {conflict.id for conflict in run.conflicts}
        credits_ = tuple(one for one in plan.credits if one.id not in left)
        notice = (
            ""
            if plan.credits
            else "All of it was credited before."
            if known
            else "None of it is a rule, pitfall or skill; what was used counts when the session ends."
            if account.used
            else "None of what was shown is a rule, pitfall or skill in use."
            if counts_shown
            else "Nothing that was shown can be seen in what the session did: name in `used` what was. Nothing is credited."
        )
        return OutcomeReport(agent, task, word, credits_, tuple(one for one in asked if one in known), notice, run)

    def _count_marks(self, showing: Showing, session: str, *, dry_run: bool) -> RunReport:
        """Credit what the agents of a session said of entries, where that is not credited; one that was undone stays so."""
        heard = self._hear(_MARKED, showing, (), session).marks
        if not heard:
            return RunReport(None, "outcome")
        memories = self._store.all(EVERYTHING._replace(kinds=EVIDENCE_KINDS))
        marks = choose_new_marks(heard, find_credits(self._find_told(showing), (), memories))
        account, today = Account(_MARKED, marks=marks), self._vault.today()
        reason = f"{showing.agent} said so in session {session}."
        plan = plan_outcome(memories, tuple(marks), account, today, reason)
        return self._write_credits(
            plan,
            self._begin(showing, _MARKED, session),
            lambda held: plan_outcome(held, tuple(marks), account, today, reason),
            dry_run=dry_run,
        )

    def _retrievals(self, session: str | None) -> list[Retrieval]:
        """Return what was shown in a session, or all that was."""
        from memory_kb.store.logs import RetrievalLog

        return list(RetrievalLog(self._vault.machine / "log").read(session))

    def _find_showing(
        self, retrievals: Sequence[Retrieval], agent: str, task: str, session: str | None, task_id: str | None = None
    ) -> Showing | None:
        """Return what an agent was shown for a task: by name, else by hooks in its session."""
        for name in filter(None, (task_id, task)):
            shown = find_injected(retrievals, agent, name, session)
            if shown.ids:
                return Showing(agent, name, shown)
        chosen = self._find_session(retrievals, agent, session)
        shares = find_shares(retrievals, chosen) if chosen else ()
        if not shares:
            return None
        ids = dict.fromkeys(name for one in shares for name in one.shown.ids)
        return shares[0]._replace(agent=agent, task=task, shown=Injected(tuple(ids), shares[0].shown.sessions))

    def _find_session(self, retrievals: Sequence[Retrieval], agent: str, session: str | None) -> str | None:
        """Return the session that a task was done in, where hooks showed something; None where nobody can tell."""
        from memory_kb.store.session_log import SessionFiles

        if session:
            return session
        held = self._vault.session
        if held and (
            SessionFiles(self._vault.machine).path(held).exists()
            or any(one.session == held for one in retrievals if one.is_hooked)
        ):
            return held
        hooked = self._recognise(agent)
        if hooked is None:
            return None
        return self._running(hooked) or self._last_shown(retrievals, hooked)

    def _running(self, hooked: str) -> str | None:
        """Return the session of an agent that its hooks began, nobody ended, and something was heard of last."""
        from memory_kb.store.session_log import HOOKED, SessionFiles

        files = SessionFiles(self._vault.machine)
        names = set(os.listdir(files.folder / HOOKED)) if (files.folder / HOOKED).is_dir() else set()
        found = []
        for name in names.intersection(files.ids()):
            with files.writing(name) as writer:
                if writer.first and writer.last and writer.first.agent == hooked and writer.last.event != "end":
                    found.append((writer.last.ts, name))
        return max(found)[1] if found else None

    def _last_shown(self, retrievals: Sequence[Retrieval], hooked: str) -> str | None:
        """Return the session in which hooks of an agent showed something last, unless that is long ago."""
        from memory_kb.store.logs import format_time

        since = format_time(self._vault.clock() - _LATE)
        shown = [one for one in retrievals if one.is_hooked and one.agent == hooked and one.ts >= since]
        return max(shown, key=lambda one: one.ts).session if shown else None

    def _find_told(self, showing: Showing) -> tuple[Outcome, ...]:
        """Return the outcomes that credited what was shown."""
        from memory_kb.store.logs import OutcomeLog

        return find_told(OutcomeLog(self._vault.machine / "log").read_about(showing.task, showing.session), showing)

    def _hear(self, outcome: str, showing: Showing, used: Sequence[str], session: str | None) -> Account:
        """Return what is known of how a task went, by its sessions and by whoever tells."""
        from memory_kb.store.session_log import SessionFiles

        files, shown = SessionFiles(self._vault.machine), showing.shown.ids
        sessions: Iterable[str] = dict.fromkeys((*showing.shown.sessions, *([session] if session else [])))
        marks: dict[str, str] = {}
        for name in set(files.ids()).intersection(sessions):
            marks |= find_marks(files.read(name, only=may_hold_marks))
        names = (used,) if isinstance(used, str) else used
        full = tuple(next((one for one in shown if one == name), None) or self._rules.find(name).id for name in names)
        return Account(outcome, full, resolve_marks(marks, shown))

    def _find_used(self, showing: Showing, session: str | None, memories: Sequence[Memory]) -> tuple[str, ...]:
        """Return what was shown and can be seen in what its sessions did."""
        from memory_kb.learning.reinforcement import changed_files, keep_used, words_of_work
        from memory_kb.store.session_log import SessionFiles

        files, hooked = SessionFiles(self._vault.machine), self._recognise(showing.agent)
        names = {*showing.shown.sessions, session, showing.session, self._running(hooked) if hooked else None}
        sessions = [name for name in names.intersection(files.ids()) if name and changed_files(self._trace(name))]
        words = frozenset[str]().union(*(words_of_work(files.read(name)) for name in sessions))
        return keep_used(showing.shown.ids, memories, words)

    def _begin(self, showing: Showing, word: str, session: str | None) -> Outcome:
        """Return an outcome as it is written down before anything is credited for it."""
        from memory_kb.store.logs import format_time

        return Outcome(
            format_time(self._vault.clock()), showing.agent, showing.task, word, {}, showing.session or session
        )

    def _write_credits(
        self, plan: Crediting, about: Outcome, planner: Callable[[Sequence[Memory]], Crediting], *, dry_run: bool
    ) -> RunReport:
        """Write credits down, then into the notes, then that it is done."""
        from memory_kb.store.logs import OutcomeLog

        log, begun = OutcomeLog(self._vault.machine / "log"), about._replace(marks=plan.marks)
        if not plan.marks:
            if about.used and not dry_run:
                log.append(begun._replace(is_done=True))
            return RunReport(None, "outcome")
        if dry_run:
            return self._writer.run("outcome", plan.changes, dry_run=True)
        log.append(begun)
        run, left = None, set[str | None](plan.marks)
        try:
            run = self._store.carry_out("outcome", lambda memories: planner(memories).changes, plan.changes)
            left = {conflict.id for conflict in run.conflicts}
        finally:
            kept = {name: mark for name, mark in plan.marks.items() if name not in left}
            log.append(begun._replace(marks=kept, run=run.run if run else None, is_done=True))
        return run

    def _undone(self) -> frozenset[str]:
        """Return the runs that were undone."""
        from memory_kb.store.undo import undone_by

        return frozenset(undone_by(self._writer.journal.undoings()))


class Exposures:
    """The verb exposure."""

    def __init__(self, vault: Vault, writer: Writer, store: EntryStore, rules: Rules) -> None:
        self._vault = vault
        self._writer = writer
        self._store = store
        self._rules = rules

    def exposure(self, wanted: str) -> Exposure:
        """Return which sessions, agents and tasks were shown an entry, and what became of them.

        An entry that is there no more is found by its whole id, as long as the log remembers it.

        Raises:
            UnknownEntry: neither the notes nor the log know it.
            AmbiguousId: there are several.
        """
        from memory_kb.store.logs import OutcomeLog, RetrievalLog
        from memory_kb.store.session_log import SessionFiles, read_outcome
        from memory_kb.store.undo import undone_by

        logs = self._vault.machine / "log"
        retrievals = list(RetrievalLog(logs).read())
        try:
            entry_id = self._rules.find(wanted).id
        except UnknownEntry:
            if not any(wanted in one.ids for one in retrievals):
                raise
            entry_id = wanted
        files = SessionFiles(self._vault.machine)
        sessions = {one.session for one in retrievals if one.session and entry_id in one.ids}
        ends = {
            one: outcome for one in sessions.intersection(files.ids()) if (outcome := read_outcome(files.path(one)))
        }
        outcomes = list(OutcomeLog(logs).read_all())
        undone = frozenset(undone_by(self._writer.journal.undoings())) if outcomes else frozenset[str]()
        return trace_exposure(entry_id, retrievals, outcomes, self._store.all(), ends, undone)
