"""One stretch of watching: from opening an index until something else stands in its place."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import MemoryKBError, VaultBusy
from memory_kb.index.afterwork import Afterwork, Step
from memory_kb.index.attendance import Attendance
from memory_kb.index.hearing import Hearing
from memory_kb.index.keeper import IndexKeeper, count_files
from memory_kb.index.marks import Batch, Marks
from memory_kb.index.presence import Presence
from memory_kb.index.stopping import Stop, Stopped
from memory_kb.model import Problem, SyncReport
from memory_kb.notes.vault import Vault
from memory_kb.notes.walk import Reach
from memory_kb.reports import WatchReport
from memory_kb.settings import Settings

if TYPE_CHECKING:
    from memory_kb.index.indexer import Progress

#: Seconds between two looks at whether vault, index and configuration are still the same, while
#: something happens and when nothing does. Most of what they find is signalled as well; waking up
#: an idle machine costs more than the look.
_BEAT_SECONDS, _CALM_BEAT_SECONDS = 0.9, 5.0
#: Seconds after which nothing seems to happen any more.
_CALM_AFTER = 10.0
#: Seconds that a signal of a change may come later than the change.
_LAG_SECONDS = 0.25
#: Seconds to wait for another process's indexing before looking around again.
_LOCK_SECONDS = 0.5
_POLL_SECONDS = 1.0
#: Looking at everything takes no more than a 150th of a processor and a tenth of a disk.
_CPU_SHARE, _DISK_SHARE = 150, 10
#: Seconds before another attempt at what failed.
_SHORTEST_DELAY, _LONGEST_DELAY = 0.3, 60.0


class Watched(NamedTuple):
    """What is watched: a vault, its settings, its machine folder and an index of the watcher's own.

    `asked` is the path that the vault was asked for by. The steps are taken after each batch, and
    when nothing has happened for `watch.reconcile_seconds`.
    """

    asked: str
    vault: Vault
    settings: Settings
    machine: Path
    keeper: IndexKeeper
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Audience:
    """Who follows a watcher.

    Attributes:
        on_batch: told of every batch that changed something, and of the first comparison.
        on_notice: told in one sentence what a person should know: how the vault is watched, what failed.
        progress: told of the files done during the first comparison.
    """

    on_batch: Callable[[WatchReport], None]
    on_notice: Callable[[str], None]
    progress: Progress | None = None


class Watch:
    """A stretch of watching. It ends when it is stopped or what it watches was replaced."""

    def __init__(
        self,
        watched: Watched,
        find: Callable[[], Vault],
        audience: Audience,
        stop: threading.Event,
        *,
        poll: bool | None,
    ) -> None:
        self._watched, self._audience, self._stop = watched, audience, stop
        self._setting = watched.settings.watch
        self._presence = Presence(watched.vault, watched.machine, watched.asked, find)
        self._marks = Marks(self._setting.debounce)
        self._hearing = Hearing(watched.vault, self._marks, stop, poll=self._setting.poll if poll is None else poll)
        self._afterwork = Afterwork(watched.steps)
        self._attendance = Attendance(watched.machine)
        self._owed: Batch | None = None
        self._active_at = self._retry_at = self._beat_at = self._look_at = self._idle_at = self._delay = 0.0
        self._complaints: set[str] = set()
        self._remarks: set[str] = set()
        self._problems: frozenset[Problem] = frozenset()
        self._generation = 0
        self._has_begun = self._is_over = False
        if isinstance(stop, Stop):
            stop.wakes(self._marks.alarm)

    def close(self) -> None:
        """Give index, watches and threads back."""
        if isinstance(self._stop, Stop):
            self._stop.forget(self._marks.alarm)
        self._attendance.end()
        self._hearing.close()
        self._afterwork.close()
        self._watched.keeper.close()

    def run(self, cause: str) -> None:
        """Keep the index up to date; the first batch looks at everything."""
        self._owed = Batch(cause, None)
        while not self._ends():
            self._turn()
            self._marks.wait(self._pause())

    def _ends(self) -> bool:
        return self._is_over or self._stop.is_set()

    def _turn(self) -> None:
        """Do what is due now."""
        now = time.monotonic()
        is_alarmed = self._marks.take_alarm()
        if is_alarmed or self._owed or self._marks.ripens_in() is not None:
            self._active_at = now
        if is_alarmed or now >= self._beat_at:
            self._look_around()
        if not self._owed and not self._ends():
            if self._marks.ripens_in() == 0:
                self._owed = self._marks.take()
            elif now >= self._look_at:
                self._owed = self._compare()
        if self._ends():
            return
        self._pass_on_remarks()
        if self._owed and now >= self._retry_at:
            self._settle(self._owed)
        elif not self._owed and now >= self._idle_at:
            self._ask_for_more()

    def _pause(self) -> float:
        now = time.monotonic()
        ends = [self._beat_at]
        if self._owed:
            ends.append(self._retry_at)
        else:
            ripens_in = self._marks.ripens_in()
            ends += [self._look_at, self._idle_at] + ([] if ripens_in is None else [now + ripens_in])
        return 0.0 if self._ends() else max(0.0, min(ends) - now)

    def _look_around(self) -> None:
        """Look whether the same things are still in their places, and signals still come."""
        now = time.monotonic()
        is_calm = not self._owed and now - self._active_at > _CALM_AFTER
        # An event that cannot wake us has to be looked at often.
        self._beat_at = now + (_CALM_BEAT_SECONDS if is_calm and isinstance(self._stop, Stop) else _BEAT_SECONDS)
        if self._presence.is_over():
            self._is_over = True
        elif self._hearing.has_lost_events():
            self._owed = Batch("overflow", None)
        elif reason := self._hearing.give_up():
            self._look_at = 0.0
            # Before the first batch is told, this is part of telling how the vault is watched.
            if self._has_begun:
                self._audience.on_notice(f"{reason}; looking for changes at intervals from now on")

    def _compare(self) -> Batch | None:
        """Look at everything, whatever was heard; return what should be brought in."""
        cpu, started, known = time.thread_time(), time.monotonic(), self._generation
        try:
            is_behind = self._watched.keeper.is_behind(Reach(enter=self._hearing.enter))
            self._generation = self._watched.keeper.index.generation
        except Stopped:
            return None
        except (MemoryKBError, OSError, sqlite3.Error):
            is_behind = True
        cost = max(_CPU_SHARE * (time.thread_time() - cpu), _DISK_SHARE * (time.monotonic() - started))
        self._look_at = time.monotonic() + max(cost, self._interval())
        if not is_behind:
            return None
        # What was found may be half written, and a signal of it may be on its way.
        self._marks.wait(max(self._setting.debounce, _LAG_SECONDS))
        if self._hearing.is_polling:
            return Batch("poll", None)
        is_surprise = self._marks.ripens_in() is None and known == self._generation
        return self._marks.take()._replace(cause="reconcile" if is_surprise else "events", regions=None)

    def _interval(self) -> float:
        return _POLL_SECONDS if self._hearing.is_polling else self._setting.reconcile_seconds

    def _settle(self, batch: Batch) -> None:
        """Bring the index to what the files in a batch say, or arrange for another attempt."""
        if self._presence.is_over():
            self._is_over = True
            return

        def check(done: int) -> None:
            if self._stop.is_set():
                raise Stopped
            if self._audience.progress and batch.cause == "start":
                self._audience.progress(done)

        keeper = self._watched.keeper
        try:
            report = keeper.sync(Reach(batch.regions, self._hearing.enter), progress=check, wait=_LOCK_SECONDS)
            generation = keeper.index.generation
        except (VaultBusy, Stopped):
            return
        except (MemoryKBError, OSError, sqlite3.Error) as exc:
            self._fail(batch, exc)
            return
        self._owed, self._delay, self._complaints = None, 0.0, set()
        self._look_around()
        self._publish(batch, report, generation)
        self._ask_for_more()

    def _fail(self, batch: Batch, error: Exception) -> None:
        if self._presence.is_over():
            self._is_over = True
            return
        # What fails once may just have been in the middle of something.
        if self._delay:
            self._tell_once(f"{error}; trying again", self._complaints)
        self._delay = min(_LONGEST_DELAY, max(_SHORTEST_DELAY, 3 * self._delay))
        self._retry_at = time.monotonic() + self._delay
        self._owed = Batch(batch.cause, None)

    def _tell_once(self, sentence: str, told: set[str]) -> None:
        if sentence not in told:
            told.add(sentence)
            self._audience.on_notice(sentence)

    def _publish(self, batch: Batch, report: SyncReport, generation: int) -> None:
        problems = tuple(problem for problem in report.problems if problem not in self._problems)
        self._problems = frozenset(report.problems) | (self._problems if batch.regions is not None else frozenset())
        if batch.regions is None:
            self._look_at = max(self._look_at, time.monotonic() + self._interval())
        files = report.unchanged + report.added + report.changed
        for notice in report.notices:
            self._audience.on_notice(notice)
        if batch.cause == "start":
            self._audience.on_notice(
                f"watching {self._watched.vault.folder}: {count_files(files)}, {self._hearing.how}"
            )
        if batch.cause == "start" or not report.is_empty or problems:
            counts = (report.added, report.changed, report.removed)
            self._audience.on_batch(WatchReport(batch.cause, *counts, problems, report.seconds, generation, files))
        if not self._has_begun:
            self._attendance.begin()
        self._has_begun, self._generation = True, generation
        if batch.cause == "reconcile" and not report.is_empty:
            reason = self._hearing.be_surprised()
            self._owed = Batch("events", None)
            if reason:
                self._audience.on_notice(f"{reason}; looking for them at intervals from now on")

    def _pass_on_remarks(self) -> None:
        remarks = self._afterwork.take_sentences()
        # What failed because the vault is gone is no news.
        self._is_over = self._is_over or (bool(remarks) and self._presence.is_over())
        for remark in () if self._is_over else remarks:
            self._tell_once(remark, self._remarks)

    def _ask_for_more(self) -> None:
        self._idle_at = time.monotonic() + self._setting.reconcile_seconds
        self._afterwork.ask()
