"""The verb watch: update, embed and publish the index while files change."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from memory_kb.errors import VaultBusy
from memory_kb.index.embedding import VectorSearch, open_vector_search
from memory_kb.index.sync import Progress
from memory_kb.index.vault_index import VaultIndex
from memory_kb.index.watch import Audience, Step, Watched, Watcher
from memory_kb.reports import WatchReport
from memory_kb.vault import Vault, find_vault


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
        Watcher(self._locate, lambda: self._open_watched(maintain=maintain), audience, stop, poll=poll).run()

    def _locate(self) -> Vault:
        vault, home = self._vault.named
        return find_vault(vault, home, environ=self._vault.environ, cwd=self._vault.folder)

    def _open_watched(self, *, maintain: bool) -> Watched:
        """Open the vault once more, for the watcher alone."""
        own = self._reopen()
        keeper, opened = VaultIndex(own), contextlib.ExitStack()
        opened.callback(keeper.close)
        steps: list[Step] = []
        if own.settings.index.url:
            steps.append(publish_with(VaultIndex(own)))
        if own.settings.embeddings.provider != "none":
            vector_search = open_vector_search(own)
            opened.callback(vector_search.close)
            steps.append(EmbeddingStep(VaultIndex(own), vector_search))
        steps += self._idle_steps() if maintain else ()
        return Watched(self._vault.named[0], own, keeper, tuple(steps), opened.close)


def publish_with(keeper: VaultIndex) -> Step:
    """Return the step that sends what a batch brought to the team's index, and says what is in the way."""

    def publish(_: threading.Event) -> tuple[str, ...]:
        try:
            return keeper.publish()
        finally:
            keeper.close()

    return publish


class EmbeddingStep:
    """Embedding what a batch brought, with an index of its own in a thread beside the watcher."""

    def __init__(self, keeper: VaultIndex, vector_search: VectorSearch) -> None:
        self._keeper, self._vector_search = keeper, vector_search
        self._embedded = 0

    def __call__(self, stop: threading.Event) -> Iterator[str]:
        """Embed what has no vector; say how much, and what fails."""
        try:
            made = self._keeper.use(lambda index: self._vector_search.embed(lambda: index.vectors, stop=stop, wait=0.0))
        except VaultBusy:  # another process embeds, or writes: the next look finds what is left
            return
        finally:
            self._keeper.close()
        self._embedded += made.embedded
        if made.embedded:
            yield f"embedded {made.embedded:,} passage{'' if made.embedded == 1 else 's'}, {self._embedded:,} so far"
        if made.reason:
            yield made.reason


def _ignore(_: object) -> None:
    pass
