"""Show on stderr how far long work has come."""

from __future__ import annotations

import sys
import time
from typing import Self

from memory_kb.cli.output import echo

#: Seconds between two states: on one line of a terminal, and as lines of a log.
_PAUSE, _LOG_PAUSE = 0.1, 10.0
#: What takes less, in seconds, is not worth a line.
_SOON = 0.3


class Progress:
    """What is done, of how much and how fast: a line that changes on a terminal, elsewhere one every ten seconds."""

    def __init__(self, word: str = "Indexing", unit: str = "files") -> None:
        self._word, self._unit = word, unit
        self._is_terminal = sys.stderr is not None and sys.stderr.isatty()
        self._shown = time.monotonic() + (_SOON - _PAUSE if self._is_terminal else 0)
        self._first: tuple[float, int] | None = None
        self._is_shown = False

    def __call__(self, done: int, total: int = 0) -> None:
        now = time.monotonic()
        began, before = self._first = self._first or (now, done)
        if sys.stderr is None or now - self._shown < (_PAUSE if self._is_terminal else _LOG_PAUSE):
            return
        self._shown, self._is_shown = now, True
        state = describe_progress(done, total, self._unit, (done - before) / (now - began) if now > began else 0.0)
        if self._is_terminal:
            echo(f"\r{self._word} {state} \x1b[K", nl=False, err=True)
        else:
            echo(f"{self._word} {state}", err=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_shown and self._is_terminal:
            echo("\r\x1b[K", nl=False, err=True)


def describe_progress(done: int, total: int, unit: str, rate: float) -> str:
    """Return how far work has come, at a rate by the second.

    Example:
        >>> describe_progress(640, 0, "files", 320.4)
        '… 640 files, 320 a second'
        >>> describe_progress(600, 1200, "passages", 3.0)
        '██████████·········· 600 of 1,200 passages, 3 a second, 3 min left'
    """
    speed = f", {rate:,.0f} a second" if rate >= 1 else ""
    if not total:
        return f"… {done:,} {unit}{speed}"
    filled = round(20 * done / total)
    left = f", {show_duration((total - done) / rate)} left" if rate else ""
    return f"{'█' * filled}{'·' * (20 - filled)} {done:,} of {total:,} {unit}{speed}{left}"


def show_duration(seconds: float) -> str:
    """Return a duration in words.

    Example:
        >>> show_duration(8.2), show_duration(200), show_duration(8000)
        ('8 s', '3 min', '2 h 13 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
