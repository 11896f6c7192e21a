"""`KnowledgeBase`: the one entry point of the Python API. It holds no rules of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Generic, ParamSpec, Self, TypeVar, overload

from memory_kb.services import Services
from memory_kb.store.open_vault import open_vault

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


class KnowledgeBase(Services):
    """A vault, open for reading and learning.

    Everyday verbs are methods; the other families of verbs are services: `kb.sessions.end(...)`,
    `kb.rules.list()`.

    Example:
        with KnowledgeBase.open("~/notes") as kb:
            for hit in kb.search("flaky tests", limit=5).hits:
                print(hit.score, hit.path, hit.title)
    """

    @classmethod
    def open(
        cls,
        vault: str | os.PathLike[str] | None = None,
        home: str | os.PathLike[str] | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        clock: Callable[[], datetime] | None = None,
        allow_secret: bool = False,
        trust_watcher: bool = False,
    ) -> Self:
        """Open the vault of a folder.

        Without a folder it is that of `MEMORY_KB_VAULT` or the nearest around the working folder.

        Args:
            vault: any folder of Markdown files, or one that holds `memory/`.
            home: the global home; `MEMORY_KB_HOME`, else `~/.memory`, when not given.
            environ: the environment to read settings from.
            clock: returns the present moment, with a time zone. `MEMORY_KB_NOW` sets it from outside.
            allow_secret: store what looks like a credential; a program that acts for a model must not set it.
            trust_watcher: while a watcher keeps the index up to date, read it without comparing the files first.
        """
        return cls(
            open_vault(
                vault,
                home,
                environ=environ,
                clock=clock,
                allow_secret=allow_secret,
                trust_watcher=trust_watcher,
            )
        )

    @property
    def generation(self) -> int:
        """The number of the index's state; it grows with every change, and is 0 before the first."""
        return self.index.generation

    def at(self, revision: str) -> Self:
        """Return the vault as it was at a revision, to search and read; its close is up to the caller.

        See `Git.vault_at`.
        """
        return self._open_past(self.git.vault_at(revision))

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
    learn_from_agent = _Verb(lambda kb: kb.agent_learnings.learn_from_agent)
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
    browse = _Verb(lambda kb: kb.web_queries.browse)
    recent = _Verb(lambda kb: kb.web_queries.recent)
    filter_values = _Verb(lambda kb: kb.web_queries.filter_values)
    link_map = _Verb(lambda kb: kb.web_queries.link_map)
    links_around = _Verb(lambda kb: kb.web_queries.links_around)
    busiest_links = _Verb(lambda kb: kb.web_queries.busiest_links)
    suggest = _Verb(lambda kb: kb.web_queries.suggest)
    last_look = _Verb(lambda kb: kb.web_queries.last_look)
    follow = _Verb(lambda kb: kb.web_queries.follow)
    past_of = _Verb(lambda kb: kb.web_queries.past_of)
    upkeep = _Verb(lambda kb: kb.web_queries.upkeep)
    today = _Verb(lambda kb: kb.web_queries.today)
