"""What the outcome of a task says about the entries that its agent was shown (S0-48, S0-49)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import NamedTuple

from memory_kb.learning.memories import Memory
from memory_kb.learning.rules.confidence import read_evidence, settle
from memory_kb.learning.rules.playbook import RULE_KINDS, in_force, plan_feedback
from memory_kb.notes.events import Event
from memory_kb.notes.eventtext import strings_of
from memory_kb.notes.injected import strip
from memory_kb.notes.outcomes import Mark, Outcome
from memory_kb.notes.plans import Change, SetFields
from memory_kb.notes.retrievals import Retrieval
from memory_kb.reports import RunReport

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
        used: the entries that somebody says were used.
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
            if "[memory-kb:" in text.lower():
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
    """Return what an outcome means for one entry that was shown.

    - What the agent said of an entry counts for that entry, whatever became of the task.
    - Where it is known which entries were used, those get the outcome; what was merely on display
      only settles its decay, as `mixed` does.
    - Where nothing is known, all that was shown gets the outcome (S0-49).
    - A pitfall that was shown before a task failed is not blamed for it: a failure is no evidence
      against a warning, and blame would wear out the warnings about the hardest tasks first. It
      only settles. What lowers it is somebody calling it harmful.

    Example:
        >>> from memory_kb.model import Location
        >>> rule = Memory("r", "a.md", "", Location(), "T", "", kind="rule")
        >>> pitfall = Memory("p", "b.md", "", Location(), "T", "", kind="pitfall")
        >>> [choose_credit(memory, Account("failure")) for memory in (rule, pitfall)]
        ['failure', 'mixed']
        >>> choose_credit(rule, Account("success", used={"p"})), choose_credit(pitfall, Account("success", marks={"p": "failure"}))
        ('mixed', 'failure')
    """
    if memory.id in account.marks:
        return account.marks[memory.id]
    if account.is_explicit and memory.id not in account.used:
        return "mixed"
    return "mixed" if memory.kind == "pitfall" and account.outcome == "failure" else account.outcome


def find_credits(
    outcomes: Iterable[Outcome], undone: Collection[str], memories: Iterable[Memory]
) -> frozenset[tuple[str, str]]:
    """Return the entries that some outcomes have credited already, each with what it got.

    Runs that were taken back do not count. An outcome that was never confirmed was killed on the
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
