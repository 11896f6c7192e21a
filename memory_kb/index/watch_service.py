"""The verb watch: update, embed and publish the index while files change."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator

from memory_kb.errors import MemoryKBError, VaultBusy, VaultNotFound
from memory_kb.index.embedding import VectorSearch, open_vector_search
from memory_kb.index.sync import Progress
from memory_kb.index.vault_index import VaultIndex
from memory_kb.index.watch import Audience, Step, Watch, Watched, next_delay
from memory_kb.reports import WatchReport
from memory_kb.store.machine import prepare_machine
from memory_kb.vault import MACHINE, Vault, find_vault


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
        cause, complaint, delay, had_memory = "start", "", 0.0, False
        while not stop.is_set():
            try:
                watched = self._open(maintain=maintain, had_memory=had_memory)
            except (MemoryKBError, OSError, sqlite3.Error) as exc:
                if cause == "start":
                    raise
                # What fails once may just have been in the middle of something.
                if delay and str(exc) != complaint:
                    complaint = str(exc)
                    audience.on_notice(f"{exc}; trying again")
                delay = next_delay(delay)
                stop.wait(delay)
                continue
            if complaint:
                audience.on_notice(f"{watched.vault.folder} can be watched again")
            complaint, delay, had_memory = "", 0.0, watched.vault.memory is not None
            with contextlib.closing(Watch(watched, audience, stop, poll=poll)) as watch:
                watch.run(cause)
            cause = "reopened"

    def _open(self, *, maintain: bool, had_memory: bool) -> Watched:
        """Open the vault once more, for the watcher alone; one whose `memory/` is gone has not become a plain folder."""
        asked, home = self._vault.named
        found = find_vault(asked, home, environ=self._vault.environ, cwd=self._vault.folder)
        if had_memory and not found.memory:
            memory = found.folder / "memory"
            if not memory.is_dir():
                raise VaultNotFound(f"{memory} is gone")
            prepare_machine(memory / MACHINE, os.environ, [memory])  # it was all that made this a vault
        own = self._reopen()
        with contextlib.ExitStack() as opened:
            keeper = VaultIndex(own)
            opened.callback(keeper.close)
            keeper.use(lambda _: None)
            steps: list[Step] = []
            if own.settings.index.url:
                steps.append(publish_with(VaultIndex(own)))
            if own.settings.embeddings.provider != "none":
                vector_search = open_vector_search(own)
                opened.callback(vector_search.close)
                steps.append(embed_with(VaultIndex(own), vector_search))
            steps += self._idle_steps() if maintain else ()
            return Watched(asked, own, keeper, tuple(steps), opened.pop_all().close)


def publish_with(keeper: VaultIndex) -> Step:
    """Return the step that sends what a batch brought to the team's index, and says what is in the way."""

    def publish(_: threading.Event) -> tuple[str, ...]:
        try:
            return keeper.publish()
        finally:
            keeper.close()

    return publish


def embed_with(keeper: VaultIndex, vector_search: VectorSearch) -> Step:
    """Return the step that embeds what a batch brought, and says how much that was and what fails."""
    embedded = 0

    def embed(stop: threading.Event) -> Iterator[str]:
        nonlocal embedded
        try:
            made = keeper.use(lambda index: vector_search.embed(lambda: index.vectors, stop=stop, wait=0.0))
        except VaultBusy:  # another process embeds, or writes: the next look finds what is left
            return
        finally:
            keeper.close()
        embedded += made.embedded
        if made.embedded:
            yield f"embedded {made.embedded:,} passage{'' if made.embedded == 1 else 's'}, {embedded:,} so far"
        if made.reason:
            yield made.reason

    return embed


def _ignore(_: object) -> None:
    pass
