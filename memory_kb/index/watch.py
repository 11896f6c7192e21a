"""Update an index while files change.

A file event only says that something changed; what changed is found by comparing disk and index. Where no events
arrive, this is done at intervals.
"""

from __future__ import annotations

import math
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import MemoryKBError, VaultBusy
from memory_kb.index.file_events import ChangeSignal, Observer
from memory_kb.index.vault_index import VaultIndex, count_files
from memory_kb.index.watcher_lock import WatcherLock, confirm, identify, prepare_questions
from memory_kb.model import Problem, SyncReport
from memory_kb.reports import WatchReport
from memory_kb.store.walk import UNLISTED
from memory_kb.vault import Vault

if TYPE_CHECKING:
    from memory_kb.index.sync import Progress

#: Work that follows a batch, in a thread of its own. It opens an index of its own, ends soon after the event is
#: set, and returns what a person should know.
Step = Callable[[threading.Event], Iterable[str]]

#: Seconds between two looks whether the watch should end and the vault is still the same.
_BEAT_SECONDS = 0.5
_POLL_SECONDS = 1.0
#: Seconds that an event may come later than its change.
_LAG_SECONDS = 0.25
#: Seconds to wait for another process's indexing before looking around again.
_LOCK_SECONDS = 0.5
#: Looking at everything takes no more than a 150th of a processor and a tenth of a disk.
_CPU_SHARE, _DISK_SHARE = 150, 10
#: Seconds before another attempt at what failed.
_SHORTEST_DELAY, _LONGEST_DELAY = 0.3, 5.0
#: Seconds that steps are given to end.
_END_SECONDS = 0.3
#: So many changes without an event show that none come here.
_MOST_SURPRISES = 2


class Watched(NamedTuple):
    """A vault as it was opened for watching, with an index of the watcher's own.

    `asked` is the path that the vault was opened by. The steps are taken after each batch, and
    when nothing has happened for `watch.reconcile_seconds`. `close` closes the index and what the steps use.
    """

    asked: str
    vault: Vault
    keeper: VaultIndex
    steps: tuple[Step, ...]
    close: Callable[[], None]


class Audience(NamedTuple):
    """Who receives each batch that changed something, sentences for a person, and the progress of the first comparison."""

    on_batch: Callable[[WatchReport], None]
    on_notice: Callable[[str], None]
    progress: Progress | None = None


class Watch:
    """A watch from opening an index until something else is in its place."""

    def __init__(
        self,
        watched: Watched,
        audience: Audience,
        stop: threading.Event,
        *,
        poll: bool | None,
    ) -> None:
        self._watched, self._audience, self._stop = watched, audience, stop
        self._setting = watched.vault.settings.watch
        self._identity = identify(watched.vault, watched.asked)
        self._changes = ChangeSignal(self._setting.debounce)
        self._background = Background(watched.steps)
        self._lock = WatcherLock(watched.vault.machine)
        self._observer: Observer | None = None
        self._questions: list[str] = []
        self._how = "polling"
        self._retry_at = self._look_at = self._idle_at = self._delay = 0.0
        self._surprises = 0
        self._said: set[str] = set()
        self._problems: frozenset[Problem] = frozenset()
        prepare_questions(watched.vault.machine)
        if not (self._setting.poll if poll is None else poll):
            self._observe()

    def close(self) -> None:
        """End all threads and close the index."""
        self._lock.release()
        if self._observer:
            self._observer.close()
        self._background.close()
        self._watched.close()

    def run(self, cause: str) -> None:
        """Keep the index up to date; the first batch looks at everything."""
        due: str | None = cause
        while not self._stop.is_set() and not self._has_changed():
            # First of all: what was changed before a question has been noted, or is known to be lost, by now.
            self._questions += self._changes.take_questions()
            due = due or self._find_cause()
            for sentence in self._background.take_sentences():
                self._say_once(sentence)
            now = time.monotonic()
            if due and now >= self._retry_at:
                due = self._sync(due)
            elif not due and now >= self._idle_at:
                self._start_background()
            if self._questions and not due:
                self._answer()
            self._changes.wait(self._pause(due))

    def _has_changed(self) -> bool:
        return identify(self._watched.vault, self._watched.asked) != self._identity

    def _answer(self) -> None:
        """Record for searches that the index holds every change made before they asked, if that is certain."""
        questions, self._questions = self._questions, []
        has_unlisted = any(problem.message.startswith(UNLISTED) for problem in self._problems)
        if sys.platform == "linux" and self._observer and not self._surprises and not has_unlisted:
            confirm(self._watched.vault.machine, questions)

    def _pause(self, due: str | None) -> float:
        now = time.monotonic()
        ends = [self._retry_at] if due else [self._look_at, self._idle_at]
        ripens_in = _BEAT_SECONDS if due else self._changes.ripens_in()
        return max(0.0, min(_BEAT_SECONDS, ripens_in, *(end - now for end in ends)))

    def _find_cause(self) -> str | None:
        """Return why everything has to be compared now, or None."""
        if self._observer and self._observer.has_lost.is_set():
            self._changes.take()
            self._observe()
            return "overflow"
        if self._observer and not self._observer.is_alive():
            self._poll("the reader of file events has died; looking for changes at intervals from now on")
        ripens_in = self._changes.ripens_in()
        if ripens_in <= 0 or (self._questions and math.isfinite(ripens_in)):
            self._changes.take()
            return "events"
        if time.monotonic() < self._look_at or not self._is_behind():
            return None
        # What was found may be half written, and an event of it may be on its way.
        self._changes.wait(max(self._setting.debounce, _LAG_SECONDS))
        was_announced = self._changes.take()
        return "poll" if self._observer is None else "events" if was_announced else "reconcile"

    def _is_behind(self) -> bool:
        """Compare everything, and arrange when to do it again."""
        cpu, started = time.thread_time(), time.monotonic()
        try:
            is_behind = self._watched.keeper.is_behind()
        except (MemoryKBError, OSError, sqlite3.Error):
            is_behind = True
        cost = max(_CPU_SHARE * (time.thread_time() - cpu), _DISK_SHARE * (time.monotonic() - started))
        self._look_at = time.monotonic() + max(cost, self._interval())
        return is_behind

    def _interval(self) -> float:
        return self._setting.reconcile_seconds if self._observer else _POLL_SECONDS

    def _sync(self, cause: str) -> str | None:
        """Bring the index to what the files say; return the cause again if that has to wait."""

        def check(done: int, total: int) -> None:
            if self._stop.is_set():
                raise _Stopped
            if self._audience.progress and cause == "start":
                self._audience.progress(done, total)

        keeper = self._watched.keeper
        try:
            report = keeper.sync(progress=check, wait=_LOCK_SECONDS)
            generation = keeper.index.generation
        except (VaultBusy, _Stopped):
            return cause
        except (MemoryKBError, OSError, sqlite3.Error) as exc:
            # What fails once may just have been in the middle of something.
            if self._delay:
                self._say_once(f"{exc}; trying again")
            self._delay = next_delay(self._delay)
            self._retry_at = time.monotonic() + self._delay
            return cause
        self._delay = 0.0
        self._look_at = max(self._look_at, time.monotonic() + self._interval())
        self._publish(cause, report, generation)
        self._start_background()
        return None

    def _publish(self, cause: str, report: SyncReport, generation: int) -> None:
        new = tuple(problem for problem in report.problems if problem not in self._problems)
        self._problems = frozenset(report.problems)
        files = report.unchanged + report.added + report.changed
        for notice in report.notices:
            self._audience.on_notice(notice)
        if cause == "start":
            self._audience.on_notice(f"watching {self._watched.vault.folder}: {count_files(files)}, {self._how}")
        if cause == "start" or not report.is_empty or new:
            counts = (report.added, report.changed, report.removed)
            self._audience.on_batch(WatchReport(cause, *counts, new, report.seconds, generation, files))
        if cause in ("start", "reopened"):
            self._lock.acquire()
        if cause == "reconcile" and not report.is_empty:
            self._surprises += 1
            if self._surprises >= _MOST_SURPRISES:
                self._poll(
                    "changes come here that the system does not announce; looking for them at intervals from now on"
                )
            else:
                self._observe()

    def _observe(self) -> None:
        """Listen to file events anew, or poll where that cannot be."""
        if self._observer:
            self._observer.close()
        try:
            self._observer, self._how = Observer(self._watched.vault, self._changes), "native events"
        except (ImportError, OSError, RuntimeError) as exc:
            self._observer, self._how = None, f"polling because {exc}"

    def _poll(self, notice: str) -> None:
        if self._observer:
            self._observer.close()
        self._observer, self._look_at = None, 0.0
        self._audience.on_notice(notice)

    def _say_once(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            self._audience.on_notice(sentence)

    def _start_background(self) -> None:
        self._idle_at = time.monotonic() + self._setting.reconcile_seconds
        self._background.start()


class _Stopped(Exception):
    """The watch was stopped in the middle of a sync."""


class Background:
    """A thread that takes all steps when it is started; started meanwhile, it takes them once more."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps, self._stop = steps, threading.Event()
        self._sentences: list[str] = []
        self._is_wanted = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Take all steps, after those that are being taken."""
        self._is_wanted = bool(self._steps)
        self._go_on()

    def take_sentences(self) -> tuple[str, ...]:
        """Return what the steps had to say since the last call, and begin those that are due."""
        self._go_on()
        sentences = tuple(self._sentences)
        del self._sentences[: len(sentences)]
        return sentences

    def close(self) -> None:
        """Signal the running step to end, and wait a little for it."""
        self._stop.set()
        if self._thread:
            self._thread.join(_END_SECONDS)

    def _go_on(self) -> None:
        if self._is_wanted and not (self._thread and self._thread.is_alive()):
            self._is_wanted = False
            self._thread = threading.Thread(target=self._run, name="memory-kb background", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        for step in self._steps:
            try:
                self._sentences += () if self._stop.is_set() else step(self._stop)
            except (MemoryKBError, OSError, sqlite3.Error) as exc:
                self._sentences.append(str(exc))


def next_delay(delay: float) -> float:
    """Return the seconds before another attempt at what failed, from those before this one."""
    return min(_LONGEST_DELAY, max(_SHORTEST_DELAY, 3 * delay))
