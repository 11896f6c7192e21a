"""Keep the index up to date while files change: file events, a debounce, and a comparison of disk and index.

Where no events arrive, the comparison is made at intervals.
"""

from __future__ import annotations

import contextlib
import math
import os
import queue
import sqlite3
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import MemoryKBError, VaultBusy, VaultNotFound
from memory_kb.index.embedding import open_vector_search
from memory_kb.index.sync import Progress
from memory_kb.index.vault_index import VaultIndex, count_files
from memory_kb.index.watcher_lock import WatcherLock, confirm, prepare_questions
from memory_kb.model import Problem, SyncReport
from memory_kb.reports import WatchReport
from memory_kb.store.machine_folder import prepare_machine
from memory_kb.store.walk import UNLISTED
from memory_kb.vault import MACHINE, Vault

if TYPE_CHECKING:
    from pathlib import Path

    from memory_kb.index.file_events import Observer

#: Work that follows a batch, in a thread of its own. It opens an index of its own, ends soon after the event is
#: set, and returns what a person should know.
Step = Callable[[threading.Event], Iterable[str]]

#: Seconds between two looks whether the watch should end and the vault is still the same.
_BEAT_SECONDS = 0.5
_POLL_SECONDS = 1.0
#: A burst, such as a git checkout, is waited for as long as this.
_BURST_SECONDS = 5.0
#: Seconds to wait for another process's indexing before looking around again.
_LOCK_SECONDS = 0.5
#: Looking at everything takes no more than a 150th of a processor.
_CPU_SHARE = 150
#: Seconds before another attempt at what failed.
_RETRY_SECONDS = 1.0
#: Seconds that steps are given to end.
_END_SECONDS = 0.3
_FAILURES = (MemoryKBError, OSError, sqlite3.Error)


class Audience(NamedTuple):
    """Who receives each batch that changed something, sentences for a person, and the progress of the first comparison."""

    on_batch: Callable[[WatchReport], None]
    on_notice: Callable[[str], None]
    progress: Progress | None = None


class Watching:
    """The verb watch."""

    def __init__(
        self, vault: Vault, reopen: Callable[[], Vault], idle_steps: Callable[[], tuple[Step, ...]] = tuple
    ) -> None:
        self._vault = vault
        self._reopen = reopen
        self._idle_steps = idle_steps

    def watch(
        self,
        on_batch: Callable[[WatchReport], None] | None = None,
        *,
        on_notice: Callable[[str], None] | None = None,
        stop: threading.Event | None = None,
        poll: bool | None = None,
        progress: Progress | None = None,
        maintain: bool = False,
    ) -> None:
        """Keep the index up to date until `stop` is set, or for ever.

        This blocks; run it in a thread of its own beside other work. It uses an index connection of
        its own, and any number of processes may watch one vault. The vault may be moved away and
        back, its index deleted, its configuration changed.

        Args:
            on_batch: receives the first comparison, and then every batch that changed something.
            on_notice: receives in a sentence how the vault is watched, and what fails meanwhile.
            stop: ends the watch when it is set, within a second.
            poll: compare at intervals instead of waiting for file events; None leaves it to
                `watch.poll`, and is overridden where no events come.
            progress: receives the number of files done during the first comparison.
            maintain: do the maintenance that is due when nothing has changed for
                `watch.reconcile_seconds`.
        """
        audience = Audience(on_batch or _ignore, on_notice or _ignore, progress)
        stop = stop or threading.Event()
        cause, memory, failure = "start", None, ""
        while not stop.is_set():
            try:
                vault = self._open(memory)
                watch = Watch(vault, self._vault.named[0], audience, stop, poll=poll)
            except _FAILURES as exc:
                if cause == "start":
                    raise
                if str(exc) != failure:
                    failure = str(exc)
                    audience.on_notice(f"{failure}; trying again")
                stop.wait(_RETRY_SECONDS)
                continue
            if failure:
                audience.on_notice(f"{vault.folder} can be watched again")
            with contextlib.closing(watch):
                watch.run(cause, self._idle_steps() if maintain else ())
            cause, memory, failure = "reopened", vault.memory, ""

    def _open(self, memory: Path | None) -> Vault:
        """Open the vault once more; one whose `memory/` is gone has not become a plain folder."""
        if memory:
            if not memory.is_dir():
                raise VaultNotFound(f"{memory} is gone")
            prepare_machine(memory / MACHINE, os.environ, [memory])  # it may be all that makes this a vault
        return self._reopen()


class Watch:
    """A watch from opening an index until something else is in its place, or no events come any more."""

    def __init__(
        self, vault: Vault, asked: str, audience: Audience, stop: threading.Event, *, poll: bool | None
    ) -> None:
        self._vault, self._asked, self._audience, self._stop = vault, asked, audience, stop
        self._setting = vault.settings.watch
        #: None for a change, or the question of a search, in the order of the file events.
        self._events: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._lock = WatcherLock(vault.machine)
        self._observer: Observer | None = None
        self._how = "polling"
        self._look_at = 0.0
        self._has_missed = False
        self._problems: frozenset[Problem] = frozenset()
        self._failure = ""
        self._index = VaultIndex(vault)
        self._index.use(lambda _: None)  # makes what `identify` looks at
        self._identity = identify(vault, asked)
        prepare_questions(vault.machine)
        if not (self._setting.poll if poll is None else poll):
            self._observe()

    def _observe(self) -> None:
        try:
            from memory_kb.index.file_events import Observer

            self._observer, self._how = Observer(self._vault, self._events.put), "native events"
        except (ImportError, OSError, RuntimeError) as exc:
            reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else exc
            self._how = f"polling because file events are not available ({reason})"

    def close(self) -> None:
        """End the observer and close the index."""
        self._lock.release()
        if self._observer:
            self._observer.close()
        self._index.close()

    def run(self, cause: str, idle_steps: Iterable[Step]) -> None:
        """Keep the index up to date; the first batch looks at everything."""
        due: str | None = cause
        question: str | None = None
        with contextlib.ExitStack() as opened:
            steps = (*open_steps(self._vault, opened), *idle_steps)
            background = Background(steps, self._setting.reconcile_seconds, self._audience.on_notice)
            opened.callback(background.close)
            while not self._stop.is_set() and self._goes_on():
                background.report()
                if not due and self._is_behind():
                    # What was found may be half written, and an event of it may be on its way.
                    is_announced, question = self._next_events()
                    due = "events" if is_announced else "reconcile" if self._observer else "poll"
                if due and self._sync(due):
                    due = None
                    background.start()
                if not due:
                    self._answer(question)
                    has_changed, question = self._next_events()
                    due = "events" if has_changed else None

    def _goes_on(self) -> bool:
        is_observed = self._observer is None or self._observer.is_alive()
        return is_observed and identify(self._vault, self._asked) == self._identity

    def _next_events(self) -> tuple[bool, str | None]:
        """Wait a beat for a change, and then for a pause; return whether notes changed, and a question asked after that.

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
                has_changed, until = True, min(now + self._setting.debounce, latest)
        return has_changed, None

    def _answer(self, question: str | None) -> None:
        """Record for a search that the index holds every change made before it asked, if that is certain."""
        has_unlisted = any(problem.message.startswith(UNLISTED) for problem in self._problems)
        is_certain = sys.platform == "linux" and self._observer and not self._has_missed and not has_unlisted
        if question and is_certain:
            confirm(self._vault.machine, question)

    def _is_behind(self) -> bool:
        """Compare everything if it is time for that, and arrange when to do it again."""
        if time.monotonic() < self._look_at:
            return False
        started = time.thread_time()
        try:
            return self._index.is_behind()
        except _FAILURES:
            return True
        finally:
            self._look_again_after(_CPU_SHARE * (time.thread_time() - started))

    def _look_again_after(self, seconds: float) -> None:
        interval = self._setting.reconcile_seconds if self._observer else _POLL_SECONDS
        self._look_at = max(self._look_at, time.monotonic() + max(seconds, interval))

    def _sync(self, cause: str) -> bool:
        """Bring the index to what the files say; return whether that could be done now."""

        def check(done: int, total: int) -> None:
            if self._stop.is_set():
                raise _Stopped
            if self._audience.progress and cause == "start":
                self._audience.progress(done, total)

        try:
            report = self._index.sync(progress=check, wait=_LOCK_SECONDS)
            generation = self._index.index.generation
        except (VaultBusy, _Stopped):
            return False
        except _FAILURES as exc:
            if str(exc) != self._failure:
                self._failure = str(exc)
                self._audience.on_notice(f"{exc}; trying again")
            self._stop.wait(_RETRY_SECONDS)
            return False
        self._failure = ""
        self._look_again_after(0.0)
        self._publish(cause, report, generation)
        return True

    def _publish(self, cause: str, report: SyncReport, generation: int) -> None:
        new = tuple(problem for problem in report.problems if problem not in self._problems)
        self._problems = frozenset(report.problems)
        files = report.unchanged + report.added + report.changed
        for notice in report.notices:
            self._audience.on_notice(notice)
        if cause == "start":
            self._audience.on_notice(f"watching {self._vault.folder}: {count_files(files)}, {self._how}")
        if cause == "start" or not report.is_empty or new:
            counts = (report.added, report.changed, report.removed)
            self._audience.on_batch(WatchReport(cause, *counts, new, report.seconds, generation, files))
        if cause in ("start", "reopened"):
            self._lock.acquire()
        self._has_missed = self._has_missed or (cause == "reconcile" and not report.is_empty)


class _Stopped(Exception):
    """The watch was stopped in the middle of a sync."""


class Background:
    """A thread that takes all steps when it is started, and again when nothing has started it for some seconds."""

    def __init__(self, steps: Sequence[Step], seconds: float, on_notice: Callable[[str], None]) -> None:
        self._steps, self._seconds, self._on_notice = steps, seconds, on_notice
        self._stop, self._is_wanted = threading.Event(), threading.Event()
        self._sentences: deque[str] = deque()
        self._reported: set[str] = set()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Take all steps, once more after those that are being taken."""
        self._is_wanted.set()
        if self._steps and not self._thread:
            self._thread = threading.Thread(target=self._run, name="memory-kb background", daemon=True)
            self._thread.start()

    def report(self) -> None:
        """Report what the steps had to say, each sentence once."""
        while self._sentences:
            sentence = self._sentences.popleft()
            if sentence not in self._reported:
                self._reported.add(sentence)
                self._on_notice(sentence)

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
                    self._sentences += () if self._stop.is_set() else step(self._stop)
                except _FAILURES as exc:
                    self._sentences.append(str(exc))


def open_steps(vault: Vault, opened: contextlib.ExitStack) -> Iterator[Step]:
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
            made = index.use(lambda one: vector_search.embed(lambda: one.vectors, stop=stop, wait=0.0))
            embedded += made.embedded
            if made.embedded:
                yield f"embedded {made.embedded:,} passage{'' if made.embedded == 1 else 's'}, {embedded:,} so far"
            if made.reason:
                yield made.reason

    if vault.settings.index.url:
        yield publish
    if vault.settings.embeddings.provider != "none":
        yield embed


def identify(vault: Vault, asked: str) -> object:
    """Return what differs when something else, or nothing, is in the place of a vault or of its configuration.

    `asked` is the path that the vault was opened by, which may be a link.
    """
    roots, machine = [root.folder for root in vault.roots], vault.machine
    folders: list[Path | str] = [asked, vault.folder, *roots, machine, machine / ".memory.db"]
    # One in `memory/` makes a plain folder a vault.
    files = [vault.home / "config.yaml", vault.config_file, vault.folder / "memory" / "config.yaml"]
    return [_state(folder)[:2] for folder in folders], [_state(file) for file in files]


def _state(place: Path | str) -> tuple[int, ...]:
    try:
        state = os.stat(place)
    except OSError:
        return ()
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns


def _ignore(_: object) -> None:
    pass
