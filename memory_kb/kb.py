"""`KnowledgeBase`: the one entry point of the Python API.

It creates its services when they are first used, and holds no rules of its own.
"""

from __future__ import annotations

import functools
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

    from memory_kb.agents.bridge import Bridge
    from memory_kb.agents.hooks import Hooks
    from memory_kb.agents.install import Agents
    from memory_kb.context.service import Contexts
    from memory_kb.editing.editor_actions import EditorActions
    from memory_kb.editing.examination import Examination
    from memory_kb.editing.source import Editing
    from memory_kb.episodes.service import Diary, Episodes
    from memory_kb.git.ci import Evaluation
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
    from memory_kb.learning.memories import Memories, MemoryCache
    from memory_kb.learning.outcomes import Outcomes
    from memory_kb.learning.review import Review
    from memory_kb.learning.rule_gate import RuleGate
    from memory_kb.learning.rules import Rules
    from memory_kb.learning.stages import Stages
    from memory_kb.model import Problem
    from memory_kb.providers.models import Models
    from memory_kb.reports import StepReport
    from memory_kb.search.service import Searching
    from memory_kb.sessions.maintenance import EndedSession, Maintenance
    from memory_kb.sessions.service import Sessions
    from memory_kb.sessions.trace import Traces
    from memory_kb.skills.service import Skills
    from memory_kb.store.undo import Undo
    from memory_kb.store.writer import Writer
    from memory_kb.web_queries import Browsing
    from memory_kb.working.continuity import Continuity
    from memory_kb.working.handoffs import Handoffs
    from memory_kb.working.ledgers import Ledgers
    from memory_kb.working.task_files import TaskFiles

#: Seconds that indexing may take while an agent waits for a hook.
_HOOK_INDEX_SECONDS = 0.4

_P = ParamSpec("_P")
_R = TypeVar("_R")


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

    @functools.cached_property
    def index(self) -> VaultIndex:
        """The index of the notes."""
        from memory_kb.index.vault_index import VaultIndex

        return self._index or VaultIndex(self.vault)

    @functools.cached_property
    def writer(self) -> Writer:
        """Writes changes to the notes."""
        from memory_kb.store.writer import Writer

        return self._writer or Writer(self.vault, self.index.index_written, agent_files=_agent_files)

    @functools.cached_property
    def memories(self) -> Memories:
        """The entries as values, and the way in for new ones."""
        from memory_kb.learning.memories import Memories

        return Memories(self.vault, self.index, self.writer, cache=self._cache)

    def at(self, revision: str) -> Self:
        """Return the vault as it was at a revision, to search and read; its close is up to the caller.

        See `Git.vault_at`.
        """
        return self._open_past(self.git.vault_at(revision))

    def _open_past(self, vault: Vault) -> Self:
        from memory_kb.index.vault_index import VaultIndex

        refuse = self.git.refuse_vectors if self.index.may_embed else None
        return type(self)(vault, index=VaultIndex(vault, choose=refuse))

    def _finish_session(self, ended: EndedSession) -> tuple[StepReport, ...]:
        """Do what follows a session, with services whose runs are part of its end."""
        from memory_kb.sessions.end import SessionEnd

        writer, cache = self.writer.during(f"session {ended.session}"), self.memories.cache
        own = KnowledgeBase(self.vault, index=self.index, writer=writer, models=self.models, cache=cache, ended=ended)
        maintaining = own
        if ended.is_preview:  # A preview asks no language model whether entries contradict each other.
            maintaining = KnowledgeBase(_without_model(self.vault), index=self.index, writer=writer, cache=cache)
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
        from memory_kb.index.vault_index import VaultIndex

        vault = _without_model(self.vault)
        if not (vault.machine / "vectors").is_dir():
            embeddings = vault.settings.embeddings._replace(provider="none")
            vault = vault._replace(settings=vault.settings._replace(embeddings=embeddings))

        index = VaultIndex(vault, trusts_watcher=True, time_limit=_HOOK_INDEX_SECONDS)
        return KnowledgeBase(vault, index=index)

    def _find_problems(self) -> Iterator[Problem]:
        return self.citations.problems()

    def _needs_background_update(self) -> bool:
        return "_for_hooks" in self.__dict__ and self._for_hooks.index.needs_background_update

    def _idle_steps(self) -> tuple[Callable[[threading.Event], Iterator[str]], ...]:
        from memory_kb.sessions.maintenance import IdleMaintenance

        return (IdleMaintenance(self.reopen),) if self.vault.memory else ()

    @functools.cached_property
    def models(self) -> Models:
        """The language model and the token counter."""
        from memory_kb.providers.models import Models

        return self._models or Models(self.vault)

    @functools.cached_property
    def entries(self) -> EntryVerbs:
        from memory_kb.learning.entry_verbs import EntryVerbs

        return EntryVerbs(self.vault, self.index, self.writer, lambda: self.listing, lambda: self.memories)

    @functools.cached_property
    def hooks(self) -> Hooks:
        from memory_kb.agents.hooks import Hooks

        return Hooks(self.vault, self.sessions, lambda: self._for_hooks.index, self._needs_background_update)

    @functools.cached_property
    def traces(self) -> Traces:
        from memory_kb.sessions.trace import Traces

        return Traces(self.sessions.files, self._ended.unwritten_end if self._ended else None)

    @functools.cached_property
    def outcomes(self) -> Outcomes:
        from memory_kb.agents.agent import recognise
        from memory_kb.learning.outcomes import Outcomes

        return Outcomes(self.vault, self.writer, self.memories, recognise, self.traces.of)

    @functools.cached_property
    def watching(self) -> Watching:
        from memory_kb.index.watch import Watching

        return Watching(self.vault, lambda: self.reopen().vault, self._idle_steps)

    @functools.cached_property
    def agents(self) -> Agents:
        from memory_kb.agents.install import Agents

        return Agents(self.vault, self.writer, self.memories)

    @functools.cached_property
    def bridges(self) -> Bridge:
        from memory_kb.agents.bridge import Bridge

        return Bridge(self.vault, self.writer, self.memories)

    @functools.cached_property
    def browsing(self) -> Browsing:
        from memory_kb.web_queries import Browsing

        return Browsing(self.vault, self.index, self.git, self.listing, self.undo_verbs)

    @functools.cached_property
    def captures(self) -> Captures:
        from memory_kb.learning.capture import Captures

        return Captures(self.vault, self.writer, self.memories)

    @functools.cached_property
    def citations(self) -> Citations:
        from memory_kb.learning.citations import Citations

        return Citations(self.vault, self.writer, self.memories)

    @functools.cached_property
    def compactor(self) -> Compactor:
        from memory_kb.learning.compaction import Compactor

        return Compactor(self.vault, self.writer, self.memories, self.models)

    @functools.cached_property
    def contexts(self) -> Contexts:
        from memory_kb.context.service import Contexts

        return Contexts(self.vault, self.index, lambda: self.writer, self.models, self.continuity, self.searching)

    @functools.cached_property
    def continuity(self) -> Continuity:
        from memory_kb.working.continuity import Continuity

        return Continuity(self.vault, self.index, lambda: self.writer, self.searching)

    @functools.cached_property
    def diary(self) -> Diary:
        from memory_kb.episodes.service import Diary

        return Diary(self.memories)

    @functools.cached_property
    def editor_actions(self) -> EditorActions:
        from memory_kb.editing.editor_actions import EditorActions

        return EditorActions(self.vault, self.index, self.writer, self.memories, self.examination, self.review)

    @functools.cached_property
    def editing(self) -> Editing:
        from memory_kb.editing.source import Editing

        return Editing(self.vault, self.writer, self.listing)

    @functools.cached_property
    def episodes(self) -> Episodes:
        from memory_kb.episodes.service import Episodes

        return Episodes(self.vault, self.writer, self.memories, self.models, self.rule_gate, self.traces.of)

    @functools.cached_property
    def evaluation(self) -> Evaluation:
        from memory_kb.git.ci import Evaluation

        return Evaluation(self.vault, self.index, self.contexts, self.git, self.searching, self._open_past)

    @functools.cached_property
    def examination(self) -> Examination:
        from memory_kb.editing.examination import Examination

        return Examination(self.vault, self.index, self.writer)

    @functools.cached_property
    def exposures(self) -> Exposures:
        from memory_kb.learning.exposure import Exposures

        return Exposures(self.vault, self.writer, self.memories)

    @functools.cached_property
    def extraction(self) -> Extraction:
        from memory_kb.learning.extraction import Extraction

        return Extraction(
            self.vault,
            self.writer,
            self.memories,
            self.rule_gate,
            self.stage,
            self.models,
            self.sessions.files,
            self.task_files.documents,
        )

    @functools.cached_property
    def git(self) -> Git:
        from memory_kb.git.service import Git

        return Git(self.vault, self.index, self.undo_verbs)

    @functools.cached_property
    def handoffs(self) -> Handoffs:
        from memory_kb.working.handoffs import Handoffs

        return Handoffs(self.vault, self.writer, self.memories)

    @functools.cached_property
    def imports(self) -> Imports:
        from memory_kb.importers.service import Imports

        return Imports(self.vault, self.writer, self.memories)

    @functools.cached_property
    def indexing(self) -> Indexing:
        from memory_kb.index.indexing import Indexing

        return Indexing(self.vault, self.index, lambda: self.writer, self._find_problems)

    @functools.cached_property
    def ledgers(self) -> Ledgers:
        from memory_kb.working.ledgers import Ledgers

        return Ledgers(self.vault, self.writer, self.memories)

    @functools.cached_property
    def lifecycle(self) -> Lifecycle:
        from memory_kb.learning.lifecycle import Lifecycle

        return Lifecycle(self.vault, self.writer, self.memories, self.models)

    @functools.cached_property
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

    @functools.cached_property
    def listing(self) -> Listing:
        from memory_kb.index.listing import Listing

        return Listing(self.vault, self.index)

    @functools.cached_property
    def review(self) -> Review:
        from memory_kb.learning.review import Review

        return Review(self.vault, self.index, self.writer, self.memories)

    @functools.cached_property
    def rule_gate(self) -> RuleGate:
        from memory_kb.learning.rule_gate import RuleGate

        return RuleGate(self.vault, self.memories)

    @functools.cached_property
    def rules(self) -> Rules:
        from memory_kb.learning.rules import Rules

        return Rules(self.vault, self.index, self.writer, self.memories, self.models)

    @functools.cached_property
    def searching(self) -> Searching:
        from memory_kb.search.service import Searching

        return Searching(self.vault, self.index, lambda: self.models)

    @functools.cached_property
    def sessions(self) -> Sessions:
        from memory_kb.sessions.service import Sessions

        return Sessions(self.vault, self._finish_session)

    @functools.cached_property
    def skills(self) -> Skills:
        from memory_kb.skills.service import Skills

        return Skills(self.vault, self.index, self.writer, self.memories, self.searching)

    @functools.cached_property
    def stage(self) -> Stages:
        from memory_kb.learning.stages import Stages

        return Stages(self.vault, self.writer, self.memories, self.models)

    @functools.cached_property
    def task_files(self) -> TaskFiles:
        from memory_kb.working.task_files import TaskFiles

        return TaskFiles(self.vault, self.writer)

    @functools.cached_property
    def undo_verbs(self) -> Undo:
        from memory_kb.store.undo import Undo

        return Undo(self.vault, self.writer)

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
    from memory_kb.agents.agent import file_names

    return file_names()


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
