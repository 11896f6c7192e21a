"""`KnowledgeBase`: the one entry point of the Python API.

It creates its services when they are first used, loading their modules then, and holds no rules of its own.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import TYPE_CHECKING, Generic, ParamSpec, Self, TypeVar, overload

from memory_kb.errors import InvalidSettings
from memory_kb.settings import load_settings
from memory_kb.store.machine_folder import choose_machine
from memory_kb.vault import Vault, find_vault, working_folder

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
    import memory_kb.git.ci
    import memory_kb.git.service
    import memory_kb.importers.service
    import memory_kb.index.indexing
    import memory_kb.index.listing
    import memory_kb.index.vault_index
    import memory_kb.index.watch
    import memory_kb.learning.agent_claims
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
    import memory_kb.learning.rule_gate
    import memory_kb.learning.rules
    import memory_kb.learning.stages
    import memory_kb.providers.models
    import memory_kb.search.service
    import memory_kb.sessions.end
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
    from memory_kb.index.vault_index import VaultIndex
    from memory_kb.learning.memories import MemoryCache
    from memory_kb.model import Problem
    from memory_kb.providers.models import Models
    from memory_kb.reports import StepReport
    from memory_kb.sessions.maintenance import EndedSession
    from memory_kb.store.writer import Writer

#: Seconds that indexing may take while an agent waits for a hook.
_HOOK_INDEX_SECONDS = 0.4

_P = ParamSpec("_P")
_R = TypeVar("_R")


class _Package:
    """A package whose modules are imported when they are first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # what Python itself asks of every object
            raise AttributeError(name)
        module = importlib.import_module(f"{self._name}.{name}")
        found = _Package(module.__name__) if hasattr(module, "__path__") else module
        setattr(self, name, found)
        return found


# What is named `memory_kb.search.service` below is imported when it is used. Type checkers see the imports above.
if not TYPE_CHECKING:
    memory_kb = _Package("memory_kb")


def _service(make: Callable[[KnowledgeBase], _R]) -> functools.cached_property[_R]:
    """Return an attribute of the knowledge base that is made when it is first used."""
    return functools.cached_property(make)


class _Verb(Generic[_P, _R]):
    """A method of a service, as a method of the knowledge base; the service is made when it is first called."""

    def __init__(self, find: Callable[[KnowledgeBase], Callable[_P, _R]]) -> None:
        self.find = find

    @overload
    def __get__(self, kb: None, owner: type) -> Self: ...
    @overload
    def __get__(self, kb: KnowledgeBase, owner: type) -> Callable[_P, _R]: ...
    def __get__(self, kb: KnowledgeBase | None, owner: type) -> Self | Callable[_P, _R]:
        return self if kb is None else self.find(kb)


class KnowledgeBase:
    """A vault, open for reading and learning.

    Everyday verbs are methods; the other families of verbs are services: `kb.sessions.end(...)`,
    `kb.rules.list()`.

    Example:
        with KnowledgeBase.open("~/notes") as kb:
            for hit in kb.search("flaky tests", limit=5).hits:
                print(hit.score, hit.path, hit.title)
    """

    def __init__(
        self,
        vault: Vault,
        *,
        index: VaultIndex | None = None,
        writer: Writer | None = None,
        models: Models | None = None,
        cache: MemoryCache | None = None,
        ended: EndedSession | None = None,
    ) -> None:
        self.vault = vault
        self._index = index
        self._writer = writer
        self._models = models
        self._cache = cache
        self._ended = ended

    @classmethod
    def open(
        cls,
        vault: str | os.PathLike[str] | None = None,
        home: str | os.PathLike[str] | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        clock: Callable[[], datetime] | None = None,
        allow_secret: bool = False,
    ) -> Self:
        """Open the vault of a folder.

        Without a folder it is that of `MEMORY_KB_VAULT` or the nearest around the working folder.

        Args:
            vault: any folder of Markdown files, or one that holds `memory/`.
            home: the global home; `MEMORY_KB_HOME`, else `~/.memory`, when not given.
            environ: the environment to read settings from.
            clock: returns the present moment, with a time zone. `MEMORY_KB_NOW` sets it from outside.
            allow_secret: store what looks like a credential; a program that acts for a model must not set it.
        """
        variables = os.environ if environ is None else environ
        found = find_vault(vault, home, environ=variables, cwd=working_folder())
        loaded = load_settings(found.home / "config.yaml", found.config_file, variables)
        machine = choose_machine(found, loaded.settings.index.path, variables)
        named = os.path.abspath(os.path.expanduser(vault or variables.get("MEMORY_KB_VAULT") or found.folder))
        return cls(
            found._replace(
                machine=machine.folder,
                seal=machine.seal,
                settings=loaded.settings,
                warnings=(*loaded.warnings, *machine.notices),
                environ=variables,
                clock=clock or _read_clock(variables),
                named=(named, os.fspath(home) if home else None),
                allows_secrets=allow_secret,
            )
        )

    def reopen(self) -> Self:
        """Open the vault once more, as it is now: moved, or with other settings."""
        vault, home = self.vault.named
        known = self.vault
        return type(self).open(vault, home, environ=known.environ, clock=known.clock, allow_secret=known.allows_secrets)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close index and models; they are opened again when they are used again."""
        if "index" in self.__dict__:
            self.index.close()
        if "_for_hooks" in self.__dict__:
            self._for_hooks.close()

    @property
    def generation(self) -> int:
        """The number of the index's state; it grows with every change, and is 0 before the first."""
        return self.index.generation

    def at(self, revision: str) -> Self:
        """Return the vault as it was at a revision, to search and read; its close is up to the caller.

        See `Git.vault_at`.
        """
        return self._open_past(self.git.vault_at(revision))

    def _open_past(self, vault: Vault) -> Self:
        refuse = self.git.refuse_vectors if self.index.may_embed else None
        return type(self)(vault, index=memory_kb.index.vault_index.VaultIndex(vault, choose=refuse))

    def _finish_session(self, ended: EndedSession) -> tuple[StepReport, ...]:
        """Do what follows a session, with services whose runs are part of its end."""
        writer, cache = self.writer.during(f"session {ended.session}"), self.memories.cache
        own = KnowledgeBase(self.vault, index=self.index, writer=writer, models=self.models, cache=cache, ended=ended)
        maintaining = own
        if ended.is_preview:  # A preview asks no language model whether entries contradict each other.
            maintaining = KnowledgeBase(_without_model(self.vault), index=self.index, writer=writer, cache=cache)
        return memory_kb.sessions.end.SessionEnd(
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
            sessions=own.sessions,
            trace=own.traces.of,
        ).run()

    @functools.cached_property
    def _for_hooks(self) -> KnowledgeBase:
        """Return the same vault for an agent that waits.

        It asks no language model, embeds only where there are vectors, and gives up indexing soon.
        """
        vault = _without_model(self.vault)
        if not (vault.machine / "vectors").is_dir():
            embeddings = vault.settings.embeddings._replace(provider="none")
            vault = vault._replace(settings=vault.settings._replace(embeddings=embeddings))
        index = memory_kb.index.vault_index.VaultIndex(vault, trusts_watcher=True, time_limit=_HOOK_INDEX_SECONDS)
        return KnowledgeBase(vault, index=index)

    def _find_problems(self) -> Iterator[Problem]:
        return self.citations.problems()

    def _needs_background_update(self) -> bool:
        return "_for_hooks" in self.__dict__ and self._for_hooks.index.needs_background_update

    def _idle_steps(self) -> tuple[Callable[[threading.Event], Iterator[str]], ...]:
        return (memory_kb.sessions.maintenance.IdleMaintenance(self.reopen),) if self.vault.memory else ()

    #: The index of the notes.
    index = _service(lambda self: self._index or memory_kb.index.vault_index.VaultIndex(self.vault))
    #: The language model and the token counter.
    models = _service(lambda self: self._models or memory_kb.providers.models.Models(self.vault))
    #: Writes changes to the notes.
    writer = _service(
        lambda self: (
            self._writer
            or memory_kb.store.writer.Writer(self.vault, self.index.index_written, agent_files=_agent_files)
        )
    )
    #: The entries as values, and the way in for new ones.
    memories = _service(
        lambda self: memory_kb.learning.memories.Memories(self.vault, self.index, self.writer, cache=self._cache)
    )
    undo_verbs = _service(lambda self: memory_kb.store.undo.Undo(self.vault, self.writer))
    listing = _service(lambda self: memory_kb.index.listing.Listing(self.vault, self.index))
    searching = _service(lambda self: memory_kb.search.service.Searching(self.vault, self.index, lambda: self.models))
    citations = _service(lambda self: memory_kb.learning.citations.Citations(self.vault, self.writer, self.memories))
    indexing = _service(
        lambda self: memory_kb.index.indexing.Indexing(self.vault, self.index, lambda: self.writer, self._find_problems)
    )
    watching = _service(
        lambda self: memory_kb.index.watch.Watching(self.vault, lambda: self.reopen().vault, self._idle_steps)
    )
    entries = _service(
        lambda self: memory_kb.learning.entry_verbs.EntryVerbs(
            self.vault, self.index, self.writer, lambda: self.listing, lambda: self.memories
        )
    )
    rule_gate = _service(lambda self: memory_kb.learning.rule_gate.RuleGate(self.vault, self.memories))
    sessions = _service(lambda self: memory_kb.sessions.service.Sessions(self.vault, self._finish_session))
    traces = _service(
        lambda self: memory_kb.sessions.trace.Traces(
            self.sessions.files, self._ended.unwritten_end if self._ended else None
        )
    )
    outcomes = _service(
        lambda self: memory_kb.learning.outcomes.Outcomes(
            self.vault, self.writer, self.memories, memory_kb.agents.agent.recognise, self.traces.of
        )
    )
    captures = _service(lambda self: memory_kb.learning.capture.Captures(self.vault, self.memories))
    compactor = _service(
        lambda self: memory_kb.learning.compaction.Compactor(self.vault, self.writer, self.memories, self.models)
    )
    continuity = _service(
        lambda self: memory_kb.working.continuity.Continuity(
            self.vault, self.index, lambda: self.writer, self.searching
        )
    )
    contexts = _service(
        lambda self: memory_kb.context.service.Contexts(
            self.vault, self.index, lambda: self.writer, self.models, self.continuity, self.searching
        )
    )
    diary = _service(lambda self: memory_kb.episodes.service.Diary(self.memories))
    episodes = _service(
        lambda self: memory_kb.episodes.service.Episodes(
            self.vault, self.writer, self.memories, self.models, self.rule_gate, self.traces.of
        )
    )
    exposures = _service(lambda self: memory_kb.learning.exposure.Exposures(self.vault, self.writer, self.memories))
    stage = _service(lambda self: memory_kb.learning.stages.Stages(self.vault, self.writer, self.memories, self.models))
    task_files = _service(lambda self: memory_kb.working.task_files.TaskFiles(self.vault, self.writer))
    extraction = _service(
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
    handoffs = _service(lambda self: memory_kb.working.handoffs.Handoffs(self.vault, self.writer, self.memories))
    ledgers = _service(lambda self: memory_kb.working.ledgers.Ledgers(self.vault, self.writer, self.memories))
    lifecycle = _service(lambda self: memory_kb.learning.lifecycle.Lifecycle(self.vault, self.memories, self.models))
    rules = _service(
        lambda self: memory_kb.learning.rules.Rules(self.vault, self.index, self.writer, self.memories, self.models)
    )
    agent_claims = _service(
        lambda self: memory_kb.learning.agent_claims.AgentClaims(self.vault, self.entries, self.rules, self.rule_gate)
    )
    skills = _service(
        lambda self: memory_kb.skills.service.Skills(self.vault, self.index, self.writer, self.memories, self.searching)
    )
    maintenance = _service(
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
    examination = _service(lambda self: memory_kb.editing.examination.Examination(self.vault, self.index, self.writer))
    review = _service(lambda self: memory_kb.learning.review.Review(self.vault, self.index, self.writer, self.memories))
    editor_actions = _service(
        lambda self: memory_kb.editing.editor_actions.EditorActions(
            self.vault, self.index, self.writer, self.memories, self.examination, self.review
        )
    )
    editing = _service(lambda self: memory_kb.editing.source.Editing(self.vault, self.writer, self.listing))
    git = _service(lambda self: memory_kb.git.service.Git(self.vault, self.index, self.undo_verbs))
    evaluation = _service(
        lambda self: memory_kb.git.ci.Evaluation(
            self.vault, self.index, self.contexts, self.git, self.searching, self._open_past
        )
    )
    browsing = _service(
        lambda self: memory_kb.web_queries.Browsing(self.vault, self.index, self.git, self.listing, self.undo_verbs)
    )
    imports = _service(lambda self: memory_kb.importers.service.Imports(self.vault, self.memories))
    agents = _service(lambda self: memory_kb.agents.install.Agents(self.vault, self.writer, self.memories))
    bridges = _service(lambda self: memory_kb.agents.bridge.Bridge(self.vault, self.writer, self.memories))
    hooks = _service(
        lambda self: memory_kb.agents.hooks.Hooks(
            self.vault, self.sessions, lambda: self._for_hooks.index, self._needs_background_update
        )
    )

    sync = _Verb(lambda kb: kb.indexing.sync)
    estimate = _Verb(lambda kb: kb.indexing.estimate)
    prune_cache = _Verb(lambda kb: kb.indexing.prune_cache)
    doctor = _Verb(lambda kb: kb.indexing.doctor)
    lint = _Verb(lambda kb: kb.indexing.lint)
    adopt = _Verb(lambda kb: kb.indexing.adopt)
    watch = _Verb(lambda kb: kb.watching.watch)
    search = _Verb(lambda kb: kb.searching.search)
    why_not = _Verb(lambda kb: kb.searching.why_not)
    show = _Verb(lambda kb: kb.searching.show)
    list = _Verb(lambda kb: kb.listing.list)
    links = _Verb(lambda kb: kb.listing.links)
    stats = _Verb(lambda kb: kb.listing.stats)
    status = _Verb(lambda kb: kb.listing.status)
    learn = _Verb(lambda kb: kb.entries.learn)
    learn_claim = _Verb(lambda kb: kb.agent_claims.learn_claim)
    supersede = _Verb(lambda kb: kb.entries.supersede)
    forget = _Verb(lambda kb: kb.entries.forget)
    rename = _Verb(lambda kb: kb.editor_actions.rename)
    propose = _Verb(lambda kb: kb.editor_actions.propose)
    propose_renaming = _Verb(lambda kb: kb.editor_actions.propose_renaming)
    propose_moving = _Verb(lambda kb: kb.editor_actions.propose_moving)
    entry_use = _Verb(lambda kb: kb.editor_actions.entry_use)
    examine = _Verb(lambda kb: kb.examination.examine)
    catalog = _Verb(lambda kb: kb.examination.catalog)
    find_headings = _Verb(lambda kb: kb.examination.find_headings)
    create = _Verb(lambda kb: kb.editing.create)
    edit = _Verb(lambda kb: kb.editing.edit)
    source = _Verb(lambda kb: kb.editing.source)
    context = _Verb(lambda kb: kb.contexts.context)
    undo = _Verb(lambda kb: kb.undo_verbs.undo)
    runs = _Verb(lambda kb: kb.undo_verbs.runs)
    undo_runs = _Verb(lambda kb: kb.undo_verbs.undo_runs)
    undo_session = _Verb(lambda kb: kb.undo_verbs.undo_session)
    capture = _Verb(lambda kb: kb.captures.capture)
    extract = _Verb(lambda kb: kb.extraction.extract)
    premortem = _Verb(lambda kb: kb.task_files.premortem)
    assume = _Verb(lambda kb: kb.task_files.assume)
    assumptions = _Verb(lambda kb: kb.task_files.assumptions)
    reflect = _Verb(lambda kb: kb.episodes.reflect)
    episode = _Verb(lambda kb: kb.episodes.episode)
    sweep = _Verb(lambda kb: kb.rules.sweep)
    outcome = _Verb(lambda kb: kb.outcomes.outcome)
    weigh_rule = _Verb(lambda kb: kb.rule_gate.weigh_rule)
    exposure = _Verb(lambda kb: kb.exposures.exposure)
    procedure = _Verb(lambda kb: kb.skills.procedure)
    reinforce = _Verb(lambda kb: kb.outcomes.reinforce)
    promote = _Verb(lambda kb: kb.lifecycle.promote)
    compact = _Verb(lambda kb: kb.compactor.compact)
    contradictions = _Verb(lambda kb: kb.compactor.contradictions)
    consolidate = _Verb(lambda kb: kb.maintenance.consolidate)
    maintain = _Verb(lambda kb: kb.maintenance.maintain)
    is_maintenance_due = _Verb(lambda kb: kb.maintenance.is_maintenance_due)
    cite = _Verb(lambda kb: kb.citations.cite)
    verify = _Verb(lambda kb: kb.citations.verify)
    commit = _Verb(lambda kb: kb.git.commit)
    history = _Verb(lambda kb: kb.git.history)
    eval = _Verb(lambda kb: kb.evaluation.eval)
    eval_propose = _Verb(lambda kb: kb.evaluation.eval_propose)
    ci = _Verb(lambda kb: kb.evaluation.ci)
    saved_queries = _Verb(lambda kb: kb.evaluation.saved_queries)
    observe = _Verb(lambda kb: kb.evaluation.observe)
    import_ = _Verb(lambda kb: kb.imports.import_)
    install = _Verb(lambda kb: kb.agents.install)
    uninstall = _Verb(lambda kb: kb.agents.uninstall)
    found_agents = _Verb(lambda kb: kb.agents.found_agents)
    prove_agent = _Verb(lambda kb: kb.agents.prove_agent)
    export_agents_md = _Verb(lambda kb: kb.agents.export_agents_md)
    hook = _Verb(lambda kb: kb.hooks.hook)
    hook_finish = _Verb(lambda kb: kb.hooks.hook_finish)
    why_silent = _Verb(lambda kb: kb.hooks.why_silent)
    browse = _Verb(lambda kb: kb.browsing.browse)
    recent = _Verb(lambda kb: kb.browsing.recent)
    filter_values = _Verb(lambda kb: kb.browsing.filter_values)
    link_map = _Verb(lambda kb: kb.browsing.link_map)
    links_around = _Verb(lambda kb: kb.browsing.links_around)
    busiest_links = _Verb(lambda kb: kb.browsing.busiest_links)
    suggest = _Verb(lambda kb: kb.browsing.suggest)
    last_look = _Verb(lambda kb: kb.browsing.last_look)
    follow = _Verb(lambda kb: kb.browsing.follow)
    past_of = _Verb(lambda kb: kb.browsing.past_of)
    upkeep = _Verb(lambda kb: kb.browsing.upkeep)
    today = _Verb(lambda kb: kb.browsing.today)
    trust_watcher = _Verb(lambda kb: kb.browsing.trust_watcher)


def _without_model(vault: Vault) -> Vault:
    llm = vault.settings.llm._replace(provider="none")
    return vault._replace(settings=vault.settings._replace(llm=llm))


def _agent_files() -> Collection[str]:
    return memory_kb.agents.agent.file_names()


def _read_clock(environ: Mapping[str, str]) -> Callable[[], datetime]:
    """Return the clock; one that is stopped, for repeatable answers, where `MEMORY_KB_NOW` says so."""
    fixed = environ.get("MEMORY_KB_NOW")
    if not fixed:
        return lambda: datetime.now(UTC)
    try:
        moment = datetime.fromisoformat(fixed)
    except ValueError as exc:
        raise InvalidSettings(f"MEMORY_KB_NOW is {fixed!r}", "write a moment as 2026-03-01T12:00:00Z") from exc
    return lambda: moment if moment.tzinfo else moment.replace(tzinfo=UTC)
