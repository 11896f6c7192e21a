"""The filters of the templates: charts, diffs, dates and values; and the curve of a prominence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import quote

from memory_kb.model import Entry, Parts
from memory_kb.search.scoring import prominence
from memory_kb.settings import Ranking
from memory_kb.text import pluralize
from memory_kb.web.addresses import entry_address

WIDTH, HEIGHT = 320.0, 120.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 34.0, 6.0, 10.0, 20.0
_STEPS = 48
_LONGEST_DAYS = 3_650


class Curve(NamedTuple):
    """A drawing of `WIDTH` by `HEIGHT`: `past` and `future` are lines as the data of SVG paths, which meet today.

    `now` and `height` are the place of today and of its `value`; `days` and `values` are the marks on the axes, each
    with its place; `sentence` is what is to be seen, in words.
    """

    past: str
    future: str
    now: float
    height: float
    value: float
    days: tuple[tuple[float, str], ...]
    values: tuple[tuple[float, str], ...]
    sentence: str


def draw_curve(entry: Entry, today: date, ranking: Ranking) -> Curve | None:
    """Return prominence from the day an entry was last reinforced to two half-lives from now; None where it is level.

    Example:
        >>> from memory_kb.markdown.document import parse_document
        >>> note = "---\\nimportance: 0.5\\nreinforcement_count: 3\\nlast_reinforced: 2026-01-01\\n---\\nTea."
        >>> curve = draw_curve(parse_document(note, "a.md").entries[0], date(2026, 4, 1), Ranking())
        >>> curve.value, curve.sentence
        (1.0, 'Prominence is 1.00 today; it was 2.00 on 2026-01-01 and will be 0.50 on 2026-06-30 unless it is used.')
    """
    if entry.seen is None or entry.status == "retired":
        return None
    begin = min(entry.seen, today)
    half_life = min(_LONGEST_DAYS, round(ranking.half_life_days))
    later, end = today + timedelta(days=half_life), today + timedelta(days=max(14, 2 * half_life))

    def value_on(day: date) -> float:
        return prominence(entry.importance, (day - begin).days, entry.reinforcement_count, entry.status, ranking)

    length, highest = max(1, (end - begin).days), max(value_on(begin), 1e-9) * 1.08

    def across(day: date) -> float:
        return round(_LEFT + (day - begin).days / length * (WIDTH - _LEFT - _RIGHT), 1)

    def above(value: float) -> float:
        return round(HEIGHT - _BOTTOM - value / highest * (HEIGHT - _TOP - _BOTTOM), 1)

    def line(first: date, last: date) -> str:
        drawn = sorted({first + (last - first) * step / _STEPS for step in range(_STEPS + 1)})
        return "M" + " L".join(f"{across(day)} {above(value_on(day))}" for day in drawn)

    value = value_on(today)
    was = f"it was {value_on(begin):.2f} on {begin} and " if begin < today else ""
    said = f"Prominence is {value:.2f} today; {was}will be {value_on(later):.2f} on {later} unless it is used."
    days = ((_LEFT, f"{begin:%Y-%m}"), (across(today), "today"), (WIDTH - _RIGHT, f"{end:%Y-%m}"))
    values = tuple((above(one), f"{one:.2g}") for one in (0.0, 0.5 * highest, highest))
    return Curve(line(begin, today), line(today, end), across(today), above(value), value, days, values, said)


class Bar(NamedTuple):
    """A factor of a score as a bar: `share` of its full length, from 0 to 1."""

    name: str
    value: str
    share: float


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


def read_diff(diff: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of a unified diff, after what each is: `added`, `removed`, `place`, `file` or `same`.

    Example:
        >>> [kind for kind, _ in read_diff("--- a\\n+++ b\\n@@ -1 +1 @@\\n-x\\n+y\\n z")]
        ['file', 'file', 'place', 'removed', 'added', 'same']
    """
    kinds = (("--- ", "file"), ("+++ ", "file"), ("@@", "place"), ("+", "added"), ("-", "removed"))
    for line in diff.splitlines():
        yield next((kind for start, kind in kinds if line.startswith(start)), "same"), line


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


FILTERS: dict[str, Callable[..., Any]] = {
    "bars": make_bars,
    "diff_lines": read_diff,
    "entry_address": entry_address,
    "time": show_time,
    "value": show_value,
    "command": show_command,
    "count": pluralize,
    "editor_address": lambda file, line: f"vscode://file{quote(file if file.startswith('/') else '/' + file)}:{line}",
    "obsidian_address": lambda file: f"obsidian://open?path={quote(file, safe='')}",
}
