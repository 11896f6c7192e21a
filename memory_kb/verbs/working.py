"""Working memory: ledgers of agents, handoffs between them, and CONTINUITY.md."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_kb.errors import MemoryKBError, UnknownEntry, UsageError
from memory_kb.filters import EVERYTHING, make_place
from memory_kb.verbs.bodies import whole_text

if TYPE_CHECKING:
    from memory_kb.index.keeper import VaultIndex
    from memory_kb.learning.entry_store import EntryStore
    from memory_kb.learning.memories import Memory
    from memory_kb.learning.working.handoffs import HandedOff, Handoff, HandoffDraft
    from memory_kb.learning.working.ledgers import Checkpoint, Checkpointed, Ledger
    from memory_kb.model import Location
    from memory_kb.notes.gitstate import GitState
    from memory_kb.notes.plans import Change
    from memory_kb.notes.vault import Vault
    from memory_kb.notes.writer import Writer


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
        """Write down where an agent stands; what is not told stays as it was (S2-37).

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
            told: all of that as an object in the shape of S2-37.
            git: ask git for the last commit and for changes, where they are not told.
            repository: the folder to ask about; the vault's own when not given.
            job: the job it belongs to.
            task_id: the task of that job.
            dry_run: write nothing; the run tells what would be.

        Raises:
            UsageError: no agent is named.
            SecretRefused: what is told holds what looks like a credential.
        """
        from memory_kb.learning.working.ledgers import Checkpoint, check_agent, read_checkpoint

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
        from memory_kb.learning.working.ledgers import read_ledger

        place = _place_of(self._vault, job, task_id)
        ledgers = (
            read_ledger(memory)
            for memory in _entries_of(self._writer, self._store, "ledger")
            if memory.is_live and _is_at(memory, place)
        )
        return tuple(sorted(ledgers, key=lambda ledger: (ledger.agent_id, ledger.path)))

    def _checkpoint(self, agent: str, told: Checkpoint, place: Location, *, dry_run: bool) -> Checkpointed:
        from memory_kb.learning.procedures.skillplans import make_slug
        from memory_kb.learning.working.ledgers import (
            Checkpointed,
            apply_checkpoint,
            blank_ledger,
            plan_checkpoint,
            plan_new_ledger,
            read_ledger,
        )

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
        """Leave word for the next agent; its number is the next free one of the scope (S2-38).

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
        from memory_kb.learning.working.handoffs import HandoffDraft, check_handoff, describe_git

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
        from memory_kb.learning.working.handoffs import find_handoff

        return find_handoff(self._handoffs(job, task_id), wanted)

    def latest(self, to: str | None = None, job: str | None = None, task_id: str | None = None) -> Handoff | None:
        """Return the newest handoff, or the newest to an agent; None where there is none."""
        return next(iter(self.list(to, job, task_id)), None)

    def list(self, to: str | None = None, job: str | None = None, task_id: str | None = None) -> tuple[Handoff, ...]:
        """Return the handoffs, newest first; with a job those of that job."""
        from memory_kb.learning.working.handoffs import newest_first
        from memory_kb.words import LIVE_STATUSES

        found = self._handoffs(job, task_id)
        return newest_first(one for one in found if one.status in LIVE_STATUSES and (to is None or one.to_agent == to))

    def _handoffs(self, job: str | None, task_id: str | None) -> Sequence[Handoff]:
        from memory_kb.learning.working.handoffs import read_handoff

        place = _place_of(self._vault, job, task_id)
        return [
            read_handoff(memory)
            for memory in _entries_of(self._writer, self._store, "handoff")
            if _is_at(memory, place)
        ]

    def _hand_off(self, draft: HandoffDraft, place: Location, *, dry_run: bool) -> HandedOff:
        from memory_kb.learning.working.handoffs import (
            HandedOff,
            Handoff,
            newest_first,
            next_id,
            plan_handoff,
            read_handoff,
            says_the_same,
        )
        from memory_kb.notes.events import format_time
        from memory_kb.reports import RunReport

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
        from memory_kb.index import inventory

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
    from memory_kb.notes.gitstate import read_git_state

    if repository is not None:
        return read_git_state(Path(repository).expanduser(), os.environ)
    own = ("memory",) if vault.memory else ("ledgers", "handoffs")
    return read_git_state(vault.folder, os.environ, own)
