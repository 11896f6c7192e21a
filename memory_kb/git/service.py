"""Install the merge driver, commit what runs did to which entries and why, and open a vault at a revision."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import GitFailed, NoRepository, ProviderFailed, UnknownRun, UsageError
from memory_kb.git.backtest import Backtest, backtest
from memory_kb.git.history import MOST_COMMITS, Version, find_versions
from memory_kb.git.merge_driver import GitSetup, set_up
from memory_kb.git.past_vault import open_past
from memory_kb.git.repository import Repository
from memory_kb.index import listing
from memory_kb.index.link_names import read_metadata
from memory_kb.learning.guards import read_guard
from memory_kb.store.file_edits import find_note
from memory_kb.store.journal import Run
from memory_kb.store.machine_folder import find_command
from memory_kb.store.render_changes import Decision
from memory_kb.store.undo import Undo, choose_run
from memory_kb.text import on_one_line, shorten

if TYPE_CHECKING:
    from memory_kb.index.sqlite import SqliteIndex
    from memory_kb.index.vault_index import VaultIndex
    from memory_kb.memory import Memory
    from memory_kb.providers.protocols import Embedder
    from memory_kb.vault import Vault


@dataclass(frozen=True, slots=True)
class CommitMade:
    """A commit that was made, or would be."""

    repository: str
    commit: str | None
    subject: str
    message: str
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommitReport:
    """The commits of one call, one for each repository that has something to commit."""

    runs: tuple[str, ...]
    commits: tuple[CommitMade, ...] = ()
    notices: tuple[str, ...] = ()


class Git:
    """The verbs git install and commit, an entry's history, and the vault at a revision."""

    def __init__(self, vault: Vault, index: VaultIndex, undo: Undo) -> None:
        self._vault = vault
        self._index = index
        self._undo = undo

    def install(self, *, uninstall: bool = False, dry_run: bool = False) -> GitSetup:
        """Teach the repository around the vault to merge memory files, or take that out again.

        A second time nothing changes.
        """
        repository, folder = self.repository(), self._vault.folder
        command = None if uninstall else find_command(self._vault.environ.get("PATH"))
        return set_up(repository, folder, command, is_memory=self._vault.memory is not None, dry_run=dry_run)

    def commit(
        self, run: str | None = None, *, message: str | None = None, session: str | None = None, dry_run: bool = False
    ) -> CommitReport:
        """Commit exactly the files that a run wrote, and say in the message what was learned.

        What else is staged or changed stays as it is.
        """
        runs = self._undo.done_runs()
        if session is not None:
            runs = [one for one in runs if one.occasion == f"session {session}"]
            if not runs:
                raise UnknownRun(f"session {session}", 0, is_occasion=True)
        elif run is not None:
            runs = list(filter(None, [choose_run(runs, run)]))
        else:
            runs = runs[-1:]
        if not runs:
            return CommitReport((), notices=("no run has written anything yet",))
        notices: list[str] = []
        found = self._repositories(runs, notices)
        made = [self._commit_in(one, runs, paths, message, notices, dry_run=dry_run) for one, paths in found]
        commits = [one for one in made if one]
        if not commits:
            notices.append("nothing to commit: the repository has what was written already")
        return CommitReport(tuple(one.id for one in runs), tuple(commits), tuple(notices))

    def _repositories(self, runs: Sequence[Run], notices: list[str]) -> Iterable[tuple[Repository, dict[str, str]]]:
        """Return the repositories of the files of some runs, each with its files by their path from the top."""
        open_repository = functools.cache(lambda folder: Repository(folder, self._vault.environ))
        found: dict[Path, tuple[Repository, dict[str, str]]] = {}
        lost: NoRepository | GitFailed | None = None
        for path in dict.fromkeys(file.path for run in runs for file in run.written):
            file = self._vault.resolve(path)
            try:
                repository = open_repository(next(place for place in file.parents if place.is_dir()))
                found.setdefault(repository.top, (repository, {}))[1][repository.inner(file) or path] = path
            except (NoRepository, GitFailed) as exc:
                lost = lost or exc
                notices.append(f"{path} is not committed: {exc}")
        if lost and not found:
            raise lost
        return found.values()

    def _commit_in(
        self,
        repository: Repository,
        runs: Sequence[Run],
        paths: dict[str, str],
        subject: str | None,
        notices: list[str],
        *,
        dry_run: bool,
    ) -> CommitMade | None:
        word = repository.half_done()
        if word:
            raise GitFailed(
                f"{repository.top} is in the middle of {word}; nothing was committed",
                "finish or abort it, then run this again",
            )
        ignored = repository.ignored(paths)
        notices += [f"{paths[name]} is ignored by git" for name in paths if name in ignored]
        changed = repository.changed(name for name in paths if name not in ignored)
        files = [name for name in paths if name in changed]
        if not files:
            return None
        for path in (paths[name] for name in files):
            note = find_note(self._vault, path)
            last = [file.after for run in runs for file in run.written if file.path == path][-1]
            if (note and note.hash) != last:
                notices.append(f"{path} was edited since; the commit has that too")
        message = _compose_message(self._gather_lines(runs, {paths[name] for name in files}), runs, subject)
        commit = None
        if not dry_run:
            skipped = repository.skipped_hooks()
            if skipped:
                notices.append(
                    f"hooks of {skipped} were not run: only this repository's own configuration names them (core.hooksPath)"
                )
            commit = repository.commit(files, [name for name in files if changed[name] == "??"], message)
        return CommitMade(str(repository.top), commit, message.partition("\n")[0], message, tuple(files))

    def _gather_lines(self, runs: Sequence[Run], paths: set[str]) -> list[_Line]:
        """Return every entry of some files once, by what was done to it first, with all reasons."""
        found: dict[str, list[Decision]] = {}
        for run in runs:
            for one in run.made:
                if one.path in paths or one.to in paths:
                    found.setdefault(one.entry_id or one.to or one.path, []).append(one)

        def read(index: SqliteIndex) -> dict[str, tuple[str, str]]:
            return {one.id: (one.kind, one.title) for name in found for one in index.entries_with_id(name)}

        named, lines = self._index.read(read), list[_Line]()
        for name, done in found.items():
            path, group = on_one_line(done[-1].to or done[-1].path), _group(done[0])
            kind, title = named.get(name) or ("entry" if done[-1].entry_id else "file", name.rpartition("/")[2])
            why = " ".join(dict.fromkeys(on_one_line(one.reason) for one in done if one.reason))
            text = f"- {group} {kind}: {on_one_line(title)} ({path}){f'. {why}' if why else ''}"
            lines.append(_Line(group, on_one_line(title), shorten(text, _LINE)))
        return lines

    def history(self, wanted: str, *, most: int | None = None) -> tuple[Version, ...]:
        """Return the versions of an entry in the commits, the newest first, also from before its file was renamed."""
        entry = self._index.read(lambda index: listing.find_entry_by_name(self._vault, index, wanted))
        entry_id = entry.id if "id" in read_metadata(entry) else None
        file = self._vault.resolve(entry.path)
        repository = Repository(file.parent, self._vault.environ)
        return find_versions(repository, repository.inner(file) or entry.path, entry_id, most or MOST_COMMITS)

    def vault_at(self, revision: str) -> Vault:
        """Return the vault as it was at a revision.

        Ages count to the day of the commit, the vault's own settings are those of the revision, the
        global home is as it is now. A search is one by words alone: vectors exist only of the notes as they are now.
        """
        repository = self.repository()
        commit = repository.find(revision)
        seconds = int(repository.git("show", "-s", "--format=%ct", commit).split()[0])
        moment = datetime.fromtimestamp(seconds, UTC)
        return open_past(repository, commit, self._vault, lambda: moment)

    def repository(self) -> Repository:
        return Repository(self._vault.folder, self._vault.environ)

    def backtest(self, rule: Memory) -> Backtest:
        """Return which past commits broke a rule that guards, and which of these were fixed within a week."""
        guard, repository = read_guard(rule), self.repository()
        if not (guard.forbid or guard.require):
            raise UsageError(
                f"the check of rule {rule.id} is not run on past commits", "`memory-kb ci` runs it on a change"
            )
        return backtest(repository, guard, repository.prefix(self._vault.folder))

    def refuse_vectors(self) -> Embedder | None:
        """Say that a vault of the past is searched by words alone, where a model is configured."""
        if self._index.vector_search.embedder is not None:
            raise ProviderFailed("vectors exist only of the notes as they are now")
        return None


#: The most characters of the subject and of a line, and lines of the body.
_SUBJECT, _LINE = 72, 240
_MOST_LINES = 60


class _Line(NamedTuple):
    """What was done to an entry, for the message of a commit: `text` is the line, `title` the entry."""

    group: str
    title: str
    text: str


def _compose_message(lines: Sequence[_Line], runs: Sequence[Run], subject: str | None) -> str:
    """Return the message for what some runs did."""
    topics = [f"{count} {group}" for group, count in Counter(line.group for line in lines).items()]
    if len(lines) == 1:
        topics = [f"{lines[0].group} {lines[0].title}"]
    occasions = list(dict.fromkeys(run.occasion for run in runs if run.occasion))
    about = f" ({on_one_line(occasions[0])})" if len(occasions) == 1 else ""
    first = shorten(f"memory: {', '.join(topics) or 'files'}", _SUBJECT - len(about)) + about
    body = [line.text for line in lines[:_MOST_LINES]]
    if len(lines) > _MOST_LINES:
        body.append(f"- and {len(lines) - _MOST_LINES} more")
    return "\n".join((subject.strip() if subject and subject.strip() else first, "", *body)) + "\n"


def _group(one: Decision) -> str:
    if one.action.startswith("undo "):
        return "reverted"
    return {"create": "learned", "move": "moved", "remove": "removed"}.get(one.action, "changed")
