"""What reaches the terminal: data on stdout, talk on stderr.

There is colour only where a person looks.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import click

from memory_kb.model import Hit, Problem
from memory_kb.text import short_id

if TYPE_CHECKING:
    from memory_kb.reports import EntryView

_SHOWN_PROBLEMS = 10
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\udc80-\udcff]")
#: Bytes of a name that are no UTF-8, as Python holds them.
_BYTE = re.compile(r"[\udc80-\udcff]")
_SNIPPET = 240


def print_json(value: Any) -> None:
    """Print one JSON object on stdout."""
    import json

    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    text = _BYTE.sub(lambda found: f"\\{_escape(found.group())}", json.dumps(value, ensure_ascii=False, default=str))
    click.echo(text if encoding == "utf8" else json.dumps(json.loads(text)))


def say(message: str) -> None:
    """Talk to the person, on stderr."""
    click.echo(clean(message), err=True)


def clean(text: str) -> str:
    """Return text with its control characters made visible, those that turn round the order of reading too.

    A note may not drive the terminal.

    Example:
        >>> clean("a\\x1b[31mb")
        'a\\\\x1b[31mb'
        >>> clean("a\\u202eb"), clean("caf\\udce9.md")
        ('a\\\\u202eb', 'caf\\\\xe9.md')
    """
    return _CONTROL.sub(lambda found: _escape(found.group()) if found.group() != "\r" else "", text)


def _escape(character: str) -> str:
    code = ord(character)
    code -= 0xDC00 if _BYTE.match(character) else 0
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def one_line(text: str) -> str:
    """Return text that stays on one line.

    A path may hold a line break, and fake a line of ours.

    Example:
        >>> one_line("a\\nb")
        'a\\\\x0ab'
    """
    return clean(text).replace("\n", "\\x0a")


def use_colour() -> bool:
    """Tell whether stdout is a terminal that wants colour."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def style(text: str, **how: Any) -> str:
    """Return text in a style, where colour is wanted."""
    return click.style(text, **how) if use_colour() else text


def print_hit(hit: Hit, words: Sequence[str]) -> None:
    """Print one hit of a search: what and where it is, and the part that fits."""
    lines = f"{hit.line}-{hit.end_line}" if hit.end_line > hit.line else str(hit.line)
    marks = [hit.kind, hit.scope] + ([] if hit.status in ("active", "compacted") else [hit.status])
    click.echo(
        f"{style(f'{hit.rank:>2}.', dim=True)} {style(clean(hit.title), bold=True)}  {style(f'{hit.score:.3f}', fg='cyan')}"
    )
    click.echo(
        f"    {style(f'{one_line(hit.path)}:{lines}', fg='green')}  {style(', '.join(marks), dim=True)}  {style(tell_id(hit.id), dim=True)}"
    )
    snippet = make_snippet(hit.text, words)
    if snippet:
        click.echo(f"    {highlight(clean(snippet), words)}")
    for line in hit.explanation:
        click.echo(style(f"      {line}", dim=True))


def print_entry_line(entry: EntryView) -> None:
    """Print an entry on one line."""
    status = "" if entry.status in ("active", "compacted") else f" ({entry.status})"
    place = style(f"{one_line(entry.path)}:{entry.line}", fg="green")
    click.echo(f"{style(tell_id(entry.id), dim=True):<8}  {entry.kind:<12} {clean(entry.title)}{status}  {place}")


def tell_id(entry_id: str) -> str:
    """Return an id as short as it stays telling, fit for a terminal."""
    return clean(short_id(entry_id))


def make_snippet(text: str, words: Sequence[str]) -> str:
    """Return the part of a text, on one line, that holds most of the words.

    Example:
        >>> make_snippet("intro " * 60 + "the flaky test " + "outro " * 60, ["flaky"]).count("flaky")
        1
    """
    line = " ".join(text.split())
    if len(line) <= _SNIPPET:
        return line
    places = [found.start() for found in re.finditer(_any_of(words), line, re.IGNORECASE)] if words else []
    start = max(places, key=lambda place: sum(place <= other < place + _SNIPPET for other in places), default=0)
    start = max(0, line.rfind(" ", 0, max(0, start - 40)) + 1) if start > 40 else 0
    piece = line[start : start + _SNIPPET].rsplit(" ", 1)[0]
    return f"{'… ' if start else ''}{piece}{' …' if start + len(piece) < len(line) else ''}"


def highlight(text: str, words: Sequence[str]) -> str:
    """Return a text with the words emphasised, where colour is wanted."""
    if not words or not use_colour():
        return text
    return re.sub(
        _any_of(words), lambda found: click.style(found.group(), fg="yellow", bold=True), text, flags=re.IGNORECASE
    )


def _any_of(words: Sequence[str]) -> str:
    """Return an expression for words and their inflections.

    Long words match by their beginning.
    """
    stems = sorted({word if len(word) < 5 else word[: max(4, len(word) - 2)] for word in words}, key=len, reverse=True)
    return (
        r"(?<!\w)(?:" + "|".join(map(re.escape, stems)) + r")\w*"
        if all(word.isascii() for word in words)
        else "|".join(map(re.escape, words))
    )


def print_note_problems(problems: Sequence[Problem]) -> None:
    """Tell what is wrong with notes; of a long list that by which text is lost, and of what sorts the rest is."""
    if len(problems) <= _SHOWN_PROBLEMS:
        print_problems(problems)
        return
    from memory_kb.index.shortfalls import by_loss, count_sorts

    ordered = by_loss(problems)
    print_problems(ordered[:_SHOWN_PROBLEMS])
    rest = ordered[_SHOWN_PROBLEMS:]
    say(f"… and {len(rest):,} more ({count_sorts(rest)}); `memory-kb lint` lists them all")


def print_problems(problems: Sequence[Problem], *, limit: int = _SHOWN_PROBLEMS) -> None:
    """Tell what should be mended.

    A long list is cut and says where the rest is.
    """
    for problem in problems[:limit]:
        say(str(problem))
    if len(problems) > limit:
        say(f"… and {len(problems) - limit:,} more; `memory-kb lint` lists them all")


def print_table(rows: Mapping[str, object]) -> None:
    """Print names and values in two columns."""
    width = max(map(len, rows), default=0)
    for name, value in rows.items():
        click.echo(f"{name:<{width}}  {clean(str(value))}")


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
            click.echo(f"\r{line}\x1b[K", nl=False, err=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            click.echo("\r\x1b[K", nl=False, err=True)


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
