"""How strongly an entry surfaces over time, as lines of a drawing."""

from __future__ import annotations

from datetime import date, timedelta
from typing import NamedTuple

from memory_kb.retrieval.scoring import age_in_days, prominence
from memory_kb.settings import Ranking

WIDTH, HEIGHT = 320.0, 120.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 34.0, 6.0, 10.0, 20.0
_STEPS = 48
_LONGEST_DAYS = 3_650


class Aged(NamedTuple):
    """What the prominence of an entry depends on; `seen` is the day that its age counts from."""

    importance: float
    reinforced: int
    status: str
    seen: date | None
    created: date | None = None


class Tick(NamedTuple):
    """A mark on an axis: where, and what is written there."""

    place: float
    label: str


class Curve(NamedTuple):
    """A drawing of `WIDTH` by `HEIGHT`.

    Attributes:
        past: the line up to today, as the data of an SVG path; `future` is what follows.
        unused: the line it would have had without being reinforced, or "".
        now: today on the x axis; `height` is the value today on the y axis.
        value: the prominence today.
        sentence: what is to be seen, in words.
    """

    past: str
    future: str
    unused: str
    now: float
    height: float
    value: float
    days: tuple[Tick, ...]
    values: tuple[Tick, ...]
    sentence: str


def draw_curve(entry: Aged, today: date, ranking: Ranking) -> Curve:
    """Return prominence from the day an entry was last reinforced, or made, to two half-lives from now.

    Example:
        >>> aged = Aged(0.5, 3, "active", date(2026, 1, 1), date(2025, 12, 1))
        >>> curve = draw_curve(aged, date(2026, 4, 1), Ranking())
        >>> curve.value, curve.sentence
        (1.0, 'Prominence is 1.00 today; it was 2.00 on 2026-01-01 and will be 0.50 on 2026-06-30 unless it is used.')
    """
    seen = entry.seen and min(entry.seen, today)
    begin = min(filter(None, (seen, entry.created)), default=today)
    begin = max(begin, (seen or today) - timedelta(days=_LONGEST_DAYS), today - timedelta(days=_LONGEST_DAYS))
    ahead = max(14, min(_LONGEST_DAYS, round(2 * ranking.half_life_days)))
    end = today + timedelta(days=ahead)

    def value_on(day: date, since: date | None, count: int) -> float:
        return prominence(
            entry.importance, age_in_days(since.isoformat() if since else None, day), count, entry.status, ranking
        )

    start = max(seen or begin, begin)
    has_other = entry.reinforced > 0 and entry.created is not None and begin < end
    highest = (
        max(value_on(start, seen, entry.reinforced), value_on(begin, entry.created, 0) if has_other else 0.0, 1e-9)
        * 1.08
    )
    span = max(1, (end - begin).days)

    def place(day: date, value: float) -> tuple[float, float]:
        x = _LEFT + (day - begin).days / span * (WIDTH - _LEFT - _RIGHT)
        return round(x, 1), round(HEIGHT - _BOTTOM - value / highest * (HEIGHT - _TOP - _BOTTOM), 1)

    def line(first: date, last: date, since: date | None, count: int) -> str:
        length = (last - first).days
        days = sorted({first + timedelta(days=round(step * length / _STEPS)) for step in range(_STEPS + 1)})
        return "M" + " L".join("{} {}".format(*place(day, value_on(day, since, count))) for day in days)

    value = value_on(today, seen, entry.reinforced)
    now, height = place(today, value)
    return Curve(
        past=line(start, today, seen, entry.reinforced),
        future=line(today, end, seen, entry.reinforced),
        unused=line(begin, end, entry.created, 0) if has_other else "",
        now=now,
        height=height,
        value=value,
        days=(Tick(_LEFT, _short(begin)), Tick(now, "today"), Tick(WIDTH - _RIGHT, _short(end))),
        values=tuple(Tick(place(today, share * highest)[1], f"{share * highest:.2g}") for share in (0.0, 0.5, 1.0)),
        sentence=_describe(entry, seen, today, value, value_on, ranking),
    )


def _describe(entry: Aged, seen: date | None, today: date, value: float, value_on: object, ranking: Ranking) -> str:
    assert callable(value_on)
    if entry.status == "retired":
        return "It is retired, so it does not surface by itself."
    if seen is None:
        return f"Prominence is {value:.2f}; it has no date, so it does not age."
    later = today + timedelta(days=round(ranking.half_life_days))
    was = f"it was {value_on(seen, seen, entry.reinforced):.2f} on {seen} and " if seen < today else ""
    return f"Prominence is {value:.2f} today; {was}will be {value_on(later, seen, entry.reinforced):.2f} on {later} unless it is used."


def _short(day: date) -> str:
    return f"{day:%Y-%m}"
