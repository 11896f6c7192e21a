"""The verbs eval and ci: ask saved queries of one revision, or compare two."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from memory_kb.credentials import describe_secret, locate_secrets
from memory_kb.errors import UsageError
from memory_kb.git.backtest import CheckedCommit, find_breaches, find_covered, read_change
from memory_kb.git.comparison import CiReport, RevisionView, compare_revisions
from memory_kb.git.metrics import (
    GrepFile,
    MethodScore,
    QuestionResult,
    average_results,
    grep,
    measure_question,
    propose_queries,
)
from memory_kb.git.past_vault import open_past
from memory_kb.index.doctor import check_queries, cross_check
from memory_kb.index.lint_cache import LintCache
from memory_kb.learning.contradictions import find_contradictions
from memory_kb.learning.guards import AllowedChecks, guarding_rules, read_guard, run_check
from memory_kb.model import EVERYTHING, Problem
from memory_kb.search.query import Request, parse_query
from memory_kb.store.file_edits import find_note
from memory_kb.store.logs import RetrievalLog
from memory_kb.store.saved_queries import queries_path, read_queries

if TYPE_CHECKING:
    from memory_kb.context.sections import Context
    from memory_kb.context.service import Contexts
    from memory_kb.git.repository import Repository
    from memory_kb.git.service import Git
    from memory_kb.index.sqlite import SqliteIndex
    from memory_kb.index.vault_index import VaultIndex
    from memory_kb.search.service import Searching
    from memory_kb.store.saved_queries import Queries, SavedQuery
    from memory_kb.vault import Vault

#: A path, perhaps a line, and what is said of it.
_PLACE = re.compile(r"([^\s:]+):(?:(\d+):)? (.*)", re.DOTALL)
#: Further than this the rank of an expected entry is not looked for.
_DEPTH = 50
#: So many times as many proposals are tried as are wanted.
_TRIED = 3


@dataclass(frozen=True, slots=True)
class EvalReport:
    """How well a vault answers its saved queries."""

    path: str
    rows: tuple[MethodScore, ...]
    outcomes: tuple[QuestionResult, ...]
    problems: tuple[Problem, ...] = ()
    degraded: tuple[str, ...] = ()

    @property
    def missed(self) -> tuple[QuestionResult, ...]:
        """The questions that found none of what they expect."""
        return tuple(one for one in self.outcomes if one.query.expect and not one.is_found)


@dataclass(frozen=True)
class Evaluation:
    """The verbs eval and ci."""

    _vault: Vault
    _index: VaultIndex
    _contexts: Contexts
    _git: Git
    _searching: Searching
    #: Opens a past vault, and returns its evaluation.
    _open_past: Callable[[Vault], AbstractContextManager[Evaluation]]

    def eval(self) -> EvalReport:
        """Ask the saved queries of `queries.yaml` and measure what is found, beside grep.

        Nothing of it counts as use.
        """
        queries = self.saved_queries()
        if not queries.queries and not queries.problems:
            raise UsageError(
                f"there are no saved queries in {queries_path(self._vault)}",
                "`memory-kb eval --propose 10` proposes some",
            )
        depth = max([_DEPTH, *(one.k for one in queries.queries)])
        modes: dict[str, list[QuestionResult]] = {"auto": [], "text": []}
        degraded: dict[str, None] = {}
        for one in queries.queries:
            for mode, outcomes in modes.items():
                outcome, used, reasons = self._ask_query(one, Request(one.question, limit=depth, mode=mode))
                outcomes.append(outcome)
                degraded |= dict.fromkeys(reasons)
                if used == "text":
                    break
        files = self._index.read(self._files)
        rows = [average_results("memory-kb", modes["auto"])]
        if modes["text"] and len(modes["text"]) == len(modes["auto"]):
            rows.append(average_results("memory-kb, words alone", modes["text"]))
        rows.append(average_results("grep", [grep(one, files) for one in queries.queries]))
        problems = tuple(self._index.read(lambda index: check_queries(self._vault, index)))
        return EvalReport(queries_path(self._vault), tuple(rows), tuple(modes["auto"]), problems, tuple(degraded))

    def eval_propose(self, count: int) -> tuple[SavedQuery, ...]:
        """Propose saved queries from what people asked and from what the notes say; nothing is written.

        Each of them finds today what it expects.
        """
        known = self.saved_queries().queries
        asked = tuple(RetrievalLog(self._vault.machine / "log").read())

        def propose(index: SqliteIndex) -> Sequence[SavedQuery]:
            def frequency(word: str) -> int:
                query = parse_query(word)
                return 0 if query.is_empty else index.frequency(query.expression)

            memories = tuple(index.memories(EVERYTHING))
            return propose_queries(memories, asked, frequency, known, _TRIED * count)

        found = (
            one
            for one in self._index.read(propose)
            if self._ask_query(one, Request(one.question, limit=one.k))[0].is_found
        )
        return tuple(itertools.islice(found, count))

    def ci(
        self, range: str | None = None, *, staged: bool = False, max_tokens: int | None = None, strict: bool = False
    ) -> CiReport:
        """Return what a change of the notes does to recall, to contexts, and to what is wrong with them.

        The queries are those of the later revision; the settings are those of each, under the person's own. The global
        home plays no part, and the ages of both count to today.
        """
        if (range is None) == (not staged):
            raise UsageError("nothing says what to compare", "try: memory-kb ci main..HEAD, or: memory-kb ci --staged")
        repository = self._git.repository()
        sides = _read_range(repository, None if staged else range)
        no_home = self._vault.machine / "revisions" / ".no-home"
        change = read_change(repository, sides[0][1], sides[1][1])
        prefix = repository.prefix(self._vault.folder)
        changed = None if strict else frozenset(path.removeprefix(prefix) for path in change.files)
        past, later = (
            open_past(repository, revision, self._vault, self._vault.clock, no_home) for _, revision in sides
        )
        with self._open_past(past) as old, self._open_past(later) as new:
            queries = [replace(one, max_tokens=one.max_tokens or max_tokens) for one in new.saved_queries().queries]
            known = {one.question for one in old.saved_queries().queries}
            base = old.observe(*sides[0], [one for one in queries if one.question in known], queries, changed)
            head = new.observe(*sides[1], queries, queries, changed)
        report = compare_revisions(base, head, queries_path(self._vault))
        broken, notices = self._find_broken(repository, change, staged=staged)
        report = replace(report, findings=(*report.findings, *broken), notices=(*report.notices, *notices))
        return replace(report, findings=(*report.findings, *report.known), known=()) if strict else report

    def _find_broken(
        self, repository: Repository, change: CheckedCommit, *, staged: bool
    ) -> tuple[list[Problem], list[str]]:
        """Return where a change breaks a rule in force, and which commands of rules were not run, and why."""
        project = repository.prefix(self._vault.folder)
        checks = AllowedChecks(self._vault)
        is_here = staged or change.name == repository.find("HEAD")
        problems, notices = list[Problem](), list[str]()
        for rule in self._index.read(lambda index: guarding_rules(index, ("project",))):
            said = f"breaks rule {rule.id}: {' '.join(rule.text.split())[:200]}"
            try:
                guard = read_guard(rule)
                broken = find_breaches(repository, guard, project, change)
                problems += [Problem(one.path, one.line, said) for one in broken]
            except UsageError as exc:
                problems.append(Problem(rule.path, rule.line, str(exc)))
                continue
            touched = find_covered(guard, project, change.files) if guard.check else None
            if touched and not checks.allows(guard.check):
                notices.append(f"the check of rule {rule.id} was not run: `memory-kb rules allow {rule.id}` allows it")
            elif touched and not is_here:
                notices.append(f"the check of rule {rule.id} was not run: the later revision is not checked out")
            elif touched and (why := run_check(guard.check, self._vault.folder, self._vault.environ)):
                problems.append(Problem(touched, 1, f"{said} ({why})"))
        return problems, notices

    def saved_queries(self) -> Queries:
        """Return the saved queries of this vault."""
        return read_queries(self._vault)

    def _ask_query(self, query: SavedQuery, request: Request) -> tuple[QuestionResult, str, tuple[str, ...]]:
        """Return where a question finds what it should, how it was searched for, and what the search lacked."""
        result = self._searching.search_vault(request)
        return measure_question(query, result.hits), result.mode, result.degraded

    def _files(self, index: SqliteIndex) -> Sequence[GrepFile]:
        """Return the notes as grep sees them."""
        ids: dict[str, list[str]] = {}
        for entry in index.entries(EVERYTHING):
            ids.setdefault(entry.path, []).append(entry.id)
        notes = filter(None, (find_note(self._vault, path) for path in ids))
        return [GrepFile(note.path, note.data.decode("utf-8", "replace"), tuple(ids[note.path])) for note in notes]

    def observe(
        self,
        name: str,
        revision: str,
        asked: Sequence[SavedQuery],
        counted: Sequence[SavedQuery],
        changed: Collection[str] | None,
    ) -> RevisionView:
        """Return all that is compared of this vault; contradictions of the notes that changed, None for all."""
        outcomes = tuple(self._ask_query(one, Request(one.question, limit=max(_DEPTH, one.k)))[0] for one in asked)
        problems, titles = self._index.read(lambda index: self._examine(index, changed))
        contexts: dict[str, Context] = {}
        for query in counted:
            task = query.task or query.question
            contexts[task] = given = self._contexts.context(task, labels=query.labels, files=query.files)
            over = list(given.oversize)
            if query.max_tokens is not None and given.tokens > query.max_tokens:
                over.append(f"the context for {task!r} takes {given.tokens:,} tokens and may take {query.max_tokens:,}")
            problems += tuple(Problem(queries_path(self._vault), 1, said) for said in over)
        return RevisionView(name, revision, self.saved_queries(), outcomes, contexts, problems, titles)

    def _examine(
        self, index: SqliteIndex, changed: Collection[str] | None
    ) -> tuple[tuple[Problem, ...], dict[str, str]]:
        """Return what is wrong with the notes beyond their fields, and what the entries are called."""
        memories = tuple(index.memories(EVERYTHING))
        problems = [*map(_read_warning, self._vault.warnings), *check_queries(self._vault, index)]
        problems += cross_check(self._vault, index, LintCache())
        flagged = {one.path for one in problems if "looks like" in one.message}
        problems += [one for one in self._secrets_in_files(index) if one.path not in flagged]
        is_new = None if changed is None else (lambda memory: memory.path in changed)
        for one in find_contradictions(memories, is_new=is_new):
            sides = f"{one.older.id} ({one.older.title}) and {one.newer.id} ({one.newer.title})"
            said = f"{sides} contradict each other, and no link says so: {one.signal}"
            problems.append(Problem(one.newer.path, one.newer.line, said))
        return tuple(problems), {memory.id: memory.title for memory in memories}

    def _secrets_in_files(self, index: SqliteIndex) -> Iterator[Problem]:
        """Yield the first secret of each file, which may be where nothing is indexed."""
        for file in self._files(index):
            if found := next(locate_secrets(file.text), None):
                yield Problem(file.path, found.line, describe_secret(found).replace("the text", "the file", 1))


def _read_warning(warning: str) -> Problem:
    """Return what is wrong with the settings of a revision, at the line that it names."""
    found = _PLACE.match(warning)
    return Problem(found[1], int(found[2] or 1), found[3]) if found else Problem("memory/config.yaml", 1, warning)


def _read_range(repository: Repository, range: str | None) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the two revisions of a range, each with its name; None is what is staged since the last commit."""
    if range is None:
        staged = ("what is staged", repository.git("write-tree").decode().strip())
        if repository.has_commits:
            return ("HEAD", repository.find("HEAD")), staged
        return ("nothing", repository.git("hash-object", "-t", "tree", os.devnull).decode().strip()), staged
    base, dots, head = range.partition("...") if "..." in range else range.partition("..")
    names = base or "HEAD", head or "HEAD"
    one, other = (repository.find(name) for name in names)
    if dots == "...":
        one = repository.merge_base(one, other)
    return (names[0], one), (names[1], other)
