"""Ledgers: one entry for each agent that says what it is doing, overwritten at each checkpoint (S2-37)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from memory_kb.credentials import locate_secret
from memory_kb.errors import SecretRefused, UsageError
from memory_kb.learning.memories import Memory, plan_fields
from memory_kb.learning.remember import Draft, render
from memory_kb.notes.fields import read_text, read_words
from memory_kb.notes.plans import Change, create_file
from memory_kb.notes.splice import Value
from memory_kb.reports import RunReport

_STATE = ("files_modified", "uncommitted_changes", "last_git_commit")
_CONTEXT = ("tech_stack", "patterns_learned", "current_goal")
_TOP = ("agent_id", "last_checkpoint", "tasks_completed", "completed_tasks", "current_task", "state", "context")
_MAX_COUNT = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What an agent tells of itself; what is None stays as it was.

    Attributes:
        completed: tasks that are done; each counts once, however often it is told.
        tasks_completed: the count itself, where only that is known.
        more_state: further values of `state`, and
        more_context: of `context`, kept as they are.
    """

    current_task: str | None = None
    current_goal: str | None = None
    completed: tuple[str, ...] = ()
    tasks_completed: int | None = None
    files_modified: tuple[str, ...] | None = None
    uncommitted_changes: bool | None = None
    last_git_commit: str | None = None
    tech_stack: tuple[str, ...] | None = None
    patterns_learned: tuple[str, ...] | None = None
    more_state: tuple[tuple[str, Any], ...] = ()
    more_context: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Ledger:
    """What is known of an agent's work; `state` and `context` keep what others wrote there."""

    id: str
    agent_id: str
    last_checkpoint: str | None
    tasks_completed: int
    completed_tasks: tuple[str, ...]
    current_task: str | None
    state: Mapping[str, Any]
    context: Mapping[str, Any]
    scope: str
    path: str
    line: int

    @property
    def as_mapping(self) -> dict[str, Any]:
        """The ledger in the shape of S2-37, all of its fields there."""
        state = {"files_modified": [], "uncommitted_changes": None, "last_git_commit": None} | dict(self.state)
        context = {"tech_stack": [], "patterns_learned": [], "current_goal": None} | dict(self.context)
        return {
            "agent_id": self.agent_id,
            "last_checkpoint": self.last_checkpoint,
            "tasks_completed": self.tasks_completed,
            "current_task": self.current_task,
            "state": state | {"files_modified": list(read_words(state["files_modified"]))},
            "context": context | {name: list(read_words(context[name])) for name in ("tech_stack", "patterns_learned")},
        }


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """A ledger after a checkpoint, and what was written for it.

    Attributes:
        action: `created`, `updated` or `unchanged`.
        notices: what was told and could not be kept.
    """

    ledger: Ledger
    action: str
    run: RunReport
    notices: tuple[str, ...] = ()


def read_ledger(memory: Memory) -> Ledger:
    """Return an entry of kind ledger as it is shown, whatever its fields hold.

    Example:
        >>> from memory_kb.model import Location
        >>> read_ledger(Memory("l", "l.md", "", Location(), "T", "", metadata={"agent_id": "eng-001", "tasks_completed": 12})).tasks_completed
        12
    """
    held = memory.metadata.get("tasks_completed")
    names = memory.words("completed_tasks") or (read_words(held) if isinstance(held, list) else ())
    return Ledger(
        id=memory.id,
        agent_id=memory.word("agent_id") or memory.word("agent") or memory.id,
        last_checkpoint=memory.word("last_checkpoint"),
        tasks_completed=max(memory.count("tasks_completed"), len(names)),
        completed_tasks=names,
        current_task=memory.word("current_task"),
        state=_mapping(memory.metadata.get("state")),
        context=_mapping(memory.metadata.get("context")),
        scope=memory.place.scope,
        path=memory.path,
        line=memory.line,
    )


def _mapping(value: object) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def read_checkpoint(value: Mapping[str, Any]) -> tuple[Checkpoint, tuple[str, ...]]:
    """Return what an object in the shape of S2-37 tells, and complaints about what of it cannot be kept.

    Example:
        >>> told, wrong = read_checkpoint({"agent_id": "a", "tasks_completed": 3, "state": {"uncommitted_changes": True, "port": 80}, "mood": "good"})
        >>> told.tasks_completed, told.uncommitted_changes, told.more_state, wrong
        (3, True, (('port', 80),), ('mood is no field of a ledger',))
    """
    state, context = _mapping(value.get("state")), _mapping(value.get("context"))
    wrong = [f"{name} is no field of a ledger" for name in value if name not in _TOP]
    wrong += [
        f"{name} is no object"
        for name in ("state", "context")
        if value.get(name) is not None and not isinstance(value[name], Mapping)
    ]
    done, names = value.get("tasks_completed"), value.get("completed_tasks")
    is_count = isinstance(done, int) and not isinstance(done, bool) and 0 <= done <= _MAX_COUNT
    if done is not None and not is_count and not isinstance(done, list):
        wrong.append("tasks_completed is neither a number nor a list")
    dirty = state.get("uncommitted_changes")
    if dirty is not None and not isinstance(dirty, bool):
        wrong.append("state.uncommitted_changes is neither true nor false")
    told = Checkpoint(
        current_task=_line(value, "current_task"),
        current_goal=_line(context, "current_goal"),
        completed=read_words(names if names is not None else done if isinstance(done, list) else None),
        tasks_completed=done if is_count else None,
        files_modified=_words(state, "files_modified"),
        uncommitted_changes=dirty if isinstance(dirty, bool) else None,
        last_git_commit=_line(state, "last_git_commit"),
        tech_stack=_words(context, "tech_stack"),
        patterns_learned=_words(context, "patterns_learned"),
        more_state=tuple((name, held) for name, held in state.items() if name not in _STATE),
        more_context=tuple((name, held) for name, held in context.items() if name not in _CONTEXT),
    )
    return told, tuple(wrong)


def _line(value: Mapping[str, Any], name: str) -> str | None:
    """Return a text of an object; null says that there is none now."""
    return None if name not in value else read_text(value[name]) or ""


def _words(value: Mapping[str, Any], name: str) -> tuple[str, ...] | None:
    return None if name not in value else read_words(value[name])


def blank_ledger(agent: str, entry_id: str, path: str, scope: str = "project") -> Ledger:
    """Return the ledger of an agent that has told nothing yet."""
    return Ledger(entry_id, agent, None, 0, (), None, {}, {}, scope, path, 1)


def plan_checkpoint(ledger: Memory, told: Checkpoint, now: datetime) -> Change | None:
    """Plan to bring a ledger up to date; its other fields and its text stay.

    Raises:
        SecretRefused: what is told holds what looks like a credential.
    """
    known = read_ledger(ledger)
    values = _values(known, check_checkpoint(told), now)
    held = ledger.metadata
    return plan_fields(
        ledger,
        {name: value for name, value in values.items() if name in held or value not in ("", [], {}, 0)},
        "A checkpoint.",
    )


def plan_new_ledger(agent: str, entry_id: str, path: str, told: Checkpoint, now: datetime) -> Change:
    """Plan the first ledger of an agent.

    Raises:
        SecretRefused: what is told holds what looks like a credential.
    """
    values = {"agent_id": agent} | _values(blank_ledger(agent, entry_id, path), check_checkpoint(told), now)
    fields = tuple(
        (name, value) for name, value in values.items() if value not in ([], {}, "") or name == "current_task"
    )
    return create_file(
        path, render(Draft(f"# Ledger: {agent}", "ledger", fields=fields), entry_id, now), "A checkpoint.", entry_id
    )


def apply_checkpoint(known: Ledger, told: Checkpoint, now: datetime) -> Ledger:
    """Return a ledger as it is after a checkpoint."""
    values = _values(known, told, now)
    return replace(
        known,
        last_checkpoint=str(values["last_checkpoint"]),
        tasks_completed=int(str(values["tasks_completed"])),
        completed_tasks=tuple(dict.fromkeys((*known.completed_tasks, *told.completed))),
        current_task=read_text(values.get("current_task", known.current_task)),
        state=_mapping(values.get("state", known.state)),
        context=_mapping(values.get("context", known.context)),
    )


def check_checkpoint(told: Checkpoint) -> Checkpoint:
    """Return what is told, if it may be kept.

    Raises:
        SecretRefused: it holds what looks like a credential.
    """
    secret = locate_secret("\n".join(_texts([getattr(told, name) for name in told.__dataclass_fields__])))
    if secret:
        raise SecretRefused(secret.described)
    return told


def check_agent(agent: str) -> str:
    """Return an agent's name on one line.

    Raises:
        UsageError: there is none.
    """
    name = read_text(agent)
    if name is None or len(name) > 200:
        raise UsageError(
            f"{agent[:60]!r} is not a name for an agent", "name it as in: memory-kb ledger set eng-001 --task T-42"
        )
    return name


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [
            text
            for name, held in value.items()
            for text in ([f"{name}: {held}"] if isinstance(held, str) else _texts(held))
        ]
    if isinstance(value, list | tuple):
        return [text for held in value for text in _texts(held)]
    return []


def _values(known: Ledger, told: Checkpoint, now: datetime) -> dict[str, Value]:
    names = list(dict.fromkeys((*known.completed_tasks, *told.completed)))
    count = (
        known.tasks_completed + len(names) - len(known.completed_tasks)
        if told.tasks_completed is None
        else told.tasks_completed
    )
    values: dict[str, Value] = {
        "last_checkpoint": now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "tasks_completed": max(count, len(names)),
        "completed_tasks": names,
    }
    if told.current_task is not None:
        values["current_task"] = told.current_task
    state = _told(told, _STATE) | dict(told.more_state)
    context = _told(told, _CONTEXT) | dict(told.more_context)
    if state:
        values["state"] = {**known.state, **state}
    if context:
        values["context"] = {**known.context, **context}
    return values


def _told(told: Checkpoint, names: tuple[str, ...]) -> dict[str, Any]:
    values = {name: getattr(told, name) for name in names}
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in values.items() if value is not None
    }
