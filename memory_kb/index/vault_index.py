"""The index of one vault, opened when needed and updated before every read. It is repaired when it is broken."""

from __future__ import annotations

import functools
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeVar, Unpack

from memory_kb.errors import InvalidSettings, VaultBusy
from memory_kb.index.database import (
    BUSY_SECONDS,
    DATABASE,
    LOCK,
    MEMORY,
    explain_unusable,
    identify_file,
    is_damage,
    replace_damaged,
)
from memory_kb.index.sqlite import SqliteIndex
from memory_kb.index.sync import Progress, Regions, needs_writing, survey, sync
from memory_kb.index.watcher_lock import has_watcher, is_confirmed
from memory_kb.model import NOWHERE, Filters, FilterWords, Problem, Region, SyncReport, make_filters
from memory_kb.store.walk import UNLISTED
from memory_kb.text import counted
from memory_kb.vault import GLOBAL_PREFIX, HOME_NOTE, Vault, hold_lock, working_folder

if TYPE_CHECKING:
    from memory_kb.index.embedding import VectorSearch
    from memory_kb.index.team import Team
    from memory_kb.providers.base import Embedder

#: Seconds that a search waits for another process's indexing before it answers from what is there.
_PATIENCE = 1.0
#: Seconds that it waits for the beginnings of a first index.
_PATIENCE_AT_FIRST = 5.0
#: A running watcher is asked before so many files are looked at; in the time that half of that would take.
_LARGE, _SECONDS_PER_FILE = 3_000, 2e-6
#: So many files are looked at while somebody waits who has no time; more are left to a process of its own.
_FEW_FILES = 1_000
#: Seconds that a command which must write waits.
LONG_PATIENCE = 60.0

_T = TypeVar("_T")


class _OutOfTime(Exception):
    """An indexing that took longer than its time limit."""


class Refreshed(NamedTuple):
    """How many files on disk the index still does not hold, and why."""

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
    """The holder of a vault's index, which it hands out ready for use.

    What had to be fixed on the way follows from `take_notices`.
    """

    def __init__(
        self,
        vault: Vault,
        *,
        trusts_watcher: bool = False,
        time_limit: float | None = None,
        choose: Callable[[], Embedder | None] | None = None,
    ) -> None:
        self._vault, self._settings = vault, vault.settings
        self._choose = choose
        self._file = vault.machine / DATABASE
        self._lock = vault.machine / LOCK
        self._mark = vault.seal.sign(b"index") if vault.seal.key else None
        self._opened: SqliteIndex | None = None
        self._opened_as: tuple[int, int] | None = None
        self._notices: tuple[str, ...] = ()
        self._held_up_to_date = self._depth = 0
        #: Seconds after which bringing the index up to date is given up, for whoever has no time to wait.
        self._time_limit = time_limit
        #: Whether the time limit left it to somebody else to bring the index up to date.
        self.is_left_behind = False
        #: Whether files are not compared before reading while a watcher runs.
        self.trusts_watcher = trusts_watcher

    @property
    def index(self) -> SqliteIndex:
        """The open index."""
        return self._open(BUSY_SECONDS if self._time_limit is None else self._time_limit)

    def _open(self, wait: float) -> SqliteIndex:
        if self._opened is None:
            try:
                self._opened = SqliteIndex(self._file, self._settings.index.tokenizer, wait, self._mark)
            except (OSError, sqlite3.OperationalError) as exc:
                reason, hint = explain_unusable(exc, self._file)
                raise InvalidSettings(f"the index {self._file} cannot be opened: {reason}", hint) from exc
            self._opened_as = identify_file(self._file)
            self._notices += self._opened.notices
        return self._opened

    def close(self) -> None:
        """Close the index; it is opened again when it is used again."""
        if self._opened:
            self._opened.close()
            self._opened = None
        if "vector_search" in self.__dict__:
            self.vector_search.close()
        if "team" in self.__dict__:
            self.team.close()

    @functools.cached_property
    def vector_search(self) -> VectorSearch:
        """The embedding models of this vault and their vectors."""
        from memory_kb.index.embedding import VectorSearch, open_vector_search

        return VectorSearch(self._choose, self._file.parent) if self._choose else open_vector_search(self._vault)

    @functools.cached_property
    def team(self) -> Team:
        """The team's index that the person's own configuration names."""
        from memory_kb.index.team import Team

        return Team(self._vault)

    @property
    def may_embed(self) -> bool:
        """Whether the settings allow an embedding model."""
        return self._settings.embeddings.provider != "none"

    @property
    def generation(self) -> int:
        """The number of the index's state; it grows with every change, and is 0 before the first."""
        return self.use(lambda index: index.generation)

    def read(self, work: Callable[[SqliteIndex], _T], *, may_wait: bool = True) -> _T:
        """Read from the index after looking for changed files.

        Without `may_wait`, for whoever holds up all others who write, it is read as it is while another process is
        indexing.
        """

        def read(index: SqliteIndex) -> _T:
            self.refresh(may_wait=may_wait)
            with index.snapshot():
                return work(index)

        return self.use(read)

    def filters(self, **words: Unpack[FilterWords]) -> Filters:
        """Return filters from the words of a caller, the file among them as a path within the project."""
        chosen = make_filters(**words)
        return chosen if chosen.file is None else chosen._replace(file=self.place_file(chosen.file) or NOWHERE)

    def place_file(self, file: str) -> str | None:
        """Return a file's path relative to the project, None for one outside."""
        from memory_kb.store.project_files import locate

        return locate(file, self._vault.project, working_folder())

    def take_notices(self) -> tuple[str, ...]:
        """Return what was fixed since the last call."""
        notices, self._notices = self._notices, ()
        return notices

    def use(self, work: Callable[[SqliteIndex], _T]) -> _T:
        """Do something with the index, again if its file is damaged.

        A file that turns out damaged is rebuilt in between.
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
            kept = replace_damaged(self._file, seen)
            if kept:
                self._notices += (f"{self._file.name} was damaged ({exc}); it is kept as {kept} and rebuilt",)
            self._sync(LONG_PATIENCE)
            return work(self.index)
        finally:
            self._depth -= 1

    def use_as_it_is(self, work: Callable[[SqliteIndex], _T]) -> _T:
        """Do something with the index whatever it lacks, with an empty one where there is none that can be used.

        Nothing is indexed or repaired for it, and nobody is waited for.
        """
        try:
            return work(self._open(0))
        except (InvalidSettings, VaultBusy):
            pass
        except sqlite3.DatabaseError as exc:
            if not is_damage(exc):
                raise
        with closing(SqliteIndex(MEMORY, self._settings.index.tokenizer)) as empty:
            return work(empty)

    def sync(
        self,
        regions: Regions = None,
        *,
        rebuild: bool = False,
        progress: Progress | None = None,
        on_wait: Callable[[], None] | None = None,
        wait: float = LONG_PATIENCE,
    ) -> SyncReport:
        """Bring the index to what the files say, all of them or those of some regions.

        Raises:
            VaultBusy: another process has been indexing for `wait` seconds.
            InvalidSettings: the index cannot be written.
        """
        try:
            report = self.use(lambda _: self._sync(wait, regions, rebuild=rebuild, progress=progress, on_wait=on_wait))
        except (OSError, sqlite3.OperationalError) as exc:
            reason, hint = explain_unusable(exc, self._file)
            raise InvalidSettings(f"the index {self._file} cannot be written: {reason}", hint) from exc
        return report._replace(notices=self.take_notices())

    def refresh(self, progress: Progress | None = None, *, may_wait: bool = True) -> Refreshed:
        """Bring the index up to date before reading from it.

        It waits long for nobody; without `may_wait` only for a first index that holds nothing yet.
        """
        index = self.index
        is_new = self._is_new(index)
        if not is_new and (self._held_up_to_date or self._watcher_confirms(index)):
            return Refreshed()
        if self._time_limit is not None:
            self._refresh_within(self._time_limit, index, is_new=is_new)
            return Refreshed()
        problems: list[Problem] = []
        if not is_new and not needs_writing(self._vault, index, problems=problems):
            return Refreshed(0, _describe_unlisted(problems))
        wait = _PATIENCE if index.generation else _PATIENCE_AT_FIRST
        try:
            report = self._sync(wait if may_wait or not index.generation else 0, progress=progress)
        except VaultBusy:
            return self._behind(index, "another process is indexing") if may_wait else Refreshed()
        except (OSError, sqlite3.OperationalError) as exc:
            if isinstance(exc, sqlite3.Error) and is_damage(exc):
                raise
            return self._behind(index, f"the index cannot be written ({explain_unusable(exc, self._file)[0]})")
        left_out = (
            f"{counted(report.unreadable, 'file')} left out of the search (unreadable); `memory-kb index` lists them"
        )
        unread = (left_out,) if report.unreadable else ()
        return Refreshed(0, unread + _describe_unlisted(report.problems))

    def _watcher_confirms(self, index: SqliteIndex) -> bool:
        """Return whether a watcher keeps the index, so that not all files need be compared."""
        machine = self._file.parent
        if self.trusts_watcher:
            return has_watcher(machine)
        files = index.count_files()
        if files < _LARGE or not is_confirmed(machine, files * _SECONDS_PER_FILE):
            return False
        # The order of events is that of one folder with all below it: what is elsewhere has to be compared.
        regions = [Region(GLOBAL_PREFIX, str(self._vault.home))]
        if self._vault.memory:
            regions.append(Region("", str(self._vault.folder)))
        return not needs_writing(self._vault, index, tuple(regions))

    @contextmanager
    def up_to_date(self) -> Iterator[None]:
        """Compare the files once, and then take the index for up to date while this lasts.

        For a series of steps that announce what they write with `look_into`. What others write
        meanwhile is seen after it; a change that was planned for something else is not made.
        """
        self.use(lambda _: self.refresh())
        self._held_up_to_date += 1
        try:
            yield
        finally:
            self._held_up_to_date -= 1

    def look_into(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Bring the index to what files say that were just written, if it was up to date before.

        Where it was not, or another process is indexing, the next reading finds out by itself:
        nobody who writes waits for an index. So it does where the index cannot be written, which is
        returned in a sentence, since the files are written all the same.
        """
        notes = dict.fromkeys(path for path in paths if path.lower().endswith(".md"))
        regions = tuple(
            Region(GLOBAL_PREFIX, str(self._vault.home))
            if path == HOME_NOTE
            else Region(path, str(self._vault.resolve(path)))
            for path in notes
        )
        try:
            if regions and not self._is_new(self._open(0)):
                self._sync(0, regions)
        except VaultBusy:
            pass
        except (InvalidSettings, OSError, sqlite3.Error) as exc:
            is_said = isinstance(exc, InvalidSettings)
            reason = str(exc) if is_said else f"the index cannot be written: {explain_unusable(exc, self._file)[0]}"
            return (f"{reason}; the notes themselves are written, and the next search looks into them",)
        return ()

    def writing(self) -> AbstractContextManager[None]:
        """Be the one process that writes to the index."""
        return hold_lock(self._lock, LONG_PATIENCE)

    def publish(self, patience: float = LONG_PATIENCE) -> tuple[str, ...]:
        """Bring this vault of the team's index, if there is one, up to date with the index here; return what prevents it.

        Another writer is waited for, at most `patience` seconds.
        """
        if not self._settings.index.url or not self._settings.index.vaults:
            return ()

        def publish(index: SqliteIndex) -> tuple[str, ...]:
            with index.snapshot():
                return self.team.publish(index, patience)

        return self.use(publish)

    def is_behind(self) -> bool:
        """Return whether a sync would find something to do."""
        return self.use(lambda index: self._is_new(index) or needs_writing(self._vault, index))

    def _is_new(self, index: SqliteIndex) -> bool:
        return index.generation == 0 or index.is_partial or index.stale_because(self._fingerprint) is not None

    def _refresh_within(self, seconds: float, index: SqliteIndex, *, is_new: bool) -> None:
        """Bring a small index up to date in so much time; what takes longer is left to somebody else."""
        end = time.monotonic() + seconds

        def check(_: int, __: int) -> None:
            if time.monotonic() > end:
                raise _OutOfTime

        if not is_new and index.has_more_files(_FEW_FILES):
            self.is_left_behind = True
        elif is_new or needs_writing(self._vault, index):
            try:
                self._sync(0, progress=check)
            except _OutOfTime:
                self.is_left_behind = True
            except (VaultBusy, OSError):
                pass
            except sqlite3.OperationalError as exc:
                if is_damage(exc):
                    raise

    def _behind(self, index: SqliteIndex, reason: str) -> Refreshed:
        pending = survey(self._vault, index).pending
        return Refreshed(pending, (f"{reason}; not searched yet: {counted(pending, 'file')}",) if pending else ())

    def _sync(
        self,
        wait: float,
        regions: Regions = None,
        *,
        rebuild: bool = False,
        progress: Progress | None = None,
        on_wait: Callable[[], None] | None = None,
    ) -> SyncReport:
        index = self.index
        with hold_lock(self._lock, wait, on_wait):
            stale = index.stale_because(self._fingerprint)
            if index.generation == 0:
                index.remember_settings(self._fingerprint)
            if stale:
                self._notices += (f"the index is rebuilt: {stale}",)
            report = sync(self._vault, index, regions, rebuild=rebuild or bool(stale), progress=progress)
            index.remember_settings(self._fingerprint)
            return report

    @property
    def _fingerprint(self) -> str:
        """The settings that what is indexed depends on."""
        chosen = self._settings.index
        return f"{chosen.tokenizer}; at most {chosen.max_file_bytes} bytes a file"
