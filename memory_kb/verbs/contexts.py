"""What an agent is given before a task."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

from memory_kb.errors import MemoryKBError, UsageError
from memory_kb.filters import make_place
from memory_kb.notes.projectfiles import project_files
from memory_kb.notes.retrievals import log_shown

if TYPE_CHECKING:
    from memory_kb.context.building import Context
    from memory_kb.context.gathering import Material, Wanted
    from memory_kb.index.keeper import VaultIndex
    from memory_kb.index.sqlite import SqliteIndex
    from memory_kb.learning.freshness.standings import Standing
    from memory_kb.learning.memories import Memory
    from memory_kb.notes.vault import Vault
    from memory_kb.notes.writer import Writer
    from memory_kb.providers.models import Models
    from memory_kb.verbs.continuing import Continuity
    from memory_kb.verbs.searching import Searching

#: Hits that compete for the sections; like a search's, they do not depend on the budgets.
_CANDIDATES = 40
#: How long git may take to find the cited files that are not where they were.
_GIT_SECONDS = 1.0
#: How long another process that writes is waited for, before CONTINUITY.md is left as it is.
_PATIENCE = 0.2


class Contexts:
    """The verb context."""

    def __init__(
        self,
        vault: Vault,
        index: VaultIndex,
        writer: Writer,
        models: Models,
        continuity: Continuity,
        searching: Searching,
    ) -> None:
        self._vault = vault
        self._index = index
        self._writer = writer
        self._models = models
        self._continuity = continuity
        self._searching = searching

    def context(
        self,
        task: str,
        *,
        labels: Sequence[str] = (),
        type: str | None = None,
        files: Sequence[str] = (),
        agent: str | None = None,
        job: str | None = None,
        task_id: str | None = None,
        session: str | None = None,
    ) -> Context:
        """Return what to put before an agent that begins a task (requirements §6.7).

        Args:
            task: what is to be done, in words.
            labels: what kind of task it is; rules are chosen by them.
            type: one more label, such as `bug`.
            files: paths of files that the task is about; those outside the project tell nothing.
            agent: who gets it, for the outcome later.
            job: the job it belongs to; siblings are hidden.
            task_id: what the task is called, for the outcome later; with a job also the task of it.
            session: the session it happens in; where it is named and there is a CONTINUITY.md, the two
                sections of that are brought up to date as well (S2-46).

        Raises:
            UsageError: there is nothing to go by, or a job or its task cannot be called so.
        """
        from memory_kb.context.freshness import build_fresh_context
        from memory_kb.context.gathering import Wanted

        if not task.strip() and not files:
            raise UsageError(
                "there is no task to give a context for", 'try: memory-kb context "fix the flaky upload test"'
            )
        place = make_place("project", job, task_id if job else None)
        located = tuple(path for file in files if (path := self._index.place_file(file)))
        if files and not located and not task.strip():
            raise UsageError(
                "the files are outside the project, and there is no task", "say in words what is to be done"
            )
        wanted = Wanted(task.strip(), tuple(word for word in (*labels, type) if word), located, place)
        material, degraded = self.gather(wanted)
        today = self._vault.clock().date()
        counter = self._models.counter
        context = build_fresh_context(
            material, wanted.labels, today, self._vault.settings.context, self._make_assessor(today), counter.count
        )
        log_shown(
            self._vault,
            "context",
            context.ids,
            query=task,
            session=session,
            agent=agent,
            task=task_id or task,
            injected=True,
        )
        unwritten = self._keep_up(task, job) if session else ()
        uncounted = (counter.notice,) if counter.notice else ()
        return replace(
            context, degraded=(*self._index.take_notices(), *degraded, *context.degraded, *uncounted, *unwritten)
        )

    def _keep_up(self, task: str, job: str | None) -> tuple[str, ...]:
        """Bring CONTINUITY.md up to date where there is one; return why it was not. Nobody waits for it.

        A plain folder of notes is only read.
        """
        if not self._vault.memory or not task.strip():
            return ()
        path, note = self._continuity.read(job)
        if note is None:
            return ()
        try:
            with self._writer.lock(patience=_PATIENCE):
                run = self._continuity.refresh(task, job=job, only_if_there=True).run
        except (MemoryKBError, OSError) as exc:
            return (f"{path} was left as it is: {exc}",)
        return tuple(f"{path} was left as it is: {conflict.message}" for conflict in run.conflicts)

    def _make_assessor(self, today: date) -> Callable[[Memory], Standing]:
        """Return what tells how an entry stands; the project is looked at when the first one asks."""
        project = functools.cache(functools.partial(project_files, self._vault))

        def assess_one(memory: Memory) -> Standing:
            from memory_kb.learning.freshness.claims import assess

            return assess(memory, project(_GIT_SECONDS), today, with_commits=False)

        return assess_one

    def gather(self, wanted: Wanted) -> tuple[Material, tuple[str, ...]]:
        """Return what the sections of a context are made of, and what was missing."""
        return self._index.use(lambda index: self._gather(index, wanted))

    def _gather(self, index: SqliteIndex, wanted: Wanted) -> tuple[Material, tuple[str, ...]]:
        """Read from the index what the sections of a context are made of."""
        from memory_kb.context.gathering import Gathering
        from memory_kb.index.shortfalls import tell_faults
        from memory_kb.model import Filters
        from memory_kb.retrieval.finding import Request

        _, degraded = self._index.refresh()
        request, unnamed = self._searching.construct(
            Request(" ".join((wanted.task, *wanted.labels)), limit=_CANDIDATES, by_entry=True)
        )
        question, reasons = self._searching.ask(index, request)
        with index.snapshot():
            faults = tell_faults(index.faults(Filters(job=wanted.place.job, task=wanted.place.task)))
            material = Gathering(
                index, wanted, request, self._vault.settings.ranking, self._vault.clock().date(), question
            ).read()
        return material, (*degraded, *unnamed, *reasons, *faults)
