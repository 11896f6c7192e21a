"""The verbs of ledgers: the state of each agent's work, updated at every checkpoint."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from memory_kb.credentials import texts_of
from memory_kb.errors import UnknownEntry, UsageError
from memory_kb.learning.render_entry import Draft, refuse_secrets, render_new_entry
from memory_kb.markdown.splice import Value
from memory_kb.memory import Memory
from memory_kb.model import Location
from memory_kb.reports import RunReport
from memory_kb.store.changes import Change, create_file, plan_fields
from memory_kb.store.git_command import GitState, read_git_state
from memory_kb.text import as_text, first_free, make_slug, moment_text, read_words

if TYPE_CHECKING:
    from memory_kb.learning.memories import Memories
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault

#: The fields of a ledger as an object, with their types.
_TYPES: Mapping[str, type] = {
    "agent_id": str,
    "last_checkpoint": str,
    "tasks_completed": int,
    "completed_tasks": list,
    "current_task": str,
    "state": dict,
    "context": dict,
}
_STATE: Mapping[str, Any] = {"files_modified": [], "uncommitted_changes": None, "last_git_commit": None}
_CONTEXT: Mapping[str, Any] = {"tech_stack": [], "patterns_learned": [], "current_goal": None}


class Ledger(NamedTuple):
    """What is known of an agent's work; `state` and `context` keep what others wrote there."""

    id: str
    agent_id: str
    last_checkpoint: str | None = None
    tasks_completed: int = 0
    completed_tasks: tuple[str, ...] = ()
    current_task: str | None = None
    state: Mapping[str, Any] = {}
    context: Mapping[str, Any] = {}
    scope: str = "project"
    path: str = ""
    line: int = 1

    @property
    def as_mapping(self) -> dict[str, Any]:
        """The ledger as JSON output shows it, with all of its fields."""
        names = ("agent_id", "last_checkpoint", "tasks_completed", "current_task")
        parts = {"state": {**_STATE, **self.state}, "context": {**_CONTEXT, **self.context}}
        return {name: getattr(self, name) for name in names} | parts


class LedgerReport(NamedTuple):
    """A ledger after a checkpoint; `action` is created, updated or unchanged, `notices` say what could not be stored."""

    ledger: Ledger
    action: str
    run: RunReport
    notices: tuple[str, ...] = ()


def read_ledger(memory: Memory) -> Ledger:
    """Return an entry of kind ledger as a `Ledger`, with defaults for fields that cannot be used."""
    names = memory.words("completed_tasks")
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


def read_values(values: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the fields of a ledger that an object holds, and complaints about what of it cannot be stored."""
    wrong = [f"{name} is no field of a ledger" for name in values if name not in _TYPES]
    given = {name: values[name] for name in _TYPES if values.get(name) is not None}
    for name, held in list(given.items()):
        if not isinstance(held, _TYPES[name]) or isinstance(held, bool) or (isinstance(held, int) and held < 0):
            wrong.append(f"{name} cannot be {str(held)[:60]!r}")
            del given[name]
    return given, tuple(wrong)


def apply_checkpoint(known: Ledger, given: Mapping[str, Any], now: datetime) -> Ledger:
    """Return a ledger as it is after a checkpoint; what is not given stays as it was."""
    names = tuple(dict.fromkeys((*known.completed_tasks, *given.get("completed_tasks", ()))))
    count = given.get("tasks_completed", known.tasks_completed + len(names) - len(known.completed_tasks))
    return known._replace(
        last_checkpoint=moment_text(now),
        tasks_completed=max(count, len(names)),
        completed_tasks=names,
        current_task=given.get("current_task", known.current_task) or None,
        state={**known.state, **given.get("state", {})},
        context={**known.context, **given.get("context", {})},
    )


def _changed_fields(ledger: Ledger, given: Mapping[str, Any]) -> dict[str, Value]:
    """Return the frontmatter that a checkpoint sets."""
    changed = {name for name, value in given.items() if value not in ([], {})} - {"agent_id"}
    changed |= {"last_checkpoint", "tasks_completed"}
    values = _without_none(**{name: getattr(ledger, name) for name in _TYPES if name in changed})
    return {name: values.get(name, "") for name in _TYPES if name in changed}


@dataclass(frozen=True)
class Ledgers:
    """The verbs of `ledger`."""

    _vault: Vault
    _writer: Writer
    _memories: Memories

    def set(
        self,
        agent: str | None = None,
        *,
        task: str | None = None,
        goal: str | None = None,
        completed: Sequence[str] = (),
        tasks_completed: int | None = None,
        files: Sequence[str] | None = None,
        uncommitted: bool | None = None,
        commit: str | None = None,
        tech: Sequence[str] | None = None,
        patterns: Sequence[str] | None = None,
        values: Mapping[str, Any] | None = None,
        git: bool = True,
        repository: str | os.PathLike[str] | None = None,
        job: str | None = None,
        task_id: str | None = None,
        dry_run: bool = False,
    ) -> LedgerReport:
        """Record the state of an agent's work; what is not given keeps its value.

        An empty `task` means that it works on nothing. `values` holds any of it as one object. Git is asked
        for what is not given of `uncommitted` and `commit`.
        """
        place = self._vault.place_for("project", job, task_id)
        given, notices = read_values(values or {})
        name = as_text(agent or given.get("agent_id"))
        if name is None:
            raise UsageError("no agent is named", "name it as in: memory-kb ledger set eng-001 --task T-42")
        state = _without_none(files_modified=files, uncommitted_changes=uncommitted, last_git_commit=commit)
        context = _without_none(current_goal=goal, tech_stack=tech, patterns_learned=patterns)
        given["state"] = (self._ask_git(repository) if git else {}) | given.get("state", {}) | state
        given["context"] = given.get("context", {}) | context
        given |= _without_none(current_task=task, tasks_completed=tasks_completed)
        given["completed_tasks"] = [*read_words(given.get("completed_tasks")), *completed]
        if "current_task" in given:
            given["current_task"] = " ".join(given["current_task"].split())
        refuse_secrets("\n".join(texts_of(given)), allow=self._vault.allows_secrets)
        with self._writer.lock(dry_run=dry_run):
            return self._checkpoint(name, given, place, dry_run=dry_run)._replace(notices=notices)

    def _ask_git(self, repository: str | os.PathLike[str] | None) -> dict[str, Any]:
        found = git_state_of(self._vault, repository)
        return _without_none(uncommitted_changes=found.dirty_count > 0, last_git_commit=found.commit) if found else {}

    def show(self, agent: str, job: str | None = None, task_id: str | None = None) -> Ledger:
        """Return the ledger of an agent; without a job the one nearest to the project."""
        found = [ledger for ledger in self.list(job, task_id) if agent in (ledger.agent_id, ledger.id)]
        if not found:
            raise UnknownEntry(agent, "ledger of")
        return min(found, key=lambda ledger: (ledger.scope != "project", ledger.path))

    def list(self, job: str | None = None, task_id: str | None = None) -> tuple[Ledger, ...]:
        """Return the ledgers of all agents, by their names; with a job, those of that job."""
        place = self._vault.place_for("project", job, task_id)
        found = [read_ledger(one) for one in self._memories.of_kinds("ledger") if one.is_live and is_at(one, place)]
        return tuple(sorted(found, key=lambda ledger: (ledger.agent_id, ledger.path)))

    def _checkpoint(self, agent: str, given: Mapping[str, Any], place: Location, *, dry_run: bool) -> LedgerReport:
        now = self._vault.clock()

        def plan(memory: Memory) -> Change | None:
            if not memory.is_live:
                return None
            ledger = apply_checkpoint(read_ledger(memory), given, now)
            return plan_fields(memory, _changed_fields(ledger, given), "A checkpoint.")

        here = [one for one in self._memories.of_kinds("ledger") if one.place[:3] == place[:3]]
        known = next((one for one in here if one.is_live and read_ledger(one).agent_id == agent), None)
        if known:
            run = self._memories.change_entries("ledger set", [known], plan, dry_run=dry_run)
            action = "updated" if run.changes or run.conflicts else "unchanged"
            return LedgerReport(apply_checkpoint(read_ledger(known), given, now), action, run)
        taken, folder = {one.id for one in here}, f"{self._vault.folder_of(place)}ledgers/"
        name = first_free(
            make_slug(agent),
            lambda one: f"ledger-{one}" in taken or self._vault.resolve(f"{folder}{one}.md").exists(),
        )
        blank = Ledger(f"ledger-{name}", agent, scope=place.scope, path=f"{folder}{name}.md")
        ledger = apply_checkpoint(blank, given, now)
        fields = {"agent_id": agent} | _changed_fields(ledger, given)
        text = render_new_entry(Draft(f"# Ledger: {agent}", "ledger", fields=fields), ledger.id, now)
        change = create_file(ledger.path, text, "A checkpoint.", ledger.id)
        return LedgerReport(ledger, "created", self._writer.run("ledger set", [change], dry_run=dry_run))


def _without_none(**values: Any) -> dict[str, Any]:
    """Return the values that are not None, sequences as lists."""
    return {
        name: list(value) if isinstance(value, list | tuple) else value
        for name, value in values.items()
        if value is not None
    }


def is_at(memory: Memory, place: Location) -> bool:
    """Return whether an entry belongs to a job or task; without one all do."""
    return place.job in (None, memory.place.job) and place.task in (None, memory.place.task)


def git_state_of(vault: Vault, repository: str | os.PathLike[str] | None) -> GitState | None:
    """Return the state of a repository, or of the vault's own without what the vault itself writes."""
    if repository is not None:
        return read_git_state(Path(repository).expanduser(), os.environ)
    own = ("memory",) if vault.memory else ("ledgers", "handoffs")
    return read_git_state(vault.folder, os.environ, own)
