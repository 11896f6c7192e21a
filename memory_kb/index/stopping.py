"""Telling a watch to end."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Stopped(Exception):
    """The watch was told to end in the middle of something."""


class Stop(threading.Event):
    """An event that wakes who waits for something else.

    A watch notices it at once; any other event is noticed within about a second.
    """

    def __init__(self) -> None:
        super().__init__()
        self._wake: list[Callable[[], None]] = []

    def set(self) -> None:
        super().set()
        for wake in list(self._wake):
            wake()

    def wakes(self, wake: Callable[[], None]) -> None:
        """Call a function as well when the event is set, or now if it is."""
        self._wake.append(wake)
        if self.is_set():
            wake()

    def forget(self, wake: Callable[[], None]) -> None:
        """Undo `wakes`."""
        self._wake.remove(wake)
