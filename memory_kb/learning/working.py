"""Ledgers of agents and handoffs between them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_kb.credentials import locate_secret, redact
from memory_kb.errors import AmbiguousId, MemoryKBError, SecretRefused, UnknownEntry, UsageError
from memory_kb.learning.new_entry import Draft, check_draft, render
from memory_kb.markdown.fields import read_text, read_words
from memory_kb.markdown.scanner import clean_item, find_items, find_sections, plain_lines, render_items
from memory_kb.markdown.splice import Value
from memory_kb.model import EVERYTHING, LIVE_STATUSES, RunReport, make_place
from memory_kb.store.bodies import whole_text
from memory_kb.store.plan import Change, Memory, create_file, plan_fields

if TYPE_CHECKING:
    from memory_kb.index.vault_index import VaultIndex
    from memory_kb.learning.entry_store import EntryStore
    from memory_kb.model import Location
    from memory_kb.store.git_command import GitState
    from memory_kb.store.plan import Change, Memory
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault


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
        """The ledger, all of its fields there."""
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
    """Return what an object tells, and complaints about what of it cannot be kept.

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


_SECTIONS = {"done": "Done", "needs_testing": "Needs testing", "known_issues": "Known issues"}
_LISTS = ("artifacts", "relevant_patterns")
_ID = re.compile(r"handoff-0*(\d{1,9})")


@dataclass(frozen=True, slots=True)
class HandoffDraft:
    """What one agent tells the next; `git_state` is what git said, or some words about it."""

    from_agent: str
    to_agent: str
    done: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    needs_testing: tuple[str, ...] = ()
    known_issues: tuple[str, ...] = ()
    relevant_patterns: tuple[str, ...] = ()
    git_state: dict[str, Any] | str | None = None


@dataclass(frozen=True, slots=True)
class Handoff:
    """A handoff as it is shown."""

    id: str
    from_agent: str | None
    to_agent: str | None
    timestamp: str | None
    done: tuple[str, ...]
    artifacts: tuple[str, ...]
    git_state: Mapping[str, Any] | str | None
    needs_testing: tuple[str, ...]
    known_issues: tuple[str, ...]
    relevant_patterns: tuple[str, ...]
    status: str
    scope: str
    path: str
    line: int

    @property
    def number(self) -> int:
        """The number in its id, -1 where it has none."""
        found = _ID.fullmatch(self.id)
        return int(found[1]) if found else -1

    @property
    def as_mapping(self) -> dict[str, Any]:
        """The handoff."""
        return {
            "id": self.id,
            "from_agent": self.from_agent,
            "to_agent": self.to_agent,
            "timestamp": self.timestamp,
            "context": {
                "what_was_done": "\n".join(self.done),
                "artifacts": list(self.artifacts),
                "git_state": dict(self.git_state) if isinstance(self.git_state, Mapping) else self.git_state,
                "needs_testing": list(self.needs_testing),
                "known_issues": list(self.known_issues),
                "relevant_patterns": list(self.relevant_patterns),
            },
        }


@dataclass(frozen=True, slots=True)
class HandedOff:
    """A handoff that was made, and what was written for it.

    Attributes:
        action: `created`, or `known` where the last one says the same.
        notices: what the next agent will not find.
    """

    handoff: Handoff
    action: str
    run: RunReport
    notices: tuple[str, ...] = ()


def check_handoff(draft: HandoffDraft) -> HandoffDraft:
    """Return a draft whose names stand on one line each, without what is empty.

    Raises:
        UsageError: it does not say from whom or to whom.
        SecretRefused: it holds what looks like a credential.
    """
    names = tuple(read_text(name) for name in (draft.from_agent, draft.to_agent))
    if None in names:
        raise UsageError(
            "a handoff is from an agent to an agent",
            "try: memory-kb handoff create --from planner --to coder --done 'Wrote the plan.'",
        )
    lists: dict[str, Any] = {name: _filled(getattr(draft, name)) for name in _SECTIONS} | {
        name: _listed(list(getattr(draft, name))) for name in _LISTS
    }
    kept = replace(draft, from_agent=names[0] or "", to_agent=names[1] or "", **lists)
    check_draft(Draft("\n".join((render_handoff(kept), *kept.artifacts, *kept.relevant_patterns)), "handoff"))
    secret = locate_secret(kept.git_state) if isinstance(kept.git_state, str) else None
    if secret:
        raise SecretRefused(secret.described)
    return kept


def _filled(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(clean_item(item) for item in items if item.strip()))


def _listed(value: object) -> tuple[str, ...]:
    """Return the texts of a list, each on one line and once."""
    items = value if isinstance(value, list) else [value]
    return tuple(dict.fromkeys(text for item in items if (text := read_text(item))))


def describe_git(state: GitState | None) -> dict[str, Any] | None:
    """Return what git said as a handoff holds it; a subject is kept without credentials."""
    if state is None:
        return None
    told = {
        "branch": state.branch,
        "last_commit": state.commit,
        "subject": redact(state.subject).text if state.subject else None,
        "dirty_files": list(state.dirty_files),
        "dirty_count": state.dirty_count if state.dirty_count > len(state.dirty_files) else None,
    }
    return {name: value for name, value in told.items() if value is not None}


def render_handoff(draft: HandoffDraft) -> str:
    """Return the body of a handoff, with those sections that say something.

    Example:
        >>> print(render_handoff(HandoffDraft("planner", "coder", ("Wrote the plan.",), known_issues=("The clock is wrong.",))))
        # Handoff: planner to coder
        <BLANKLINE>
        ## Done
        <BLANKLINE>
        - Wrote the plan.
        <BLANKLINE>
        ## Known issues
        <BLANKLINE>
        - The clock is wrong.
    """
    blocks = [f"# Handoff: {draft.from_agent} to {draft.to_agent}"]
    for name, heading in _SECTIONS.items():
        items = getattr(draft, name)
        if items:
            blocks += [f"## {heading}", render_items(items)]
    return "\n\n".join(blocks)


def read_handoff(memory: Memory) -> Handoff:
    """Return an entry of kind handoff as it is shown, however it was written.

    Example:
        >>> from memory_kb.model import Location
        >>> read_handoff(Memory("handoff-002", "h.md", "", Location(), "T", "## Done\\n\\nAll of it.\\n\\n## Known Issues\\n* None.")).known_issues
        ('None.',)
    """
    parts = _read_sections(memory.text)
    state = memory.metadata.get("git_state")
    return Handoff(
        id=memory.id,
        from_agent=memory.word("from_agent"),
        to_agent=memory.word("to_agent"),
        timestamp=memory.created_at,
        done=parts["done"],
        artifacts=_listed(memory.metadata.get("artifacts")),
        git_state=state if isinstance(state, Mapping) else read_text(state),
        needs_testing=parts["needs_testing"],
        known_issues=parts["known_issues"],
        relevant_patterns=_listed(memory.metadata.get("relevant_patterns")),
        status=memory.status,
        scope=memory.place.scope,
        path=memory.path,
        line=memory.line,
    )


def _read_sections(body: str) -> dict[str, tuple[str, ...]]:
    text = plain_lines(body)
    names = {heading.lower(): name for name, heading in _SECTIONS.items()}
    parts: dict[str, tuple[str, ...]] = dict.fromkeys(_SECTIONS, ())
    for section in find_sections(text):
        name = names.get(section.heading.lower().rstrip(":"))
        if name and not parts[name]:
            items = tuple(item.text for item in find_items(text, section.content))
            prose = text[section.content.start : section.content.end].split("\n\n")
            parts[name] = items or tuple(" ".join(block.split()) for block in prose if block.strip())
    return parts


def plan_handoff(draft: HandoffDraft, entry_id: str, path: str, now: datetime) -> Change:
    """Plan the file of a new handoff."""
    fields: dict[str, Value] = {"from_agent": draft.from_agent, "to_agent": draft.to_agent}
    if draft.git_state:
        fields["git_state"] = draft.git_state
    fields |= {name: list(value) for name in _LISTS if (value := getattr(draft, name))}
    kept = Draft(render_handoff(draft), "handoff", fields=tuple(fields.items()))
    return create_file(
        path, render(kept, entry_id, now), f"{draft.from_agent} hands over to {draft.to_agent}.", entry_id
    )


def next_id(handoffs: Iterable[Handoff], taken: Iterable[str] = ()) -> str:
    """Return the id of the next handoff of a scope; the number of one that was is not used again.

    Example:
        >>> next_id([]), next_id([], ["handoff-009", "handoff-1200"])
        ('handoff-001', 'handoff-1201')
    """
    names = (*(handoff.id for handoff in handoffs), *taken)
    numbers = [int(found[1]) for name in names if (found := _ID.fullmatch(name))]
    return f"handoff-{max(numbers, default=0) + 1:03d}"


def says_the_same(handoff: Handoff, draft: HandoffDraft) -> bool:
    """Tell whether a handoff says what a draft does, so that it need not be made again."""
    mine = (
        draft.from_agent,
        draft.to_agent,
        draft.done,
        draft.artifacts,
        draft.needs_testing,
        draft.known_issues,
        draft.relevant_patterns,
    )
    theirs = (
        *(handoff.from_agent, handoff.to_agent, handoff.done, handoff.artifacts),
        *(handoff.needs_testing, handoff.known_issues, handoff.relevant_patterns),
    )
    return mine == theirs and (draft.git_state or None) == (handoff.git_state or None)


def newest_first(handoffs: Iterable[Handoff]) -> tuple[Handoff, ...]:
    """Return handoffs newest first, by their time and then their number."""
    return tuple(sorted(handoffs, key=lambda one: (one.timestamp or "", one.number, one.path), reverse=True))


def find_handoff(handoffs: Sequence[Handoff], wanted: str) -> Handoff:
    """Return the handoff of an id, or of its number alone.

    Numbers are of one scope; where several scopes have the same, the project's is meant.

    Raises:
        UnknownEntry: there is none.
        AmbiguousId: there are several.
    """
    number = int(wanted) if wanted.isascii() and wanted.isdigit() and len(wanted) < 10 else None
    found = [one for one in handoffs if one.id == wanted or (number is not None and one.number == number)]
    found = [one for one in found if one.status in LIVE_STATUSES] or found
    own = [one for one in found if one.scope == "project"]
    if len(found) > 1 and len(own) != 1:
        raise AmbiguousId(wanted, [f"{one.path}:{one.line}" for one in found])
    if not found:
        raise UnknownEntry(wanted, "handoff")
    return own[0] if len(found) > 1 else found[0]


class Ledgers:
    """Where each agent stands."""

    def __init__(self, vault: Vault, writer: Writer, store: EntryStore) -> None:
        self._vault = vault
        self._writer = writer
        self._store = store

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
        told: Mapping[str, Any] | None = None,
        git: bool = True,
        repository: str | os.PathLike[str] | None = None,
        job: str | None = None,
        task_id: str | None = None,
        dry_run: bool = False,
    ) -> Checkpointed:
        """Write down where an agent stands; what is not told stays as it was.

        Args:
            agent: whose ledger it is.
            task: what it works on; an empty text for nothing.
            goal: what it is after.
            completed: tasks that are done; each counts once.
            tasks_completed: how many tasks are done, where only the number is known.
            files: the files it modified.
            uncommitted: whether there are changes that are not committed.
            commit: the last commit.
            tech: what it works with.
            patterns: ids of what it learned.
            told: all of that as an object.
            git: ask git for the last commit and for changes, where they are not told.
            repository: the folder to ask about; the vault's own when not given.
            job: the job it belongs to.
            task_id: the task of that job.
            dry_run: write nothing; the run tells what would be.

        Raises:
            UsageError: no agent is named.
            SecretRefused: what is told holds what looks like a credential.
        """
        place = _place_of(self._vault, job, task_id)
        given, notices = read_checkpoint(told) if told is not None else (Checkpoint(), ())
        name = check_agent(agent or str((told or {}).get("agent_id") or ""))
        lists = {"files_modified": files, "tech_stack": tech, "patterns_learned": patterns}
        said: dict[str, Any] = {"current_task": task, "current_goal": goal, "tasks_completed": tasks_completed}
        said |= {"uncommitted_changes": uncommitted, "last_git_commit": commit}
        said |= {field: None if value is None else tuple(value) for field, value in lists.items()}
        checkpoint = replace(
            given,
            completed=(*given.completed, *completed),
            **{field: value for field, value in said.items() if value is not None},
        )
        if git and (checkpoint.uncommitted_changes is None or checkpoint.last_git_commit is None):
            checkpoint = _with_git(checkpoint, _git_state_of(self._vault, repository))
        return replace(self._checkpoint(name, checkpoint, place, dry_run=dry_run), notices=notices)

    def show(self, agent: str, job: str | None = None, task_id: str | None = None) -> Ledger:
        """Return the ledger of an agent; without a job the one nearest to the project.

        Raises:
            UnknownEntry: it has none.
        """
        found = [ledger for ledger in self.list(job, task_id) if agent in (ledger.agent_id, ledger.id)]
        if not found:
            raise UnknownEntry(agent, "ledger of")
        return min(found, key=lambda ledger: (ledger.scope != "project", ledger.path))

    def list(self, job: str | None = None, task_id: str | None = None) -> tuple[Ledger, ...]:
        """Return the ledgers of all agents, by their names; with a job, those of that job."""
        place = _place_of(self._vault, job, task_id)
        ledgers = (
            read_ledger(memory)
            for memory in _entries_of(self._writer, self._store, "ledger")
            if memory.is_live and _is_at(memory, place)
        )
        return tuple(sorted(ledgers, key=lambda ledger: (ledger.agent_id, ledger.path)))

    def _checkpoint(self, agent: str, told: Checkpoint, place: Location, *, dry_run: bool) -> Checkpointed:
        from memory_kb.learning.skills import make_slug

        now = self._vault.clock()

        def find(memories: Sequence[Memory]) -> Memory | None:
            here = (one for one in memories if one.kind == "ledger" and one.is_live and one.place[:3] == place[:3])
            return next((one for one in here if read_ledger(one).agent_id == agent), None)

        def plan(memories: Sequence[Memory]) -> tuple[Change, ...]:
            ledger = find(memories)
            change = plan_checkpoint(ledger, told, now) if ledger else None
            return (change,) if change else ()

        with nullcontext() if dry_run else self._writer.lock():
            memories = _entries_of(self._writer, self._store, "ledger")
            known = find(memories)
            if known:
                run = self._store.carry_out("ledger set", plan, plan(memories), dry_run=dry_run)
                action = "updated" if run.changes or run.conflicts else "unchanged"
                return Checkpointed(apply_checkpoint(read_ledger(known), told, now), action, run)
            slug, folder = make_slug(agent), self._vault.folder_of(place)
            names = (slug if number == 1 else f"{slug}-{number}" for number in range(1, 1_000_000))
            taken = {one.id for one in memories if one.place[:3] == place[:3]}
            name = next(
                name
                for name in names
                if f"ledger-{name}" not in taken and not self._vault.resolve(f"{folder}ledgers/{name}.md").exists()
            )
            entry_id, path = f"ledger-{name}", f"{folder}ledgers/{name}.md"
            change = plan_new_ledger(agent, entry_id, path, told, now)
            run = self._writer.run("ledger set", [change], dry_run=dry_run)
        return Checkpointed(
            apply_checkpoint(blank_ledger(agent, entry_id, path, place.scope), told, now), "created", run
        )


class Handoffs:
    """What one agent leaves to the next."""

    def __init__(self, vault: Vault, index: VaultIndex, writer: Writer, store: EntryStore) -> None:
        self._vault = vault
        self._index = index
        self._writer = writer
        self._store = store

    def create(
        self,
        from_agent: str,
        to_agent: str,
        *,
        done: Sequence[str] = (),
        artifacts: Sequence[str] = (),
        needs_testing: Sequence[str] = (),
        known_issues: Sequence[str] = (),
        patterns: Sequence[str] = (),
        git_state: str | None = None,
        git: bool = True,
        repository: str | os.PathLike[str] | None = None,
        job: str | None = None,
        task_id: str | None = None,
        dry_run: bool = False,
    ) -> HandedOff:
        """Leave word for the next agent; its number is the next free one of the scope.

        One that says what the last one says is that one.

        Args:
            from_agent: who goes.
            to_agent: who comes.
            done: what was done.
            artifacts: files and other things that were made.
            needs_testing: what nobody has tried yet.
            known_issues: what is known to be wrong.
            patterns: ids of entries that matter now; a beginning of one will do.
            git_state: what to say of the repository, in place of what git says.
            git: ask git.
            repository: the folder to ask about; the vault's own when not given.
            job: the job it belongs to.
            task_id: the task of that job.
            dry_run: write nothing; the run tells what would be.

        Raises:
            UsageError: an agent has no name.
            SecretRefused: it holds what looks like a credential.
        """
        place = _place_of(self._vault, job, task_id)
        ids, notices = self._resolve_patterns(patterns)
        state = git_state or (describe_git(_git_state_of(self._vault, repository)) if git else None)
        draft = HandoffDraft(
            from_agent, to_agent, tuple(done), tuple(artifacts), tuple(needs_testing), tuple(known_issues), ids, state
        )
        return replace(self._hand_off(check_handoff(draft), place, dry_run=dry_run), notices=notices)

    def show(self, wanted: str, job: str | None = None, task_id: str | None = None) -> Handoff:
        """Return a handoff by its id or its number.

        Raises:
            UnknownEntry: there is none.
            AmbiguousId: several jobs have one of that number.
        """
        return find_handoff(self._handoffs(job, task_id), wanted)

    def latest(self, to: str | None = None, job: str | None = None, task_id: str | None = None) -> Handoff | None:
        """Return the newest handoff, or the newest to an agent; None where there is none."""
        return next(iter(self.list(to, job, task_id)), None)

    def list(self, to: str | None = None, job: str | None = None, task_id: str | None = None) -> tuple[Handoff, ...]:
        """Return the handoffs, newest first; with a job those of that job."""
        from memory_kb.model import LIVE_STATUSES

        found = self._handoffs(job, task_id)
        return newest_first(one for one in found if one.status in LIVE_STATUSES and (to is None or one.to_agent == to))

    def _handoffs(self, job: str | None, task_id: str | None) -> Sequence[Handoff]:

        place = _place_of(self._vault, job, task_id)
        return [
            read_handoff(memory)
            for memory in _entries_of(self._writer, self._store, "handoff")
            if _is_at(memory, place)
        ]

    def _hand_off(self, draft: HandoffDraft, place: Location, *, dry_run: bool) -> HandedOff:
        from memory_kb.model import RunReport
        from memory_kb.store.events import format_time

        with nullcontext() if dry_run else self._writer.lock():
            here = [
                read_handoff(one)
                for one in _entries_of(self._writer, self._store, "handoff")
                if one.place[:3] == place[:3]
            ]
            last = next(iter(newest_first(here)), None)
            if last and last.status == "active" and says_the_same(last, draft):
                return HandedOff(last, "known", RunReport(None, "handoff create"))
            folder = self._vault.resolve(f"{self._vault.folder_of(place)}handoffs")
            files = [file.stem for file in folder.glob("handoff-*.md")] if folder.is_dir() else []
            entry_id = next_id(here, files)
            path = f"{self._vault.folder_of(place)}handoffs/{entry_id}.md"
            now = self._vault.clock()
            run = self._writer.run("handoff create", [plan_handoff(draft, entry_id, path, now)], dry_run=dry_run)
        made = Handoff(
            id=entry_id,
            timestamp=f"{format_time(now)[:19]}Z",
            status="active",
            scope=place.scope,
            path=path,
            line=1,
            **{name: getattr(draft, name) for name in _TOLD},
        )
        return HandedOff(made, "created", run)

    def _resolve_patterns(self, wanted: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the ids of some entries; one that is not there stays as it is told, and is complained of."""
        from memory_kb.index import listing as inventory

        ids: list[str] = []
        wrong: list[str] = []
        for name in wanted:
            try:
                ids.append(self._index.read(lambda index, name=name: inventory.find(self._vault, index, name).entry_id))  # type: ignore[misc]
            except MemoryKBError as exc:
                ids.append(name)
                wrong.append(f"{exc}; it is named all the same")
        return tuple(ids), tuple(wrong)


_TOLD = (
    "from_agent",
    "to_agent",
    "done",
    "artifacts",
    "git_state",
    "needs_testing",
    "known_issues",
    "relevant_patterns",
)


def _is_at(memory: Memory, place: Location) -> bool:
    """Tell whether an entry belongs to a job or task; without one all do."""
    return (place.job is None or memory.place.job == place.job) and (
        place.task is None or memory.place.task == place.task
    )


def _with_git(checkpoint: Checkpoint, state: GitState | None) -> Checkpoint:
    """Return what is told of a repository, and what git says where nothing is told."""
    if state is None:
        return checkpoint
    dirty, commit = checkpoint.uncommitted_changes, checkpoint.last_git_commit
    return replace(
        checkpoint,
        uncommitted_changes=state.dirty_count > 0 if dirty is None else dirty,
        last_git_commit=state.commit if commit is None else commit,
    )


def _entries_of(writer: Writer, store: EntryStore, kind: str) -> tuple[Memory, ...]:
    return tuple(
        replace(memory, text=whole_text(writer, memory)) for memory in store.all(EVERYTHING._replace(kinds=(kind,)))
    )


def _place_of(vault: Vault, job: str | None, task: str | None) -> Location:
    place = make_place("project", job, task)
    if place.job and not vault.memory:
        raise UsageError(f"{vault.folder} is a plain folder and has no jobs", "`memory-kb init` makes a vault that has")
    return place


def _git_state_of(vault: Vault, repository: str | os.PathLike[str] | None) -> GitState | None:
    from memory_kb.store.git_command import read_git_state

    if repository is not None:
        return read_git_state(Path(repository).expanduser(), os.environ)
    own = ("memory",) if vault.memory else ("ledgers", "handoffs")
    return read_git_state(vault.folder, os.environ, own)
