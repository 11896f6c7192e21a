"""Prominence, bars, diffs and dates as the templates show them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from memory_kb.model import Parts
from memory_kb.search.scoring import prominence
from memory_kb.settings import Ranking
from memory_kb.text import counted


class Aged(NamedTuple):
    """What the prominence of an entry depends on; `seen` is the day that its age counts from."""

    importance: float
    reinforced: int
    status: str
    seen: date


def describe_prominence(entry: Aged, today: date, ranking: Ranking) -> str:
    """Return how prominent an entry is today, was when it was last reinforced, and will be one half-life from now.

    Example:
        >>> describe_prominence(Aged(0.5, 3, "active", date(2026, 1, 1)), date(2026, 4, 1), Ranking())
        'Prominence is 1.00 today; it was 2.00 on 2026-01-01 and will be 0.50 on 2026-06-30 unless it is used.'
    """
    if entry.status == "retired":
        return "It is retired, so it does not surface by itself."
    seen = min(entry.seen, today)

    def value_on(day: date) -> float:
        return prominence(entry.importance, (day - seen).days, entry.reinforced, entry.status, ranking)

    later = today + timedelta(days=round(ranking.half_life_days))
    was = f"it was {value_on(seen):.2f} on {seen} and " if seen < today else ""
    return (
        f"Prominence is {value_on(today):.2f} today; {was}will be {value_on(later):.2f} on {later} unless it is used."
    )


class Bar(NamedTuple):
    """A factor of a score as a bar: `share` of its full length, from 0 to 1."""

    name: str
    value: str
    share: float


class DiffLine(NamedTuple):
    """A line of a unified diff and what it is: `added`, `removed`, `place`, `file` or `same`."""

    text: str
    kind: str


def make_bars(parts: Parts) -> tuple[Bar, ...]:
    """Return the factors of a score as bars.

    Example:
        >>> [(bar.name, bar.value, bar.share) for bar in make_bars(Parts(0.5, None, 0.5, 1.0, 1.2))]
        [('words', '0.50', 0.5), ('relevance', '0.50', 0.5), ('prominence', '1.00', 0.5), ('scope', '1.2', 0.8)]
    """
    factors = (("words", parts.bm25), ("meaning", parts.vector), ("relevance", parts.relevance))
    bars = [Bar(name, f"{value:.2f}", _share(value)) for name, value in factors if value is not None]
    # Prominence has no end: each doubling of it takes less of what is left.
    prominence = Bar("prominence", f"{parts.prominence:.2f}", _share(parts.prominence / (1 + parts.prominence)))
    return (*bars, prominence, Bar("scope", f"{parts.scope:g}", _share(parts.scope / 1.5)))


def _share(value: float) -> float:
    return round(min(1.0, max(0.0, value)), 4)


def read_diff(diff: str) -> Iterator[DiffLine]:
    """Yield the lines of a unified diff with their kinds.

    Example:
        >>> [line.kind for line in read_diff("--- a\\n+++ b\\n@@ -1 +1 @@\\n-x\\n+y\\n z")]
        ['file', 'file', 'place', 'removed', 'added', 'same']
    """
    kinds = (("--- ", "file"), ("+++ ", "file"), ("@@", "place"), ("+", "added"), ("-", "removed"))
    for line in diff.splitlines():
        yield DiffLine(line, next((kind for start, kind in kinds if line.startswith(start)), "same"))


def entry_address(entry_id: str, path: str | None = None, line: int | None = None, page: str = "/entry") -> str:
    """Return the address of an entry; its place distinguishes it from others with the same id.

    Example:
        >>> entry_address("a b", "x.md", 3)
        '/entry?id=a+b&at=x.md%3A3'
    """
    pairs = {"id": entry_id} | ({"at": f"{path}:{line or 1}"} if path else {})
    return f"{page}?{urlencode(pairs)}"


def show_time(moment: datetime | str | None) -> str:
    """Return a moment as a person reads it, in the time of this machine.

    Example:
        >>> show_time("soon"), show_time(None)
        ('soon', '')
    """
    if moment is None:
        return ""
    try:
        found = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    except ValueError:
        return str(moment)
    aware = found if found.tzinfo else found.replace(tzinfo=UTC)
    return f"{aware.astimezone():%Y-%m-%d %H:%M}"


def show_value(value: object) -> str:
    """Return a value of frontmatter in words.

    Example:
        >>> show_value(["a", {"to": "b", "relation": "c"}]), show_value(True), show_value(date(2026, 3, 1))
        ('a, to b, relation c', 'yes', '2026-03-01')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {show_value(one)}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(show_value, value))
    return "" if value is None else value.isoformat() if isinstance(value, date) else str(value)


#: The arguments of a tool that say what it did, as agents call them.
_COMMANDS = ("command", "cmd", "file_path", "path", "pattern", "query", "url")


def show_command(arguments: Mapping[str, object]) -> str:
    """Return what a tool was asked to do, where one of its arguments says that.

    Example:
        >>> show_command({"timeout": 5, "command": ["pytest", "-q"]})
        'pytest -q'
    """
    found = next((arguments[name] for name in _COMMANDS if arguments.get(name)), "")
    return " ".join(map(str, found)) if isinstance(found, list) else str(found)


def _editor_address(file: str, line: int) -> str:
    return f"vscode://file{quote(file if file.startswith('/') else '/' + file)}:{line}"


def _obsidian_address(file: str) -> str:
    return f"obsidian://open?path={quote(file, safe='')}"


FILTERS: dict[str, Callable[..., Any]] = {
    "bars": make_bars,
    "diff_lines": read_diff,
    "entry_address": entry_address,
    "time": show_time,
    "value": show_value,
    "command": show_command,
    "count": counted,
    "editor_address": _editor_address,
    "obsidian_address": _obsidian_address,
}
