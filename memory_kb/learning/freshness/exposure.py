"""Who was shown an entry, what became of them, and what was made of it (peers §5, feature 3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memory_kb.learning.memories import Memory
from memory_kb.learning.rules.confidence import OUTCOMES
from memory_kb.notes.outcomes import Outcome
from memory_kb.notes.retrievals import Retrieval
from memory_kb.text import count_tokens


@dataclass(frozen=True, slots=True)
class Showing:
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
    showings: tuple[Showing, ...]
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
        outcomes: the log of outcomes; one that was taken back gives no credit.
        memories: all entries.
        ends: how sessions ended.
        undone: the runs that were taken back.
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
) -> Showing:
    told = [one for one in outcomes if _is_about(one, shown) and one.ts >= shown.ts]
    first = min((one for one in told if one.outcome in OUTCOMES), key=lambda one: one.ts, default=None)
    credited = (one.marks[entry_id].credit for one in told if entry_id in one.marks and one.run not in undone)
    return Showing(
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


def _is_about(outcome: Outcome, shown: Retrieval) -> bool:
    """Tell whether an outcome is of the task that something was shown for, or of the session that hooks showed it in."""
    if shown.is_hooked:
        return outcome.session == shown.session
    return (outcome.agent, outcome.task) == (shown.agent, shown.task) and outcome.session in (None, shown.session)


def _add_up(showings: Sequence[Showing], tokens: int) -> Totals:
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
