"""Keep the index up to date while files change: file events, a debounce, and a comparison of disk and index.

Where no events arrive, the comparison is made at intervals.
"""

from __future__ import annotations

import contextlib
import math
import queue
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from memory_kb.errors import MemoryKBError, VaultBusy
from memory_kb.index.port import Progress
from memory_kb.index.vault_index import QUESTIONS, WATCHER_LOCK, VaultIndex
from memory_kb.index.vector_search import open_vector_search
from memory_kb.model import Problem, SyncReport
from memory_kb.regular_files import make_folder
from memory_kb.reports import WatchReport
from memory_kb.store.open_vault import reopen_vault
from memory_kb.store.walk import UNLISTED
from memory_kb.text import pluralize
from memory_kb.vault import Vault, hold_lock, identify_vault

if TYPE_CHECKING:
    from memory_kb.index.file_events import FileEvents

#: Work that follows a batch, in a thread of its own. It opens an index of its own, ends soon after the event is
#: set, and returns what a person should know.
Step = Callable[[threading.Event], Iterable[str]]
Notify = Callable[[str], None]

#: Seconds between two looks whether the watch should end and the vault is still the same.
_BEAT_SECONDS = 0.5
_POLL_SECONDS = 1.0
#: A burst, such as a git checkout, is waited for as long as this.
_BURST_SECONDS = 5.0
#: Seconds to wait for another process's indexing before looking around again.
_LOCK_SECONDS = 0.5
#: Comparing everything takes no more than a 150th of a processor.
_CPU_SHARE = 150
#: Seconds before another attempt at what failed.
_RETRY_SECONDS = 1.0
#: Seconds that background steps are given to end.
_END_SECONDS = 0.3
_FAILURES = (MemoryKBError, OSError, sqlite3.Error)


class Watching:
    """The verb watch."""

    def __init__(self, vault: Vault, idle_steps: tuple[Step, ...] = ()) -> None:
        self._vault = vault
        self._idle_steps = idle_steps

    def watch(
        self,
        on_batch: Callable[[WatchReport], None] | None = None,
        *,
        on_notice: Notify | None = None,
        stop: threading.Event | None = None,
        poll: bool | None = None,
        progress: Progress | None = None,
        maintain: bool = False,
    ) -> None:
        """Keep the index up to date until `stop` is set, or for ever.

        This blocks; run it in a thread of its own beside other work. It uses an index connection of its own, and any
        number of processes may watch one vault, which may be moved away and back. `on_batch` receives the first
        comparison and then every batch that changed something, `on_notice` sentences for a person. `poll` overrides
        the setting `watch.poll`. `maintain` does the maintenance that is due when nothing has changed for
        `watch.reconcile_seconds`.
        """
        stop, notify = stop or threading.Event(), on_notice or (lambda _: None)
        vault, cause, failure = self._vault, "start", ""
        while not stop.is_set():
            try:
                vault = reopen_vault(vault)
                polls = vault.settings.watch.poll if poll is None else poll
                watch = _Watch(vault, stop, on_batch or (lambda _: None), notify, polls=polls)
            except _FAILURES as exc:
                if cause == "start":
                    raise
                if str(exc) != failure:
                    failure = str(exc)
                    notify(f"{failure}; trying again")
                stop.wait(_RETRY_SECONDS)
                continue
            if failure:
                notify(f"{vault.folder} can be watched again")
            with contextlib.closing(watch):
                watch.run(cause, self._idle_steps if maintain else (), progress)
            cause, failure = "reopened", ""


class _Watch:
    """A watch over one open index, until another vault is in its place or file events stop."""

    def __init__(
        self,
        vault: Vault,
        stop: threading.Event,
        on_batch: Callable[[WatchReport], None],
        notify: Notify,
        *,
        polls: bool,
    ) -> None:
        self._vault, self._stop = vault, stop
        self._on_batch, self._notify = on_batch, notify
        #: None for a change, or the question of a search, in the order of the file events.
        self._events: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        #: Whether a comparison ever found a change that no file event had announced; then no search is confirmed.
        self._has_missed = False
        #: The problems of the last sync; only new ones are reported.
        self._problems: frozenset[Problem] = frozenset()
        #: Why the last sync failed, empty if it did not; the same reason is reported once.
        self._failure = ""
        self._has_lock = False
        self._opened = contextlib.ExitStack()
        self._index = VaultIndex(vault)
        self._opened.callback(self._index.close)
        self._index.use(lambda _: None)  # makes what `identify_vault` looks at
        self._identity = identify_vault(vault)
        self._file_events, self._how = (None, "polling") if polls else self._observe()
        self._interval = vault.settings.watch.reconcile_seconds if self._file_events else _POLL_SECONDS
        #: The time of the monotonic clock at which everything is compared again.
        self._compare_at = 0.0

    def _observe(self) -> tuple[FileEvents | None, str]:
        """Begin to receive file events if there are any here, and return how changes are noticed."""
        with contextlib.suppress(OSError):
            make_folder(self._vault.machine / QUESTIONS)
        try:
            from memory_kb.index.file_events import FileEvents

            found = FileEvents(self._vault, self._events.put)
        except (ImportError, OSError, RuntimeError) as exc:
            reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else exc
            return None, f"polling because file events are not available ({reason})"
        self._opened.callback(found.close)
        return found, "native events"

    def close(self) -> None:
        """End the observer and its thread of background steps, and close the index."""
        self._opened.close()

    def run(self, cause: str, idle_steps: Iterable[Step], progress: Progress | None) -> None:
        """Keep the index up to date; the first batch compares everything."""
        cause_due: str | None = cause
        question: str | None = None
        steps = (*_open_steps(self._vault, self._opened), *idle_steps)
        background = Background(steps, self._vault.settings.watch.reconcile_seconds, self._notify)
        self._opened.callback(background.close)
        cause_without_event = "reconcile" if self._file_events else "poll"
        # Each turn: sync if there is a cause, confirm a waiting search, then wait for events.
        while not self._stop.is_set() and identify_vault(self._vault) == self._identity:
            if self._file_events and not self._file_events.is_alive():
                return
            # Not before: what a step could not do since the vault is gone is no news.
            background.report()
            if cause_due and self._sync(cause_due, progress):
                cause_due = None
                background.start()
            if not cause_due:
                self._take_lock()
                self._confirm(question)
                # What is found may be half written, and an event of it may be on its way.
                has_differences = self._compare_if_due()
                has_changed, question = self._next_events()
                cause_due = "events" if has_changed else cause_without_event if has_differences else None

    def _take_lock(self) -> None:
        if not self._has_lock:
            with contextlib.suppress(OSError, VaultBusy):
                self._opened.enter_context(hold_lock(self._vault.machine / WATCHER_LOCK, 0.0))
                self._has_lock = True

    def _next_events(self) -> tuple[bool, str | None]:
        """Wait for a change, then for a pause; return whether notes changed, and the question of a search after that.

        A pause of `watch.debounce` may never come while somebody saves on and on.
        """
        has_changed, now = False, time.monotonic()
        until, latest = now + _BEAT_SECONDS, math.inf
        with contextlib.suppress(queue.Empty):
            while not self._stop.is_set():
                question = self._events.get(timeout=max(0.0, until - now))
                if question:
                    return has_changed, question
                now = time.monotonic()
                latest = min(latest, now + _BURST_SECONDS)
                has_changed, until = True, min(now + self._vault.settings.watch.debounce, latest)
        return has_changed, None

    def _confirm(self, question: str | None) -> None:
        """Confirm to a search that the index holds every change made before it asked, if that is certain."""
        has_unlisted = any(problem.message.startswith(UNLISTED) for problem in self._problems)
        is_certain = sys.platform == "linux" and self._file_events and not self._has_missed and not has_unlisted
        if question and is_certain:
            with contextlib.suppress(OSError):
                (self._vault.machine / QUESTIONS / question).unlink()

    def _compare_if_due(self) -> bool:
        """Return whether a sync is needed; False without a comparison before it is time for one."""
        if time.monotonic() < self._compare_at:
            return False
        started = time.thread_time()
        try:
            return self._index.needs_sync()
        except _FAILURES:
            return True
        finally:
            self._compare_after(_CPU_SHARE * (time.thread_time() - started))

    def _compare_after(self, seconds: float) -> None:
        self._compare_at = max(self._compare_at, time.monotonic() + max(seconds, self._interval))

    def _sync(self, cause: str, progress: Progress | None) -> bool:
        """Update the index; return whether that could be done now."""

        def check(done: int, total: int) -> None:
            if self._stop.is_set():
                raise _Stopped
            if progress and cause == "start":
                progress(done, total)

        try:
            report = self._index.sync(progress=check, wait=_LOCK_SECONDS)
            generation = self._index.index.generation
        except (VaultBusy, _Stopped):
            return False
        except _FAILURES as exc:
            if str(exc) != self._failure:
                self._failure = str(exc)
                self._notify(f"{exc}; trying again")
            self._stop.wait(_RETRY_SECONDS)
            return False
        self._failure = ""
        self._compare_after(0.0)
        self._record(cause, report, generation)
        return True

    def _record(self, cause: str, report: SyncReport, generation: int) -> None:
        """Remember the problems of a sync and whether no event announced its changes, and report what is new."""
        new = tuple(problem for problem in report.problems if problem not in self._problems)
        self._problems = frozenset(report.problems)
        files = report.unchanged + report.added + report.changed
        for notice in report.notices:
            self._notify(notice)
        if cause == "start":
            self._notify(f"watching {self._vault.folder}: {pluralize(files, 'file')}, {self._how}")
        if cause == "start" or not report.is_empty or new:
            counts = (report.added, report.changed, report.removed)
            self._on_batch(WatchReport(cause, *counts, new, report.seconds, generation, files))
        self._has_missed = self._has_missed or (cause == "reconcile" and not report.is_empty)


class _Stopped(Exception):
    """The watch was stopped in the middle of a sync."""


class Background:
    """A thread that runs all steps when it is started, and again when nothing has started it for some seconds."""

    def __init__(self, steps: Sequence[Step], seconds: float, notify: Notify) -> None:
        self._steps, self._seconds, self._notify = steps, seconds, notify
        self._stop, self._is_wanted = threading.Event(), threading.Event()
        self._sentences: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reported: set[str] = set()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Run all steps; if they are running, run them once more after that."""
        self._is_wanted.set()
        if self._steps and not self._thread:
            self._thread = threading.Thread(target=self._run, name="memory-kb background", daemon=True)
            self._thread.start()

    def report(self) -> None:
        """Report the sentences of the steps, each once, in the thread that asks."""
        while not self._sentences.empty():
            sentence = self._sentences.get()
            if sentence not in self._reported:
                self._reported.add(sentence)
                self._notify(sentence)

    def close(self) -> None:
        """Signal the running step to end, and wait a little for it."""
        self._stop.set()
        self._is_wanted.set()
        if self._thread:
            self._thread.join(_END_SECONDS)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._is_wanted.wait(self._seconds)
            self._is_wanted.clear()
            for step in self._steps:
                try:
                    for sentence in () if self._stop.is_set() else step(self._stop):
                        self._sentences.put(sentence)
                except _FAILURES as exc:
                    self._sentences.put(str(exc))


def _open_steps(vault: Vault, opened: contextlib.ExitStack) -> Iterator[Step]:
    """Yield the steps that follow each batch, with an index of their own: send it to the team's index, and embed it."""
    index, embedded = VaultIndex(vault), 0
    if vault.settings.embeddings.provider != "none":
        vector_search = open_vector_search(vault)
        opened.callback(vector_search.close)

    def publish(_: threading.Event) -> Iterable[str]:
        with contextlib.closing(index):
            return index.publish()

    def embed(stop: threading.Event) -> Iterator[str]:
        nonlocal embedded
        # Where another process embeds, or writes, the next look finds what is left.
        with contextlib.closing(index), contextlib.suppress(VaultBusy):
            made = index.use(lambda one: vector_search.embed(one, stop=stop, wait=0.0))
            embedded += made.embedded
            if made.embedded:
                yield f"embedded {pluralize(made.embedded, 'passage')}, {embedded:,} so far"
            if made.reason:
                yield made.reason

    if vault.settings.index.url:
        yield publish
    if vault.settings.embeddings.provider != "none":
        yield embed
