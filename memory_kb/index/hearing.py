"""How a watch hears of changes: told by the system, or by looking at intervals."""

from __future__ import annotations

import threading

from memory_kb.index.marks import Marks
from memory_kb.index.signals import Signals, Unwatchable, open_signals
from memory_kb.index.stopping import Stopped
from memory_kb.notes.vault import Vault

#: So many changes that were not announced show that the system does not do it here.
_MOST_SURPRISES = 2


class Hearing:
    """Signals for a vault as long as there can be any; polling is what is left without them.

    Attributes:
        how: what to tell a person about it.
    """

    def __init__(self, vault: Vault, marks: Marks, stop: threading.Event, *, poll: bool) -> None:
        self._vault, self._marks, self._stop = vault, marks, stop
        self._signals: Signals | None = None
        self._surprises = 0
        self.how = "polling"
        if not poll:
            self._open()

    def _open(self) -> None:
        try:
            self._signals = open_signals(self._vault, self._marks)
            self.how = "native events"
        except Unwatchable as exc:
            self.how = f"polling because {exc}"

    @property
    def is_polling(self) -> bool:
        """Whether nothing will be told, so that everything has to be looked at again and again."""
        return self._signals is None

    def enter(self, path: str, location: str) -> None:
        """Hear of a folder from now on; a walk calls this before it lists one.

        Raises:
            Stopped: there is no use in walking on.
        """
        if self._stop.is_set():
            raise Stopped
        if self._signals:
            self._signals.enter(path, location)

    def has_lost_events(self) -> bool:
        """Tell whether everything has to be looked at; from now on nothing will be missing again."""
        if not self._signals or not self._signals.has_lost_events():
            return False
        self._renew()
        return True

    def give_up(self) -> str | None:
        """Fall back to polling if no more signals will come; return why, once."""
        reason = self._signals.failure() if self._signals else None
        return self._poll(reason) if reason else None

    def be_surprised(self) -> str | None:
        """Take note of changes that came without a signal; return why that means polling, if it does."""
        self._surprises += 1
        if self._surprises >= _MOST_SURPRISES:
            return self._poll("changes come here that the system does not announce")
        self._renew()
        return None

    def _poll(self, reason: str) -> str:
        self.close()
        self.how = f"polling because {reason}"
        return reason

    def _renew(self) -> None:
        self.close()
        self._open()

    def close(self) -> None:
        """End the signals and their threads."""
        if self._signals:
            self._signals.close()
            self._signals = None
