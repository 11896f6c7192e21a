"""Keeping the index right while files change."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from memory_kb.notes.vault import Vault, find_vault
from memory_kb.verbs.opened import OpenVault

if TYPE_CHECKING:
    from memory_kb.index.indexer import Progress
    from memory_kb.index.watch import Watched
    from memory_kb.reports import WatchReport


class Watching(OpenVault):
    """The verb watch."""

    def watch(
        self,
        on_batch: Callable[[WatchReport], None] | None = None,
        *,
        on_notice: Callable[[str], None] | None = None,
        stop: threading.Event | None = None,
        poll: bool | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Keep the index up to date until `stop` is set, or for ever.

        This blocks; run it in a thread of its own beside other work. It uses an index connection of
        its own, and any number of processes may watch one vault. The vault may be moved away and
        back, its index deleted, its configuration changed.

        Args:
            on_batch: told of the first comparison, and then of every batch that changed something.
            on_notice: told in a sentence how the vault is watched, and of what fails meanwhile.
            stop: ends the watch when it is set, within a second; at once if it is a
                `memory_kb.index.stopping.Stop`.
            poll: compare at intervals instead of being told by the system; None leaves it to
                `watch.poll`, and is overridden where the system cannot tell.
            progress: told of the files done during the first comparison.
        """
        from memory_kb.index.watch import Audience
        from memory_kb.index.watcher import Door, Watcher

        audience = Audience(on_batch or _ignore, on_notice or _ignore, progress)
        Watcher(Door(self._locate, self._open_watched), audience, stop or threading.Event(), poll=poll).run()

    def _locate(self) -> Vault:
        vault, home = self._asked_for
        return find_vault(vault, home, environ=self._environ, cwd=self.vault.folder)

    def _open_watched(self) -> Watched:
        """Open the vault once more, for the watcher alone.

        What is to follow each batch goes into the `steps` of what is returned.
        """
        from memory_kb.index.keeper import IndexKeeper
        from memory_kb.index.watch import Watched

        vault, home = self._asked_for
        own = type(self).open(vault, home, environ=self._environ, clock=self._clock)
        return Watched(vault, own.vault, own.settings, own.machine, IndexKeeper(own.vault, own.machine, own.settings))


def _ignore(_: object) -> None:
    pass
