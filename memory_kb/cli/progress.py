"""Show on stderr how far long work has come."""

from __future__ import annotations

import sys
import time
from typing import Self

from memory_kb.cli.output import echo


class FileProgress:
    """A line on stderr that counts files.

    It is shown only to a person and only when it takes a while.
    """

    def __init__(self, word: str = "Indexing") -> None:
        self._word = word
        self._started = self._shown = time.monotonic()
        self._is_shown = False
        self._is_wanted = sys.stderr is not None and sys.stderr.isatty()

    def __call__(self, done: int) -> None:
        self._show(f"{self._word} … {done:,} files, {time.monotonic() - self._started:.0f} s ")

    def _show(self, line: str) -> None:
        now = time.monotonic()
        if self._is_wanted and now - self._started > 0.3 and now - self._shown > 0.1:
            self._shown, self._is_shown = now, True
            echo(f"\r{line}\x1b[K", nl=False, err=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            echo("\r\x1b[K", nl=False, err=True)


class ShareProgress(FileProgress):
    """A bar on stderr that tells what is done of a known whole, and how long the rest will take."""

    def __init__(self, word: str, unit: str) -> None:
        super().__init__(word)
        self._unit = unit
        self._first: tuple[float, int] | None = None

    def report(self, done: int, total: int) -> None:
        """Show that `done` of `total` are done."""
        now = time.monotonic()
        self._first = self._first or (now, done)
        began, before = self._first
        left = (now - began) / (done - before) * (total - done) if done > before else None
        filled = round(20 * done / total) if total else 20
        bar = "█" * filled + "·" * (20 - filled)
        self._show(
            f"{self._word} {bar} {done:,} of {total:,} {self._unit}{f', {show_duration(left)} left' if left is not None else ''} "
        )


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
