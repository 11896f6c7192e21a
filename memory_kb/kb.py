"""`KnowledgeBase`: the one entry point of the Python API. It holds no rules of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Self

from memory_kb.services import Services, made
from memory_kb.store.open_vault import open_vault


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

    # The everyday verbs, each a method of the service that has it.

    sync = made(lambda self: self.indexing.sync)
    estimate = made(lambda self: self.indexing.estimate)
    prune_cache = made(lambda self: self.indexing.prune_cache)
    doctor = made(lambda self: self.indexing.doctor)
    lint = made(lambda self: self.indexing.lint)
    adopt = made(lambda self: self.indexing.adopt)
    watch = made(lambda self: self.watching.watch)
    search = made(lambda self: self.searching.search)
    why_not = made(lambda self: self.searching.why_not)
    show = made(lambda self: self.searching.show)
    list = made(lambda self: self.listing.list)
    browse = made(lambda self: self.listing.browse)
    links = made(lambda self: self.listing.links)
    stats = made(lambda self: self.listing.stats)
    status = made(lambda self: self.listing.status)
    learn = made(lambda self: self.entries.learn)
    learn_from_agent = made(lambda self: self.agent_learnings.learn_from_agent)
    supersede = made(lambda self: self.entries.supersede)
    forget = made(lambda self: self.entries.forget)
    rename = made(lambda self: self.editor_actions.rename)
    propose = made(lambda self: self.editor_actions.propose)
    propose_renaming = made(lambda self: self.editor_actions.propose_renaming)
    propose_moving = made(lambda self: self.editor_actions.propose_moving)
    entry_use = made(lambda self: self.editor_actions.entry_use)
    examine = made(lambda self: self.examination.examine)
    catalog = made(lambda self: self.examination.catalog)
    find_headings = made(lambda self: self.examination.find_headings)
    create = made(lambda self: self.editing.create)
    edit = made(lambda self: self.editing.edit)
    source = made(lambda self: self.editing.source)
    context = made(lambda self: self.contexts.context)
    undo = made(lambda self: self.undo_verbs.undo)
    runs = made(lambda self: self.undo_verbs.runs)
    undo_runs = made(lambda self: self.undo_verbs.undo_runs)
    undo_session = made(lambda self: self.undo_verbs.undo_session)
    capture = made(lambda self: self.captures.capture)
    extract = made(lambda self: self.extraction.extract)
    premortem = made(lambda self: self.task_files.premortem)
    assume = made(lambda self: self.task_files.assume)
    assumptions = made(lambda self: self.task_files.assumptions)
    reflect = made(lambda self: self.episodes.reflect)
    episode = made(lambda self: self.episodes.episode)
    sweep = made(lambda self: self.rules.sweep)
    outcome = made(lambda self: self.outcomes.outcome)
    weigh_rule = made(lambda self: self.rule_gate.weigh_rule)
    exposure = made(lambda self: self.exposures.exposure)
    procedure = made(lambda self: self.skills.procedure)
    reinforce = made(lambda self: self.outcomes.reinforce)
    promote = made(lambda self: self.lifecycle.promote)
    compact = made(lambda self: self.compactor.compact)
    contradictions = made(lambda self: self.compactor.contradictions)
    consolidate = made(lambda self: self.maintenance.consolidate)
    maintain = made(lambda self: self.maintenance.maintain)
    is_maintenance_due = made(lambda self: self.maintenance.is_maintenance_due)
    cite = made(lambda self: self.citations.cite)
    verify = made(lambda self: self.citations.verify)
    commit = made(lambda self: self.git.commit)
    history = made(lambda self: self.git.history)
    eval = made(lambda self: self.evaluation.eval)
    eval_propose = made(lambda self: self.evaluation.eval_propose)
    ci = made(lambda self: self.evaluation.ci)
    saved_queries = made(lambda self: self.evaluation.saved_queries)
    observe = made(lambda self: self.evaluation.observe)
    import_ = made(lambda self: self.imports.import_)
    install = made(lambda self: self.agents.install)
    uninstall = made(lambda self: self.agents.uninstall)
    found_agents = made(lambda self: self.agents.found_agents)
    prove_agent = made(lambda self: self.agents.prove_agent)
    export_agents_md = made(lambda self: self.agents.export_agents_md)
    hook = made(lambda self: self.hooks.hook)
    hook_finish = made(lambda self: self.hooks.hook_finish)
    why_silent = made(lambda self: self.hooks.why_silent)
    recent = made(lambda self: self.web_queries.recent)
    filter_values = made(lambda self: self.web_queries.filter_values)
    link_map = made(lambda self: self.web_queries.link_map)
    links_around = made(lambda self: self.web_queries.links_around)
    busiest_links = made(lambda self: self.web_queries.busiest_links)
    suggest = made(lambda self: self.web_queries.suggest)
    last_look = made(lambda self: self.web_queries.last_look)
    follow = made(lambda self: self.web_queries.follow)
    past_of = made(lambda self: self.web_queries.past_of)
    upkeep = made(lambda self: self.web_queries.upkeep)
    today = made(lambda self: self.vault.today)
