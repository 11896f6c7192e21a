"""The services of a vault, one for each family of verbs: how each is made, and of what.

Each is made when it is first used, and its module is loaded then, so that a command loads only what it uses. A service
that needs another one only at times is given a function that returns it, such as `lambda: self.writer`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Self, TypeVar

from memory_kb.store.open_vault import reopen_vault

if TYPE_CHECKING:
    import threading

    from memory_kb.agents.bridge import Bridge
    from memory_kb.agents.hooks import Hooks
    from memory_kb.agents.install import Agents
    from memory_kb.context.service import Contexts
    from memory_kb.editing.editor_actions import EditorActions
    from memory_kb.editing.examination import Examination
    from memory_kb.editing.source import Editing
    from memory_kb.episodes.service import Diary, Episodes
    from memory_kb.episodes.trace import Traces
    from memory_kb.git.evaluation import Evaluation
    from memory_kb.git.service import Git
    from memory_kb.importers.service import Imports
    from memory_kb.index.indexing import Indexing
    from memory_kb.index.listing import Listing
    from memory_kb.index.vault_index import VaultIndex
    from memory_kb.index.watch import Watching
    from memory_kb.learning.capture import Captures
    from memory_kb.learning.citations import Citations
    from memory_kb.learning.compaction import Compactor
    from memory_kb.learning.entry_verbs import EntryVerbs
    from memory_kb.learning.exposure import Exposures
    from memory_kb.learning.extraction import Extraction
    from memory_kb.learning.lifecycle import Lifecycle
    from memory_kb.learning.memories import Memories
    from memory_kb.learning.outcomes import Outcomes
    from memory_kb.learning.review import Review
    from memory_kb.learning.rules import Rules
    from memory_kb.learning.stages import Stages
    from memory_kb.learning.task_files import TaskFiles
    from memory_kb.learning.trust import AgentLearnings, RuleGate
    from memory_kb.model import Problem
    from memory_kb.providers.models import Models
    from memory_kb.reports import StepReport
    from memory_kb.search.service import Searching
    from memory_kb.sessions.maintenance import EndedSession, Maintenance
    from memory_kb.sessions.service import Sessions
    from memory_kb.skills.service import Skills
    from memory_kb.store.undo import Undo
    from memory_kb.store.writer import Writer
    from memory_kb.vault import Vault
    from memory_kb.web_queries import WebQueries
    from memory_kb.working.continuity import Continuity
    from memory_kb.working.handoffs import Handoffs
    from memory_kb.working.ledgers import Ledgers

_T = TypeVar("_T")

#: Seconds that indexing may take while an agent waits for a hook.
_HOOK_INDEX_SECONDS = 0.4


def delegate(read: Callable[[Services], _T]) -> cached_property[_T]:
    """Return an attribute with the value that `read` gets from a service, which is made when that is first needed."""
    return cached_property(read)


def _without_model(vault: Vault) -> Vault:
    llm = vault.settings.llm._replace(provider="none")
    return vault._replace(settings=vault.settings._replace(llm=llm))


class Services:
    """The services of one vault; those that are `given` by their names take the place of the usual ones.

    A hook and the end of a session have services of their own over the same vault, with another index or writer.
    """

    def __init__(self, vault: Vault, **given: VaultIndex | Writer | Models | Memories | Traces) -> None:
        self.vault = vault
        self.__dict__.update(given)

    def reopen(self) -> Self:
        """Open the vault once more, as it is now: moved, or with other settings."""
        return type(self)(reopen_vault(self.vault))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the indexes; they are opened again when they are used again."""
        for name in {"index", "searching", "_for_hooks"} & self.__dict__.keys():
            getattr(self, name).close()

    # Services over another vault, index or writer.

    def _finish_session(self, ended: EndedSession) -> tuple[StepReport, ...]:
        """Do what follows a session, with services whose runs are part of its end."""
        from memory_kb.episodes.trace import Traces
        from memory_kb.learning.memories import Memories
        from memory_kb.sessions.maintenance import SessionEnd

        writer = self.writer.during(f"session {ended.session}")
        own = Services(
            self.vault,
            index=self.index,
            writer=writer,
            models=self.models,
            memories=Memories(self.vault, self.index, writer, self.memories.cache),
            traces=Traces(self.sessions.files, ended.unwritten_end),
        )
        return SessionEnd(
            ended=ended,
            vault=own.vault,
            index=own.index,
            writer=own.writer,
            memories=own.memories,
            captures=own.captures,
            continuity=own.continuity,
            episodes=own.episodes,
            extraction=own.extraction,
            stages=own.stage,
            maintenance=own.maintenance,
            outcomes=own.outcomes,
            review=own.review,
            index_events=own.sessions.index_part,
        ).run()

    @cached_property
    def _for_hooks(self) -> Services:
        """Return the services for an agent that waits.

        They ask no language model, embed only where there are vectors, and give up indexing soon.
        """
        from memory_kb.index.vault_index import VaultIndex

        vault = _without_model(self.vault)._replace(trusts_watcher=True)
        index = VaultIndex(vault, time_limit=_HOOK_INDEX_SECONDS)
        return Services(vault, index=index)

    def _open_past(self, vault: Vault) -> Self:
        """Return the services of a vault as it was at a revision; they have no vectors."""
        from memory_kb.index.vault_index import VaultIndex

        refuse = self.git.refuse_vectors if self.index.may_embed else None
        return type(self)(vault, index=VaultIndex(vault, choose=refuse))

    @contextmanager
    def _evaluate_past(self, vault: Vault) -> Iterator[Evaluation]:
        with self._open_past(vault) as past:
            yield past.evaluation

    # What the services below are made of.

    @cached_property
    def index(self) -> VaultIndex:
        from memory_kb.index.vault_index import VaultIndex

        return VaultIndex(self.vault)

    @cached_property
    def writer(self) -> Writer:
        from memory_kb.agents.agent import agent_file_names
        from memory_kb.store.writer import Writer

        return Writer(self.vault, self.index.index_written, agent_file_names())

    @cached_property
    def models(self) -> Models:
        from memory_kb.providers.models import Models

        return Models(self.vault)

    @cached_property
    def memories(self) -> Memories:
        from memory_kb.learning.memories import Memories

        return Memories(self.vault, self.index, self.writer)

    # Read.

    @cached_property
    def indexing(self) -> Indexing:
        from memory_kb.index.indexing import Indexing

        def find_claim_problems() -> Iterator[Problem]:
            return self.citations.problems()

        return Indexing(self.vault, self.index, lambda: self.writer, find_claim_problems)

    @cached_property
    def watching(self) -> Watching:
        from memory_kb.index.watch import Watching

        return Watching(self.vault, (IdleMaintenance(self.reopen),) if self.vault.memory else ())

    @cached_property
    def listing(self) -> Listing:
        from memory_kb.index.listing import Listing

        return Listing(self.vault, self.index)

    @cached_property
    def searching(self) -> Searching:
        from memory_kb.search.service import Searching

        return Searching(self.vault, self.index, lambda: self.models)

    @cached_property
    def continuity(self) -> Continuity:
        from memory_kb.working.continuity import Continuity

        return Continuity(self.vault, self.index, lambda: self.writer, self.searching)

    @cached_property
    def contexts(self) -> Contexts:
        from memory_kb.context.service import Contexts

        return Contexts(self.vault, self.index, self.models, self.continuity, self.searching)

    # Write and edit entries.

    @cached_property
    def entries(self) -> EntryVerbs:
        from memory_kb.learning.entry_verbs import EntryVerbs

        return EntryVerbs(self.vault, self.index, self.writer, lambda: self.listing, lambda: self.memories)

    @cached_property
    def undo_verbs(self) -> Undo:
        from memory_kb.store.undo import Undo

        return Undo(self.vault, self.writer)

    @cached_property
    def editing(self) -> Editing:
        from memory_kb.editing.source import Editing

        return Editing(self.vault, self.writer, self.listing)

    @cached_property
    def examination(self) -> Examination:
        from memory_kb.editing.examination import Examination

        return Examination(self.vault, self.index, self.writer)

    @cached_property
    def review(self) -> Review:
        from memory_kb.learning.review import Review

        return Review(self.vault, self.index, self.writer, self.memories)

    @cached_property
    def editor_actions(self) -> EditorActions:
        from memory_kb.editing.editor_actions import EditorActions

        return EditorActions(self.vault, self.index, self.writer, self.memories, self.review)

    @cached_property
    def citations(self) -> Citations:
        from memory_kb.learning.citations import Citations

        return Citations(self.vault, self.writer, self.memories)

    @cached_property
    def imports(self) -> Imports:
        from memory_kb.importers.service import Imports

        return Imports(self.vault, self.memories)

    # Judge and maintain what was learned.

    @cached_property
    def rules(self) -> Rules:
        from memory_kb.learning.rules import Rules

        return Rules(self.vault, self.index, self.writer, self.memories, self.models)

    @cached_property
    def rule_gate(self) -> RuleGate:
        from memory_kb.learning.trust import RuleGate

        return RuleGate(self.vault, self.memories)

    @cached_property
    def agent_learnings(self) -> AgentLearnings:
        from memory_kb.learning.trust import AgentLearnings

        return AgentLearnings(self.vault, self.entries, self.rules, self.rule_gate)

    @cached_property
    def skills(self) -> Skills:
        from memory_kb.skills.service import Skills

        return Skills(self.vault, self.writer, self.memories, self.searching)

    @cached_property
    def compactor(self) -> Compactor:
        from memory_kb.learning.compaction import Compactor

        return Compactor(self.vault, self.writer, self.memories, self.models)

    @cached_property
    def lifecycle(self) -> Lifecycle:
        from memory_kb.learning.lifecycle import Lifecycle

        return Lifecycle(self.vault, self.memories, self.models)

    @cached_property
    def stage(self) -> Stages:
        from memory_kb.learning.stages import Stages

        return Stages(self.vault, self.writer, self.memories, self.models)

    @cached_property
    def exposures(self) -> Exposures:
        from memory_kb.learning.exposure import Exposures

        return Exposures(self.vault, self.writer, self.memories)

    # Hand work over.

    @cached_property
    def ledgers(self) -> Ledgers:
        from memory_kb.working.ledgers import Ledgers

        return Ledgers(self.vault, self.writer, self.memories)

    @cached_property
    def handoffs(self) -> Handoffs:
        from memory_kb.working.handoffs import Handoffs

        return Handoffs(self.vault, self.writer, self.memories)

    @cached_property
    def task_files(self) -> TaskFiles:
        from memory_kb.learning.task_files import TaskFiles

        return TaskFiles(self.vault, self.writer)

    # Learn from sessions.

    @cached_property
    def sessions(self) -> Sessions:
        from memory_kb.sessions.service import Sessions

        return Sessions(self.vault, self._finish_session)

    @cached_property
    def traces(self) -> Traces:
        from memory_kb.episodes.trace import Traces

        return Traces(self.sessions.files)

    @cached_property
    def captures(self) -> Captures:
        from memory_kb.learning.capture import Captures

        return Captures(self.vault, self.memories)

    @cached_property
    def extraction(self) -> Extraction:
        from memory_kb.learning.extraction import Extraction

        return Extraction(
            self.vault,
            self.memories,
            self.rule_gate,
            self.stage,
            self.models,
            self.sessions.files,
            self.task_files,
        )

    @cached_property
    def episodes(self) -> Episodes:
        from memory_kb.episodes.service import Episodes

        return Episodes(self.vault, self.writer, self.memories, self.models, self.rule_gate, lambda: self.traces)

    @cached_property
    def diary(self) -> Diary:
        from memory_kb.episodes.service import Diary

        return Diary(self.memories)

    @cached_property
    def outcomes(self) -> Outcomes:
        from memory_kb.agents.agent import recognise
        from memory_kb.learning.outcomes import Outcomes

        def has_changed_files(session: str) -> bool:
            return self.traces.has_changed_files(session)

        return Outcomes(self.vault, self.writer, self.memories, recognise, has_changed_files)

    @cached_property
    def maintenance(self) -> Maintenance:
        from memory_kb.sessions.maintenance import Maintenance

        return Maintenance(
            self.vault,
            self.index,
            self.writer,
            self.citations,
            self.compactor,
            self.episodes,
            self.indexing,
            self.lifecycle,
            self.outcomes,
            self.rules,
        )

    # Live with git and agents.

    @cached_property
    def git(self) -> Git:
        from memory_kb.git.service import Git

        return Git(self.vault, self.index, self.undo_verbs)

    @cached_property
    def evaluation(self) -> Evaluation:
        from memory_kb.git.evaluation import Evaluation

        return Evaluation(self.vault, self.index, self.contexts, self.git, self.searching, self._evaluate_past)

    @cached_property
    def web_queries(self) -> WebQueries:
        from memory_kb.web_queries import WebQueries

        return WebQueries(self.vault, self.index, self.git, self.listing, self.undo_verbs)

    @cached_property
    def agents(self) -> Agents:
        from memory_kb.agents.install import Agents

        return Agents(self.vault, self.writer, self.memories)

    @cached_property
    def bridges(self) -> Bridge:
        from memory_kb.agents.bridge import Bridge

        return Bridge(self.vault, self.writer, self.memories)

    @cached_property
    def hooks(self) -> Hooks:
        from memory_kb.agents.hooks import Hooks

        return Hooks(self.vault, self.sessions, lambda: self._for_hooks.index)


class IdleMaintenance:
    """The maintenance that is due, done by a watcher while nobody works in the vault.

    `reopen` opens the vault with services of its own.
    """

    def __init__(self, reopen: Callable[[], Services]) -> None:
        self._reopen = reopen
        self._seen = -1

    def __call__(self, stop: threading.Event) -> Iterator[str]:
        """Do the maintenance that is due when nothing was written since the last call; say what was done."""
        with self._reopen() as own:
            before, self._seen = self._seen, own.index.generation
            if before != self._seen or stop.is_set() or not own.maintenance.is_maintenance_due():
                return
            for step in own.maintenance.maintain().steps:
                if step.outcome in ("done", "failed"):
                    yield f"maintenance, {step.name}: {step.message or step.outcome}"
