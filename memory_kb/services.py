"""The services of a vault, one for each family of verbs: how each is made, and of what.

Each is made when it is first used, and its module is loaded then, so that a command loads only what it uses: the type
checker reads the imports below, and `memory_kb.learning.rules` loads that module when the line with it is reached. A
service that needs another one only at times is given a function that returns it, such as `lambda: self.writer`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Self, TypeVar

from memory_kb.store.open_vault import open_vault

if TYPE_CHECKING:
    import threading

    import memory_kb.agents.agent
    import memory_kb.agents.bridge
    import memory_kb.agents.hooks
    import memory_kb.agents.install
    import memory_kb.context.service
    import memory_kb.editing.editor_actions
    import memory_kb.editing.examination
    import memory_kb.editing.source
    import memory_kb.episodes.service
    import memory_kb.git.evaluation
    import memory_kb.git.service
    import memory_kb.importers.service
    import memory_kb.index.indexing
    import memory_kb.index.listing
    import memory_kb.index.vault_index
    import memory_kb.index.watch
    import memory_kb.learning.agent_learnings
    import memory_kb.learning.capture
    import memory_kb.learning.citations
    import memory_kb.learning.compaction
    import memory_kb.learning.entry_verbs
    import memory_kb.learning.exposure
    import memory_kb.learning.extraction
    import memory_kb.learning.lifecycle
    import memory_kb.learning.memories
    import memory_kb.learning.outcomes
    import memory_kb.learning.review
    import memory_kb.learning.rules
    import memory_kb.learning.stages
    import memory_kb.providers.models
    import memory_kb.search.service
    import memory_kb.sessions.maintenance
    import memory_kb.sessions.service
    import memory_kb.sessions.trace
    import memory_kb.skills.service
    import memory_kb.store.undo
    import memory_kb.store.writer
    import memory_kb.web_queries
    import memory_kb.working.continuity
    import memory_kb.working.handoffs
    import memory_kb.working.ledgers
    import memory_kb.working.task_files
    from memory_kb.model import Problem
    from memory_kb.reports import StepReport
    from memory_kb.sessions.maintenance import EndedSession
    from memory_kb.vault import Vault
else:

    class _Package:
        """A package whose modules are loaded when they are first named; type checkers see the imports above."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> object:
            if name.startswith("__"):  # tools that look into a module ask for these
                raise AttributeError(name)
            path = f"{self._name}.{name}"
            __import__(path)
            found = sys.modules[path]
            return _Package(path) if hasattr(found, "__path__") else found

    memory_kb = _Package("memory_kb")

_T = TypeVar("_T")

#: Seconds that indexing may take while an agent waits for a hook.
_HOOK_INDEX_SECONDS = 0.4


def made(make: Callable[[Services], _T]) -> cached_property[_T]:
    """Return an attribute of services, such as one of them or its method, that is made when it is first read."""
    return cached_property(make)


def _without_model(vault: Vault) -> Vault:
    llm = vault.settings.llm._replace(provider="none")
    return vault._replace(settings=vault.settings._replace(llm=llm))


class Services:
    """The services of one vault.

    A preview, a hook and the end of a session have services of their own over the same vault: with another index,
    writer or language model, which are arguments here.
    """

    def __init__(
        self,
        vault: Vault,
        *,
        index: memory_kb.index.vault_index.VaultIndex | None = None,
        writer: memory_kb.store.writer.Writer | None = None,
        models: memory_kb.providers.models.Models | None = None,
        cache: memory_kb.learning.memories.MemoryCache | None = None,
        ended: EndedSession | None = None,
    ) -> None:
        self.vault = vault
        self._cache = cache
        self._ended = ended
        given = {"index": index, "writer": writer, "models": models}
        self.__dict__.update((name, one) for name, one in given.items() if one is not None)

    def reopen(self) -> Self:
        """Open the vault once more, as it is now: moved, or with other settings."""
        known = self.vault
        return type(self)(
            open_vault(
                *known.named,
                environ=known.environ,
                clock=known.clock,
                allow_secret=known.allows_secrets,
                trust_watcher=known.trusts_watcher,
            )
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the indexes; they are opened again when they are used again."""
        if "index" in self.__dict__:
            self.index.close()
        if "searching" in self.__dict__:
            self.searching.close()
        if "_for_hooks" in self.__dict__:
            self._for_hooks.close()

    # Services over another vault, index or writer.

    def _find_claim_problems(self) -> Iterator[Problem]:
        return self.citations.problems()

    def _finish_session(self, ended: EndedSession) -> tuple[StepReport, ...]:
        """Do what follows a session, with services whose runs are part of its end."""
        writer, cache = self.writer.during(f"session {ended.session}"), self.memories.cache
        own = Services(self.vault, index=self.index, writer=writer, models=self.models, cache=cache, ended=ended)
        maintaining = own
        if ended.is_preview:  # A preview asks no language model whether entries contradict each other.
            maintaining = Services(_without_model(self.vault), index=self.index, writer=writer, cache=cache)
        return memory_kb.sessions.maintenance.SessionEnd(
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
            maintenance=maintaining.maintenance,
            outcomes=own.outcomes,
            review=own.review,
            index_events=own.sessions.index_part,
            trace=own.traces.of,
        ).run()

    @cached_property
    def _for_hooks(self) -> Services:
        """Return the services for an agent that waits.

        They ask no language model, embed only where there are vectors, and give up indexing soon.
        """
        vault = _without_model(self.vault)._replace(trusts_watcher=True)
        if not (vault.machine / "vectors").is_dir():
            embeddings = vault.settings.embeddings._replace(provider="none")
            vault = vault._replace(settings=vault.settings._replace(embeddings=embeddings))
        index = memory_kb.index.vault_index.VaultIndex(vault, time_limit=_HOOK_INDEX_SECONDS)
        return Services(vault, index=index)

    def _needs_background_update(self) -> bool:
        return "_for_hooks" in self.__dict__ and self._for_hooks.index.needs_background_update

    def _open_past(self, vault: Vault) -> Self:
        """Return the services of a vault as it was at a revision; they have no vectors."""
        refuse = self.git.refuse_vectors if self.index.may_embed else None
        return type(self)(vault, index=memory_kb.index.vault_index.VaultIndex(vault, choose=refuse))

    @contextmanager
    def _evaluate_past(self, vault: Vault) -> Iterator[memory_kb.git.evaluation.Evaluation]:
        with self._open_past(vault) as past:
            yield past.evaluation

    # What the services below are made of.

    index = made(lambda self: memory_kb.index.vault_index.VaultIndex(self.vault))
    writer = made(
        lambda self: memory_kb.store.writer.Writer(
            self.vault, self.index.index_written, memory_kb.agents.agent.agent_file_names()
        )
    )
    models = made(lambda self: memory_kb.providers.models.Models(self.vault))
    memories = made(
        lambda self: memory_kb.learning.memories.Memories(self.vault, self.index, self.writer, cache=self._cache)
    )

    # Read.

    indexing = made(
        lambda self: memory_kb.index.indexing.Indexing(
            self.vault, self.index, lambda: self.writer, self._find_claim_problems
        )
    )
    watching = made(
        lambda self: memory_kb.index.watch.Watching(
            self.vault, lambda: self.reopen().vault, (IdleMaintenance(self.reopen),) if self.vault.memory else ()
        )
    )
    listing = made(lambda self: memory_kb.index.listing.Listing(self.vault, self.index))
    searching = made(lambda self: memory_kb.search.service.Searching(self.vault, self.index, lambda: self.models))
    continuity = made(
        lambda self: memory_kb.working.continuity.Continuity(
            self.vault, self.index, lambda: self.writer, self.searching
        )
    )
    contexts = made(
        lambda self: memory_kb.context.service.Contexts(
            self.vault, self.index, self.models, self.continuity, self.searching
        )
    )

    # Write and edit entries.

    entries = made(
        lambda self: memory_kb.learning.entry_verbs.EntryVerbs(
            self.vault, self.index, self.writer, lambda: self.listing, lambda: self.memories
        )
    )
    undo_verbs = made(lambda self: memory_kb.store.undo.Undo(self.vault, self.writer))
    editing = made(lambda self: memory_kb.editing.source.Editing(self.vault, self.writer, self.listing))
    examination = made(lambda self: memory_kb.editing.examination.Examination(self.vault, self.index, self.writer))
    review = made(lambda self: memory_kb.learning.review.Review(self.vault, self.index, self.writer, self.memories))
    editor_actions = made(
        lambda self: memory_kb.editing.editor_actions.EditorActions(
            self.vault, self.index, self.writer, self.memories, self.examination, self.review
        )
    )
    citations = made(lambda self: memory_kb.learning.citations.Citations(self.vault, self.writer, self.memories))
    imports = made(lambda self: memory_kb.importers.service.Imports(self.vault, self.memories))

    # Judge and maintain what was learned.

    rules = made(
        lambda self: memory_kb.learning.rules.Rules(self.vault, self.index, self.writer, self.memories, self.models)
    )
    rule_gate = made(lambda self: memory_kb.learning.agent_learnings.RuleGate(self.vault, self.memories))
    agent_learnings = made(
        lambda self: memory_kb.learning.agent_learnings.AgentLearnings(
            self.vault, self.entries, self.rules, self.rule_gate
        )
    )
    skills = made(
        lambda self: memory_kb.skills.service.Skills(self.vault, self.index, self.writer, self.memories, self.searching)
    )
    compactor = made(
        lambda self: memory_kb.learning.compaction.Compactor(self.vault, self.writer, self.memories, self.models)
    )
    lifecycle = made(lambda self: memory_kb.learning.lifecycle.Lifecycle(self.vault, self.memories, self.models))
    stage = made(lambda self: memory_kb.learning.stages.Stages(self.vault, self.writer, self.memories, self.models))
    exposures = made(lambda self: memory_kb.learning.exposure.Exposures(self.vault, self.writer, self.memories))

    # Hand work over.

    ledgers = made(lambda self: memory_kb.working.ledgers.Ledgers(self.vault, self.writer, self.memories))
    handoffs = made(lambda self: memory_kb.working.handoffs.Handoffs(self.vault, self.writer, self.memories))
    task_files = made(lambda self: memory_kb.working.task_files.TaskFiles(self.vault, self.writer))

    # Learn from sessions.

    sessions = made(lambda self: memory_kb.sessions.service.Sessions(self.vault, self._finish_session))
    traces = made(
        lambda self: memory_kb.sessions.trace.Traces(
            self.sessions.files, self._ended.unwritten_end if self._ended else None
        )
    )
    captures = made(lambda self: memory_kb.learning.capture.Captures(self.vault, self.memories))
    extraction = made(
        lambda self: memory_kb.learning.extraction.Extraction(
            self.vault,
            self.writer,
            self.memories,
            self.rule_gate,
            self.stage,
            self.models,
            self.sessions.files,
            self.task_files.documents,
        )
    )
    episodes = made(
        lambda self: memory_kb.episodes.service.Episodes(
            self.vault, self.writer, self.memories, self.models, self.rule_gate, self.traces.of
        )
    )
    diary = made(lambda self: memory_kb.episodes.service.Diary(self.memories))
    outcomes = made(
        lambda self: memory_kb.learning.outcomes.Outcomes(
            self.vault, self.writer, self.memories, memory_kb.agents.agent.recognise, self.traces.of
        )
    )
    maintenance = made(
        lambda self: memory_kb.sessions.maintenance.Maintenance(
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
    )

    # Live with git and agents.

    git = made(lambda self: memory_kb.git.service.Git(self.vault, self.index, self.undo_verbs))
    evaluation = made(
        lambda self: memory_kb.git.evaluation.Evaluation(
            self.vault, self.index, self.contexts, self.git, self.searching, self._evaluate_past
        )
    )
    web_queries = made(
        lambda self: memory_kb.web_queries.WebQueries(self.vault, self.index, self.git, self.listing, self.undo_verbs)
    )
    agents = made(lambda self: memory_kb.agents.install.Agents(self.vault, self.writer, self.memories))
    bridges = made(lambda self: memory_kb.agents.bridge.Bridge(self.vault, self.writer, self.memories))
    hooks = made(
        lambda self: memory_kb.agents.hooks.Hooks(
            self.vault, self.sessions, lambda: self._for_hooks.index, self._needs_background_update
        )
    )


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
