"""The verbs index, doctor, lint and cache prune."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from memory_kb.errors import InvalidSettings, UnreadableInput
from memory_kb.index.database import explain_unusable
from memory_kb.index.port import Progress
from memory_kb.index.sqlite import SqliteIndex
from memory_kb.index.sync import pending_passages
from memory_kb.model import Problem, SyncReport
from memory_kb.regular_files import DATABASE, SESSIONS_DATABASE
from memory_kb.store.machine_folder import adopt
from memory_kb.vault import Vault

if TYPE_CHECKING:
    from memory_kb.index.vault_index import VaultIndex
    from memory_kb.index.vector_search import Estimate
    from memory_kb.index.vectors import Pruned
    from memory_kb.reports import Findings
    from memory_kb.store.writer import Writer


class Indexing:
    """The verbs index (`sync`), cache prune, doctor and lint; `find_further` returns the problems of other rooms."""

    def __init__(
        self,
        vault: Vault,
        index: VaultIndex,
        get_writer: Callable[[], Writer],
        find_further: Callable[[], Iterable[Problem]],
    ) -> None:
        self._vault = vault
        self._index = index
        self._get_writer = get_writer
        self._find_further = find_further

    def sync(
        self,
        *,
        rebuild: bool = False,
        embed: bool = True,
        progress: Progress | None = None,
        embed_progress: Progress | None = None,
        on_wait: Callable[[], None] | None = None,
    ) -> SyncReport:
        """Update the index, the team's index, and with a provider the vectors; return what changed.

        `rebuild` starts from nothing but keeps vectors. A provider that fails is reported in the
        report's notices; the words are indexed all the same.

        Raises:
            VaultBusy: another process has been indexing for a minute.
        """
        report = self._index.sync(rebuild=rebuild, progress=progress, on_wait=on_wait)
        report = report._replace(notices=report.notices + self._index.publish())
        if not embed or not self._index.may_embed:
            return report
        made = self._index.use(
            lambda index: self._index.vector_search.embed(index, progress=embed_progress, on_wait=on_wait)
        )
        reasons = ((made.reason,) if made.reason else ()) + self._index.publish()
        return report._replace(embedded=made.embedded, notices=tuple(dict.fromkeys(report.notices + reasons)))

    def estimate(self) -> Estimate | None:
        """Return what `sync` would embed, and what that costs; None without a provider.

        Nothing is written: files that are not indexed yet are read for it.
        """
        if not self._index.may_embed:
            return None
        return self._index.use(
            lambda index: self._index.vector_search.estimate(index, pending_passages(self._vault, index))
        )

    def prune_cache(self, *, keep_days: float = 30.0, max_bytes: int | None = None, dry_run: bool = False) -> Pruned:
        """Delete cached vectors of texts that no note has any more.

        Those of use within the last `keep_days` stay, unless the cache is larger than `max_bytes`:
        a branch that is checked out again should not have to be paid for again.
        """
        before = (datetime.now(UTC) - timedelta(days=keep_days)).isoformat(timespec="seconds")

        def prune(index: SqliteIndex) -> Pruned:
            self._index.refresh()
            with self._index.writing():
                used = frozenset(passage.hash for passage in index.vectors.passages())
                return index.vectors.cache.prune(used, before, max_bytes, dry_run=dry_run)

        return self._index.use(prune)

    def adopt(self, *, dry_run: bool = False) -> tuple[str, ...]:
        """Take over the sessions and vectors of a machine folder that was set aside; return sentences about it.

        Its unfinished runs are never taken over.
        """
        with self._get_writer().lock(), self._index.writing():
            self._index.close()
            try:
                return adopt(self._vault.machine, dry_run=dry_run)
            except OSError as exc:
                raise UnreadableInput(f"what was set aside cannot be taken over: {exc}") from exc

    def _machine_problems(self) -> tuple[Problem, ...]:
        """Report a machine folder that git tracks: what others commit into it would count as ours."""
        from memory_kb.store.git_command import tracks

        folder, machine = self._vault.folder, self._vault.machine
        if not machine.is_relative_to(folder) or not tracks(machine, self._vault.environ):
            return ()
        path = machine.relative_to(folder).as_posix()
        message = f"git tracks this folder, which belongs to one machine; `git rm -r --cached {path}` takes it out"
        return (Problem(path, 1, message),)

    def doctor(self, *, fix: bool = False) -> Findings:
        """Examine notes and index.

        `fix` completes a run that was killed, makes an index anew that is wrong, and deletes what killed writes left.
        """
        from memory_kb.index.doctor import keep_last, sweep_leftovers
        from memory_kb.reports import Findings

        repaired = list(self._get_writer().recover()) if fix else []
        killed = self._get_writer().killed_run()
        problems = self.check_index()
        if fix:
            if problems:
                self.sync(rebuild=True)
                repaired += [f"{problem}: the index was rebuilt" for problem in problems]
                problems = ()
            repaired += [f"{file}: left by a write that was killed, deleted" for file in sweep_leftovers(self._vault)]
        found = (*killed, *problems, *self.lint())
        self._index.use(lambda index: keep_last(self._vault, index, "doctor", found))
        return Findings(found, tuple(repaired))

    def check_index(self) -> tuple[Problem, ...]:
        """Return how the index differs from the files."""
        from memory_kb.index.doctor import check_index

        return self._index.use(lambda index: tuple(check_index(self._vault, index)))

    def lint(self, paths: Sequence[str] = ()) -> tuple[Problem, ...]:
        """Return what should be fixed in the notes; with `paths`, in those at or below one of them."""
        from memory_kb.index import doctor

        with self._index.up_to_date():
            further = (*self._find_further(), *self._machine_problems())
            return self._index.read(lambda index: doctor.lint(self._vault, index, paths, further))


@contextmanager
def _explain_leftovers(vault: Vault) -> Iterator[None]:
    """Say why deleted text may still be in a database that cannot be rewritten, such as on a full disk."""
    try:
        yield
    except (OSError, sqlite3.OperationalError) as exc:
        reason, hint = explain_unusable(exc, vault.machine / DATABASE)
        message = f"deleted text may still be in {vault.machine / DATABASE}, which cannot be rewritten: {reason}"
        raise InvalidSettings(message, f"{hint}; then purge again") from exc


def scrub_all(vault_index: VaultIndex, vault: Vault) -> tuple[str, ...]:
    """Update both databases and leave no byte of deleted rows in them; return what could not be done."""
    from contextlib import closing

    from memory_kb.index.session_index import SessionIndex

    vault_index.sync()
    with _explain_leftovers(vault), vault_index.writing():
        is_clean = vault_index.use(lambda index: index.scrub())
    vault_index.sync()
    left = () if is_clean else (f"another process still reads {DATABASE}; end it and purge again",)
    if not (vault.machine / SESSIONS_DATABASE).exists():
        return left
    with _explain_leftovers(vault), closing(SessionIndex(vault.machine, vault.seal)) as sessions:
        is_clean = sessions.scrub()
    return left if is_clean else (*left, f"another process still reads {SESSIONS_DATABASE}; end it and purge again")


def drop_vectors(vault_index: VaultIndex, vault: Vault, is_gone: Callable[[str], bool]) -> None:
    """Delete the cached vectors of the chunks for whose text `is_gone` returns true."""

    def drop(index: SqliteIndex) -> None:
        gone: list[str] = []
        for key, passages in itertools.groupby(index.vectors.passages(), key=lambda passage: passage.key):
            chunk = index.chunks([key])[key]
            if is_gone(f"{chunk.title}\n{chunk.headings}\n\n{chunk.content}"):
                gone += [passage.hash for passage in passages]
        index.vectors.cache.discard(gone)

    vault_index.sync()
    with _explain_leftovers(vault), vault_index.writing():
        vault_index.use(drop)
