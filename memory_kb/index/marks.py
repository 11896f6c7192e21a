"""What file events have put in doubt, gathered until it is time to look."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import NamedTuple

from memory_kb.model import Region
from memory_kb.notes.vault import GLOBAL_PREFIX

#: A burst, such as a git checkout, is waited for as long as this.
BURST_SECONDS = 5.0
#: So many more names buy a batch another `debounce` of patience.
_NAMES_PER_WAIT = 20
#: Beyond these numbers more names and regions make no difference.
_MOST_NAMES = 1_000
_MOST_REGIONS = 200


def longest_wait(debounce: float, names: int) -> float:
    """Return how long after its first event a batch may be held back.

    A batch is looked at when nothing was heard for `debounce`. A trickle of a few files may
    never be that quiet, so it is looked at after twice the time; every twenty more files buy
    another `debounce`, so that a checkout of thousands is one batch; nothing waits longer than
    `BURST_SECONDS`.

    Example:
        >>> longest_wait(0.5, 1), longest_wait(0.5, 100), longest_wait(0.5, 5000)
        (1.0, 3.5, 5.0)
    """
    return min(debounce * (2 + names // _NAMES_PER_WAIT), max(BURST_SECONDS, 2 * debounce))


def merge_regions(regions: Iterable[Region]) -> tuple[Region, ...]:
    """Return regions that cover the same folders, each of them once, by path.

    Example:
        >>> a, below, b = Region("a/", "/v/a", True), Region("a/x/", "/v/a/x"), Region("b/", "/v/b")
        >>> [region.path for region in merge_regions([b, below, a, b])]
        ['a/', 'b/']
    """
    kept: list[Region] = []
    for region in sorted(set(regions), key=lambda region: (region.path, not region.is_deep)):
        if not any(_covers(other, region) for other in kept):
            kept.append(region)
    return tuple(kept)


def _covers(region: Region, other: Region) -> bool:
    if region.path == other.path:
        return region.is_deep or not other.is_deep
    return (
        region.is_deep
        and other.path.startswith(region.path)
        and (region.path != "" or not other.path.startswith(GLOBAL_PREFIX))
    )


class Batch(NamedTuple):
    """Regions to look at, None for everywhere, and what brought it about."""

    cause: str
    regions: tuple[Region, ...] | None


class Marks:
    """The regions in doubt, marked by one thread and taken by another."""

    def __init__(self, debounce: float) -> None:
        self._debounce = debounce
        self._changed = threading.Condition()
        self._is_alarmed = self._has_news = False
        self._forget()

    def _forget(self) -> None:
        self._regions: set[Region] = set()
        self._names: set[tuple[str, str | bytes]] = set()
        self._first = self._last = 0.0
        self._is_everywhere = False

    def add(self, region: Region, name: str | bytes) -> None:
        """Note that something of this name changed in a region."""
        with self._changed:
            self._touch()
            if len(self._names) < _MOST_NAMES:
                self._names.add((region.path, name))
            if not self._is_everywhere:
                self._regions.add(region)
                self._is_everywhere = len(self._regions) > _MOST_REGIONS

    def alarm(self) -> None:
        """Note that the watch itself should be looked at, at once."""
        with self._changed:
            self._is_alarmed = self._has_news = True
            self._changed.notify_all()

    def _touch(self) -> None:
        self._last = time.monotonic()
        if not self._regions and not self._is_everywhere:
            self._first = self._last
            self._has_news = True
            self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait for a first mark or an alarm since the last wait, at most so long."""
        with self._changed:
            if not self._has_news:
                self._changed.wait(seconds)
            self._has_news = False

    def take_alarm(self) -> bool:
        """Tell whether there was an alarm since the last call."""
        with self._changed:
            was_alarmed, self._is_alarmed = self._is_alarmed, False
            return was_alarmed

    def ripens_in(self) -> float | None:
        """Return in how many seconds the batch should be taken; None if nothing is marked."""
        with self._changed:
            if not self._regions and not self._is_everywhere:
                return None
            latest = self._first + longest_wait(self._debounce, len(self._names))
            return max(0.0, min(self._last + self._debounce, latest) - time.monotonic())

    def take(self) -> Batch:
        """Return what is marked, and begin anew."""
        with self._changed:
            regions = None if self._is_everywhere else merge_regions(self._regions)
            self._forget()
        return Batch("events", regions)
