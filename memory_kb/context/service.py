"""The verb context: what to put before an agent that begins a task."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memory_kb.context.entry_lines import ClaimChecks
from memory_kb.context.material import ContextTask, gather_material
from memory_kb.context.sections import Context, ContextBuilder
from memory_kb.errors import UsageError
from memory_kb.model import Hit, make_place
from memory_kb.search.candidates import Request
from memory_kb.store.logs import log_shown

if TYPE_CHECKING:
    from memory_kb.index.vault_index import VaultIndex
    from memory_kb.providers.models import Models
    from memory_kb.search.service import Searching
    from memory_kb.vault import Vault
    from memory_kb.working.continuity import Continuity

#: What an agent remembers by itself: so many of its notes at most.
_MOST_OF_AGENTS = 3
#: How long git may take to find the cited files that are not where they were.
_GIT_SECONDS = 1.0


@dataclass(frozen=True)
class Contexts:
    """The verb context."""

    _vault: Vault
    _index: VaultIndex
    _models: Models
    _continuity: Continuity
    _searching: Searching

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
        without: Collection[str] = (),
    ) -> Context:
        """Return what to put before an agent that begins a task.

        Args:
            labels: what kind of task it is; rules are chosen by them.
            type: one more label, such as `bug`.
            agent: who gets it, for the outcome later.
            task_id: what the task is called, for the outcome later; with a job also the task of it.
            session: the session it happens in; where it is named and there is a CONTINUITY.md, the two
                sections of that are brought up to date as well.
            without: ids of entries that the agent has before it already.

        Raises:
            UsageError: there is nothing to go by, or a job or its task cannot be called so.
        """
        place = make_place("project", job, task_id if job else None)
        wanted = ContextTask(task.strip(), tuple(filter(None, (*labels, type))), self._locate(task, files), place)
        context = self._build(wanted, without)
        named = task_id or task
        log_shown(
            self._vault, "context", context.ids, query=task, session=session, agent=agent, task=named, injected=True
        )
        unwritten = self._continuity.keep_up(task, job) if session else ()
        return context._replace(degraded=(*context.degraded, *unwritten))

    def _build(self, wanted: ContextTask, without: Collection[str]) -> Context:
        """Return the context of a task, without some entries; `degraded` says what it lacks."""
        today, counter = self._vault.clock().date(), self._models.counter
        claims = ClaimChecks(self._vault, _GIT_SECONDS)
        material, degraded = gather_material(
            self._vault, self._index, self._searching, wanted, lambda one: one.id not in without and claims.is_kept(one)
        )
        settings, agent_hits = self._vault.settings.context, self._search_agent_memory(wanted.task)
        context = ContextBuilder(
            material=material,
            labels=wanted.labels,
            today=today,
            settings=settings,
            claims=claims,
            agent_hits=agent_hits,
            count=counter.count,
        ).build()
        notices = (*self._index.take_notices(), *degraded, *context.oversize, *claims.say_withheld())
        return context._replace(
            degraded=(*notices, counter.notice) if counter.notice else notices,
            stale=tuple(entry_id for entry_id in context.ids if entry_id in claims.stale),
        )

    def _locate(self, task: str, files: Sequence[str]) -> tuple[str, ...]:
        """Return the paths of files relative to the project; raise UsageError without a file and a task."""
        located = tuple(path for file in files if (path := self._index.place_file(file)))
        if task.strip() or located:
            return located
        if files:
            hint = "say in words what is to be done"
            raise UsageError("the files are outside the project, and there is no task", hint)
        raise UsageError("there is no task to give a context for", 'try: memory-kb context "fix the flaky upload test"')

    def _search_agent_memory(self, task: str) -> tuple[Hit, ...]:
        """Return hits in agents' own memories about a task, in files that the agent does not give its model anyway."""
        from memory_kb.search.agent_memory import bears_on

        hits = self._searching.search_agent_memory(Request(task, is_task=True), only_ungiven=True) if task else ()
        return tuple(hit for hit in hits if bears_on(task, hit, self._vault.settings.context.floor))[:_MOST_OF_AGENTS]
