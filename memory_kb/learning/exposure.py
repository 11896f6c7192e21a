"""What agents were shown for their tasks; the verb exposure: where an entry was shown, and how that went."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memory_kb.errors import UnknownEntry
from memory_kb.learning.memories import Memories
from memory_kb.learning.playbook import RULE_OUTCOMES
from memory_kb.memory import Memory
from memory_kb.store.logs import Outcome, OutcomeLog, Retrieval, RetrievalLog
from memory_kb.store.session_log import SessionFiles
from memory_kb.store.undo import undone_by
from memory_kb.store.writer import Writer
from memory_kb.text import count_tokens
from memory_kb.vault import Vault


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


def group_showings(retrievals: Iterable[Retrieval]) -> dict[tuple[str, str], Showing]:
    """Return what was put before agents, by agent and task; what hooks showed of its session, by "" and the session."""
    groups = defaultdict[tuple[str, str], list[Retrieval]](list)
    for one in retrievals:
        if one.is_hooked:
            groups["", one.session or ""].append(one)
        elif one.injected and one.agent and one.task:
            groups[one.agent, one.task].append(one)
    showings = {}
    for (agent, task), found in groups.items():
        ids = tuple(dict.fromkeys(name for one in found for name in one.ids))
        sessions = tuple(dict.fromkeys(one.session for one in found if one.session))
        named = Showing(agent, task, ids, sessions)
        who = next((one.agent for one in found if one.agent), "")
        if ids:
            showings[agent, task] = named if agent else Showing(who, f"session {task}", ids, sessions, hooked=task)
    return showings


def find_showing(
    retrievals: Iterable[Retrieval], agent: str, tasks: Sequence[str], hooked: str | None
) -> Showing | None:
    """Return what an agent was shown for a task, by one of its names; else what hooks showed in a session."""
    showings = group_showings(retrievals)
    named = next((showings[agent, task] for task in tasks if (agent, task) in showings), None)
    shown = showings.get(("", hooked or ""))
    return named or (shown and shown._replace(agent=agent, task=tasks[-1]))


def belongs_to(outcome: Outcome, shown: Retrieval) -> bool:
    """Return whether an outcome belongs to the task of a retrieval, or to the session if hooks made the retrieval."""
    if shown.is_hooked:
        return outcome.session == shown.session
    return (outcome.agent, outcome.task) == (shown.agent, shown.task) and outcome.session in (None, shown.session)


@dataclass(frozen=True, slots=True)
class ShownTo:
    """One time that an entry was shown, `injected` if to an agent unasked; what is not known is None.

    `outcome` is how the task went, by the next that was reported for it, `credit` what the entry itself got for that.
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
    """How often an entry was shown, to whom, how each task and session went, and what it costs in tokens."""

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
    """Where an entry has been, the oldest showing first; its path is None where only the log knows it any more.

    `derived` was made of it or points to it, `sources` is what it was made of; the log goes back to `since`.
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


@dataclass(frozen=True)
class Exposures:
    """The verb exposure."""

    _vault: Vault
    _writer: Writer
    _memories: Memories

    def exposure(self, wanted: str) -> Exposure:
        """Return which sessions, agents and tasks were shown an entry, and how they went.

        An entry that is there no more is found by its whole id, as long as the log remembers it.
        """
        shown = sorted(RetrievalLog(self._vault.machine / "log").read(), key=lambda one: one.ts)
        entry: Memory | None = None
        try:
            entry = self._memories.find(wanted)
        except UnknownEntry:
            if not any(wanted in one.ids for one in shown):
                raise
        entry_id = entry.id if entry else wanted
        about = {name: getattr(entry, name, None) for name in ("kind", "title", "path", "line")}
        showings = tuple(self._trace(entry_id, [one for one in shown if entry_id in one.ids]))
        return Exposure(
            id=entry_id,
            **about,
            showings=showings,
            totals=_add_up(showings, count_tokens(entry.text) if entry else 0),
            derived=tuple(self._find_derived(entry_id)),
            sources=entry.words("sources") if entry else (),
            since=next((one.ts for one in shown if one.ts), None),
        )

    def _find_derived(self, entry_id: str) -> Iterator[Descendant]:
        for one in self._memories.with_fields(("sources", "links")):
            source = ["source"] if entry_id in one.words("sources") else []
            for relation in dict.fromkeys([*source, *(link.relation for link in one.links if link.to == entry_id)]):
                yield Descendant(one.id, one.kind, one.title, one.path, one.line, one.status, relation)

    def _trace(self, entry_id: str, retrievals: Sequence[Retrieval]) -> Iterator[ShownTo]:
        """Yield the times that an entry was shown, with what became of it; an undone run gives no credit."""
        files = SessionFiles(self._vault.machine)
        ends = {name: files.outcome(name) for name in set(files.ids()).intersection(one.session for one in retrievals)}
        outcomes = [one for one in OutcomeLog(self._vault.machine / "log").read_all() if one.is_done]
        undone = undone_by(self._writer.journal.undoings()) if outcomes else ()
        for shown in retrievals:
            about = [one for one in outcomes if belongs_to(one, shown) and one.ts >= shown.ts]
            told = (one.outcome for one in about if one.outcome in RULE_OUTCOMES)
            credited = (one.marks[entry_id].credit for one in about if entry_id in one.marks and one.run not in undone)
            yield ShownTo(
                **{
                    name: getattr(shown, name)
                    for name in ("ts", "verb", "session", "agent", "task", "query", "injected")
                },
                outcome=next(told, None),
                credit=next(credited, None) if shown.injected else None,
                session_outcome=ends.get(shown.session or ""),
            )
