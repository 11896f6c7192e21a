"""`KnowledgeBase`: the one entry point of the Python API. It holds no rules of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Self

from memory_kb.services import Services, delegate
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

    sync = delegate(lambda self: self.indexing.sync)
    estimate = delegate(lambda self: self.indexing.estimate)
    prune_cache = delegate(lambda self: self.indexing.prune_cache)
    doctor = delegate(lambda self: self.indexing.doctor)
    lint = delegate(lambda self: self.indexing.lint)
    adopt = delegate(lambda self: self.indexing.adopt)
    watch = delegate(lambda self: self.watching.watch)
    search = delegate(lambda self: self.searching.search)
    why_not = delegate(lambda self: self.searching.why_not)
    show = delegate(lambda self: self.searching.show)
    list = delegate(lambda self: self.listing.list)
    browse = delegate(lambda self: self.listing.browse)
    links = delegate(lambda self: self.listing.links)
    stats = delegate(lambda self: self.listing.stats)
    status = delegate(lambda self: self.listing.status)
    learn = delegate(lambda self: self.entries.learn)
    learn_from_agent = delegate(lambda self: self.agent_learnings.learn_from_agent)
    supersede = delegate(lambda self: self.entries.supersede)
    forget = delegate(lambda self: self.entries.forget)
    rename = delegate(lambda self: self.editor_actions.rename)
    propose = delegate(lambda self: self.editor_actions.propose)
    propose_renaming = delegate(lambda self: self.editor_actions.propose_renaming)
    propose_moving = delegate(lambda self: self.editor_actions.propose_moving)
    entry_use = delegate(lambda self: self.editor_actions.entry_use)
    examine = delegate(lambda self: self.examination.examine)
    find_mentions = delegate(lambda self: self.editor_actions.find_mentions)
    find_headings = delegate(lambda self: self.listing.find_headings)
    create = delegate(lambda self: self.editing.create)
    edit = delegate(lambda self: self.editing.edit)
    source = delegate(lambda self: self.editing.source)
    context = delegate(lambda self: self.contexts.context)
    undo = delegate(lambda self: self.undo_verbs.undo)
    runs = delegate(lambda self: self.undo_verbs.runs)
    undo_runs = delegate(lambda self: self.undo_verbs.undo_runs)
    undo_session = delegate(lambda self: self.undo_verbs.undo_session)
    capture = delegate(lambda self: self.captures.capture)
    extract = delegate(lambda self: self.extraction.extract)
    premortem = delegate(lambda self: self.task_files.premortem)
    assume = delegate(lambda self: self.task_files.assume)
    assumptions = delegate(lambda self: self.task_files.assumptions)
    reflect = delegate(lambda self: self.episodes.reflect)
    episode = delegate(lambda self: self.episodes.episode)
    sweep = delegate(lambda self: self.rules.sweep)
    outcome = delegate(lambda self: self.outcomes.outcome)
    weigh_rule = delegate(lambda self: self.rule_gate.weigh_rule)
    exposure = delegate(lambda self: self.exposures.exposure)
    procedure = delegate(lambda self: self.skills.procedure)
    reinforce = delegate(lambda self: self.outcomes.reinforce)
    promote = delegate(lambda self: self.lifecycle.promote)
    compact = delegate(lambda self: self.compactor.compact)
    contradictions = delegate(lambda self: self.compactor.contradictions)
    consolidate = delegate(lambda self: self.maintenance.consolidate)
    maintain = delegate(lambda self: self.maintenance.maintain)
    is_maintenance_due = delegate(lambda self: self.maintenance.is_maintenance_due)
    cite = delegate(lambda self: self.citations.cite)
    verify = delegate(lambda self: self.citations.verify)
    commit = delegate(lambda self: self.git.commit)
    history = delegate(lambda self: self.git.history)
    eval = delegate(lambda self: self.evaluation.eval)
    eval_propose = delegate(lambda self: self.evaluation.eval_propose)
    ci = delegate(lambda self: self.evaluation.ci)
    saved_queries = delegate(lambda self: self.evaluation.saved_queries)
    observe = delegate(lambda self: self.evaluation.observe)
    import_ = delegate(lambda self: self.imports.import_)
    install = delegate(lambda self: self.agents.install)
    uninstall = delegate(lambda self: self.agents.uninstall)
    found_agents = delegate(lambda self: self.agents.found_agents)
    prove_agent = delegate(lambda self: self.agents.prove_agent)
    export_agents_md = delegate(lambda self: self.agents.export_agents_md)
    hook = delegate(lambda self: self.hooks.hook)
    hook_finish = delegate(lambda self: self.hooks.hook_finish)
    why_silent = delegate(lambda self: self.hooks.why_silent)
    recent = delegate(lambda self: self.web_queries.recent)
    filter_values = delegate(lambda self: self.web_queries.filter_values)
    link_map = delegate(lambda self: self.web_queries.link_map)
    links_around = delegate(lambda self: self.web_queries.links_around)
    busiest_links = delegate(lambda self: self.web_queries.busiest_links)
    suggest = delegate(lambda self: self.listing.suggest)
    last_look = delegate(lambda self: self.web_queries.last_look)
    follow = delegate(lambda self: self.listing.follow)
    past_of = delegate(lambda self: self.web_queries.past_of)
    upkeep = delegate(lambda self: self.web_queries.upkeep)
    today = delegate(lambda self: self.vault.today)
