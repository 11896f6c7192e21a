"""The index of one vault, opened when needed and updated before every read. It is repaired when it is broken."""

import functools
import os
import sqlite3
import sys
import time
from _thread import get_ident
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar, Unpack

from memory_kb.errors import InvalidSettings, VaultBusy
from memory_kb.index.database import BUSY_SECONDS, LOCK, explain_unusable, identify_file, is_damage, replace_damaged
from memory_kb.index.port import Progress
from memory_kb.index.schema import VECTORS
from memory_kb.index.sqlite import SqliteIndex
from memory_kb.index.sync import Regions, SyncRun, compare_with_disk, has_changed_files
from memory_kb.machine_seal import sign
from memory_kb.model import NOWHERE, Filters, FilterWords, Problem, SyncReport, make_filters
from memory_kb.regular_files import DATABASE, open_for_appending
from memory_kb.store.walk import UNLISTED
from memory_kb.text import pluralize
from memory_kb.vault import GLOBAL_PREFIX, Vault, hold_lock, working_folder

if TYPE_CHECKING:
    from memory_kb.index.team import Team
    from memory_kb.index.vector_search import VectorSearch
    from memory_kb.providers.protocols import Embedder

#: Seconds that a search waits for another process's indexing before it answers from what is there.
_SEARCH_WAIT_SECONDS = 1.0
#: Seconds that it waits for the beginnings of a first index.
_FIRST_INDEX_WAIT_SECONDS = 5.0
#: With this many files or more, a running watcher is asked before they are compared.
_LARGE = 500
#: Its answer is waited for this long, or for the time that the comparison of fewer files takes.
_SECONDS_PER_FILE, _LEAST_SECONDS = 2e-6, 0.005
#: With a time limit, at most this many files are compared; more are left to a process in the background.
_FEW_FILES = 1_000
#: Held by a watcher from its first comparison on; the system releases it however the process ends.
WATCHER_LOCK = "watcher.lock"
#: The folder in a machine folder of the questions that searches ask a watcher.
QUESTIONS = "questions"
#: How long they sleep between two looks for an answer.
_POLL_SECONDS = 0.001
#: Seconds that a command which must write waits for the index lock.
INDEX_LOCK_SECONDS = 60.0

_T = TypeVar("_T")


class _OutOfTime(Exception):
    """An indexing that took longer than its time limit."""


class Refreshed(NamedTuple):
    """The number of files that the index still lacks after an update, and the reasons, in sentences for the user."""

    pending: int = 0
    reasons: tuple[str, ...] = ()


def _describe_unlisted(problems: Iterable[Problem]) -> tuple[str, ...]:
    """Say which folders could not be looked into: the notes in them are not searched."""
    folders = sorted(problem.path for problem in problems if problem.message.startswith(UNLISTED))
    if not folders:
        return ()
    more = f" and {len(folders) - 1:,} more folders" if len(folders) > 1 else ""
    return (f"{folders[0]}{more} cannot be listed; notes in there are not searched",)


class VaultIndex:
    """Opens, repairs and updates the index of one vault.

    `use` and `read` call a function with the open `SqliteIndex`, which has the queries. In services `self._index` is
    this class, and a parameter `index` is the open `SqliteIndex`. `take_notices` returns what was repaired.
    """

    def __init__(
        self,
        vault: Vault,
        *,
        time_limit: float | None = None,
        choose: "Callable[[], Embedder | None] | None" = None,
    ) -> None:
        self._vault, self._settings = vault, vault.settings
        self._choose = choose
        self._file = vault.machine / DATABASE
        self._lock = vault.machine / LOCK
        self._mark = sign(vault.seal, b"index") if vault.seal else None
        self._opened: SqliteIndex | None = None
        self._opened_as: tuple[int, int] | None = None
        self._notices: tuple[str, ...] = ()
        self._held_up_to_date = self._depth = 0
        #: Seconds after which an update before reading is given up; None for no limit.
        self._time_limit = time_limit
        #: Whether an update was too long to wait for, so that a process in the background should do it.
        self.needs_background_update = False

    @property
    def index(self) -> SqliteIndex:
        """The open index."""
        return self._open(BUSY_SECONDS if self._time_limit is None else self._time_limit)

    def _open(self, wait: float) -> SqliteIndex:
        if self._opened is None:
            with self._explained("opened"):
                self._opened = SqliteIndex(self._settings.index.tokenizer, self._file, wait, self._mark)
            self._opened_as = identify_file(self._file)
            self._notices += self._opened.notices
        return self._opened

    @contextmanager
    def _explained(self, done: str) -> Iterator[None]:
        """Raise what keeps the index from being opened, replaced or written, other than damage, with what to do."""
        try:
            yield
        except (OSError, sqlite3.OperationalError) as exc:
            if is_damage(exc):
                raise
            reason, hint = explain_unusable(exc, self._file)
            raise InvalidSettings(f"the index {self._file} cannot be {done}: {reason}", hint) from exc

    def close(self) -> None:
        """Close the index; it is opened again when it is used again."""
        if self._opened:
            self._opened.close()
            self._opened = None
        if "vector_search" in self.__dict__:
            self.vector_search.close()
        if "team" in self.__dict__:
            self.team.close()

    def use(self, work: Callable[[SqliteIndex], _T]) -> _T:
        """Call `work` with the open index and return its result.

        If the file proves damaged, it is replaced and rebuilt, and `work` is called again.
        """
        if self._opened and not self._depth and self._opened.is_frozen:
            # Perhaps there is room again, and another process has written.
            self.close()
        self._depth += 1
        try:
            return work(self.index)
        except sqlite3.DatabaseError as exc:
            if not is_damage(exc):
                raise
            # What cannot even be opened is what is there now.
            seen = self._opened_as if self._opened else identify_file(self._file)
            self.close()
            with self._explained("replaced"):
                kept = replace_damaged(self._file, seen)
            if kept:
                self._notices += (f"{self._file.name} was damaged ({exc}); it is kept as {kept} and rebuilt",)
            self._sync_locked(INDEX_LOCK_SECONDS)
            return work(self.index)
        finally:
            self._depth -= 1

    def use_as_it_is(self, work: Callable[[SqliteIndex], _T]) -> _T:
        """Call `work` with the index without updating, repairing or waiting, and return its result.

        If the index cannot be opened, or its file is damaged, `work` is called with an empty one.
        """
        try:
            return work(self._open(0))
        except (InvalidSettings, VaultBusy):
            pass
        except sqlite3.DatabaseError as exc:
            if not is_damage(exc):
                raise
        with closing(SqliteIndex(self._settings.index.tokenizer)) as empty:
            return work(empty)

    def take_notices(self) -> tuple[str, ...]:
        """Return what was repaired since the last call, in sentences, and forget it."""
        notices, self._notices = self._notices, ()
        return notices

    def read(self, work: Callable[[SqliteIndex], _T], *, may_wait: bool = True) -> _T:
        """Update the index, then call `work` within one snapshot of it and return its result.

        Without `may_wait`, while another process is indexing, the index is read as it is. This is for callers who hold
        the lock for writing and would keep all other writers waiting.
        """

        def read(index: SqliteIndex) -> _T:
            self.refresh(may_wait=may_wait)
            with index.snapshot():
                return work(index)

        return self.use(read)

    def refresh(
        self, progress: Progress | None = None, *, may_wait: bool = True, ask_watcher: bool = True
    ) -> Refreshed:
        """Update the index before it is read, and return what it still lacks.

        It waits a few seconds at most for another process; without `may_wait` it waits only for a first index that is
        empty. Without `ask_watcher` the files are compared even if a watcher keeps the index up to date.
        """
        index = self.index
        must_build = self._must_build(index)
        if self._held_up_to_date and not must_build:
            return Refreshed()
        regions = self.unconfirmed_regions(index) if ask_watcher else None
        if regions == ():
            return Refreshed()
        if self._time_limit is not None:
            self._refresh_within(self._time_limit, index, must_build=must_build)
            return Refreshed()
        problems: list[Problem] = []
        if not must_build and not has_changed_files(self._vault, index, regions, problems):
            return Refreshed(0, _describe_unlisted(problems))
        wait = _SEARCH_WAIT_SECONDS if index.generation else _FIRST_INDEX_WAIT_SECONDS
        try:
            report = self._sync_locked(wait if may_wait or not index.generation else 0, regions, progress=progress)
        except VaultBusy:
            return self._describe_pending(index, "another process is indexing") if may_wait else Refreshed()
        except InvalidSettings as exc:
            return self._describe_pending(index, str(exc))
        reasons = _describe_unlisted(report.problems)
        if report.unreadable:
            left_out = f"{pluralize(report.unreadable, 'file')} left out of the search (unreadable)"
            reasons = (f"{left_out}; `memory-kb index` lists them", *reasons)
        return Refreshed(0, reasons)

    def _must_build(self, index: SqliteIndex) -> bool:
        return index.generation == 0 or index.is_partial or index.stale_because(self._fingerprint) is not None

    def unconfirmed_regions(self, index: SqliteIndex) -> Regions:
        """Return the regions whose files have to be compared: None for all, unless a watcher keeps the index."""
        machine = self._file.parent
        if self._must_build(index) or identify_file(self._file) != self._opened_as:
            return None  # a watcher keeps the index that is there now
        if self._vault.trusts_watcher:
            return () if has_watcher(machine) else None
        files = index.count_files()
        seconds = max(_LEAST_SECONDS, files * _SECONDS_PER_FILE)
        # No watcher answers on other systems.
        if files < _LARGE or sys.platform != "linux" or not is_confirmed(machine, seconds):
            return None
        # The order of events is that of one folder with all below it: what is elsewhere has to be compared.
        return (GLOBAL_PREFIX, "") if self._vault.memory else (GLOBAL_PREFIX,)

    def _refresh_within(self, seconds: float, index: SqliteIndex, *, must_build: bool) -> None:
        """Update a small index; a large one, or one that takes longer, is left to a process in the background."""
        end = time.monotonic() + seconds

        def check(_: int, __: int) -> None:
            if time.monotonic() > end:
                raise _OutOfTime

        if not must_build and index.has_more_files(_FEW_FILES):
            self.needs_background_update = True
        elif must_build or has_changed_files(self._vault, index):
            try:
                self._sync_locked(0, progress=check)
            except _OutOfTime:
                self.needs_background_update = True
            except (VaultBusy, InvalidSettings):
                pass

    def _describe_pending(self, index: SqliteIndex, reason: str) -> Refreshed:
        differences = compare_with_disk(self._vault, index)
        pending = len(differences.added) + len(differences.changed) + len(differences.removed)
        return Refreshed(pending, (f"{reason}; not searched yet: {pluralize(pending, 'file')}",) if pending else ())

    @contextmanager
    def up_to_date(self) -> Iterator[None]:
        """Compare the files once, and then treat the index as up to date while this lasts.

        For a series of steps that announce what they write with `index_written`. What others write
        meanwhile is seen after it; a change that was planned for something else is not made.
        """
        self.use(lambda _: self.refresh())
        self._held_up_to_date += 1
        try:
            yield
        finally:
            self._held_up_to_date -= 1

    def sync(
        self,
        *,
        rebuild: bool = False,
        progress: Progress | None = None,
        on_wait: Callable[[], None] | None = None,
        wait: float = INDEX_LOCK_SECONDS,
    ) -> SyncReport:
        """Update the index from all files, and return what changed.

        Raises:
            VaultBusy: another process has been indexing for `wait` seconds.
            InvalidSettings: the index cannot be written.
        """
        report = self.use(lambda _: self._sync_locked(wait, rebuild=rebuild, progress=progress, on_wait=on_wait))
        return report._replace(notices=self.take_notices())

    def _sync_locked(
        self,
        wait: float,
        regions: Regions = None,
        *,
        rebuild: bool = False,
        progress: Progress | None = None,
        on_wait: Callable[[], None] | None = None,
    ) -> SyncReport:
        """Take the index lock, then compare and write; rebuild if the settings changed."""
        index = self.index
        with self._explained("written"), hold_lock(self._lock, wait, on_wait):
            stale = index.stale_because(self._fingerprint)
            if index.generation == 0:
                index.remember_settings(self._fingerprint)
            if stale:
                self._notices += (f"the index is rebuilt: {stale}",)
            report = SyncRun(self._vault, index, regions, progress).run(rebuild=rebuild or bool(stale))
            index.remember_settings(self._fingerprint)
            return report

    @property
    def _fingerprint(self) -> str:
        """The settings that the content of the index depends on."""
        chosen = self._settings.index
        return f"{chosen.tokenizer}; at most {chosen.max_file_bytes} bytes a file"

    def needs_sync(self) -> bool:
        """Return whether a sync would find something to do."""
        return self.use(lambda index: self._must_build(index) or has_changed_files(self._vault, index))

    def index_written(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Index files that were just written; return sentences about what failed.

        Does nothing if the index was not up to date or another process holds the lock: the next `read` updates it, and
        no writer waits for the index. If the index cannot be written, a sentence says so; the files are written anyway.
        """
        regions = tuple(dict.fromkeys(path for path in paths if path.lower().endswith(".md")))
        try:
            if regions and not self._must_build(self._open(0)):
                self._sync_locked(0, regions)
        except VaultBusy:
            pass  # whoever holds the lock, or the next search, indexes it
        except (InvalidSettings, sqlite3.Error) as exc:
            return (f"{exc}; the notes themselves are written, and the next search looks into them",)
        return ()

    def writing(self) -> AbstractContextManager[None]:
        """Hold the lock of the index."""
        return hold_lock(self._lock, INDEX_LOCK_SECONDS)

    def publish(self, patience: float = INDEX_LOCK_SECONDS) -> tuple[str, ...]:
        """Update this vault's part of the team's index, if there is one, from the index here; return what prevents it.

        Another writer is waited for, at most `patience` seconds.
        """

        def publish(index: SqliteIndex) -> tuple[str, ...]:
            with index.snapshot():
                return self.team.publish(index, patience)

        return self.use(publish) if self._settings.index.url and self._settings.index.vaults else ()

    def filters(self, **words: Unpack[FilterWords]) -> Filters:
        """Return filters from the words of a caller, the file among them as a path within the project."""
        chosen = make_filters(**words)
        return chosen if chosen.file is None else chosen._replace(file=self.place_file(chosen.file) or NOWHERE)

    def place_file(self, file: str) -> str | None:
        """Return a file's path relative to the project, None for one outside."""
        from memory_kb.store.project_files import path_in_project

        return path_in_project(file, self._vault.project, working_folder())

    @property
    def generation(self) -> int:
        """The number of the index's state; it grows with every change, and is 0 before the first."""
        return self.use(lambda index: index.generation)

    @property
    def may_embed(self) -> bool:
        """Whether the settings allow an embedding model; with a time limit, only where there are vectors already."""
        is_allowed = self._settings.embeddings.provider != "none"
        return is_allowed and (self._time_limit is None or self.index.read_meta(VECTORS) is not None)

    @functools.cached_property
    def vector_search(self) -> "VectorSearch":
        """The embedding models of this vault and their vectors."""
        from memory_kb.index.vector_search import VectorSearch, open_vector_search

        return VectorSearch(self._choose, self._file.parent) if self._choose else open_vector_search(self._vault)

    @functools.cached_property
    def team(self) -> "Team":
        """The team's index that the person's own configuration names."""
        from memory_kb.index.team import Team

        return Team(self._vault)


def has_watcher(machine: Path) -> bool:
    """Return whether any watcher keeps the index in a machine folder."""
    file = machine / WATCHER_LOCK
    try:
        if file.exists():
            with hold_lock(file, 0.0, is_shared=True):  # so that two who ask do not take each other for a watcher
                pass
    except VaultBusy:
        return True
    except OSError:
        pass
    return False


def is_confirmed(machine: Path, seconds: float) -> bool:
    """Return whether a watcher answers within `seconds` that the index is up to date.

    The question is an empty file in a folder below the notes. The system announces it after every earlier change below
    the same folder; when the index holds those, the watcher deletes it.
    """
    if not has_watcher(machine):
        return False
    question = machine / QUESTIONS / f"{os.getpid()}-{get_ident()}-{time.monotonic_ns()}"
    end = time.monotonic() + seconds
    try:
        open_for_appending(question).close()
    except OSError:
        return False
    while question.exists() and time.monotonic() <= end:
        time.sleep(_POLL_SECONDS)
    try:
        question.unlink()
    except FileNotFoundError:  # answered, perhaps in the last moment
        return True
    return False
