"""The formulas: decay, prominence, relevance and their product.

They are pure functions of numbers.
"""

from __future__ import annotations

from datetime import date

from memory_kb.settings import Ranking

SUPERSEDED_FACTOR = 0.5


def decay(days: float, half_life: float = 90.0, floor: float = 0.0) -> float:
    """Return what is left of 1 after some days.

    That is `max(floor, 0.5 ** (days / half_life))`. Days before now count as none.

    Example:
        >>> decay(0), decay(90), decay(180), decay(3650, floor=0.1)
        (1.0, 0.5, 0.25, 0.1)
    """
    return float(max(floor, 0.5 ** (max(0.0, days) / half_life)))


def activation(weight: float, days: float, count: int, *, half_life: float = 90.0, floor: float = 0.0) -> float:
    """Return `weight * decay * (1 + count)`.

    Example:
        >>> activation(0.9, 0, 0), activation(0.5, 90, 3)
        (0.9, 1.0)
    """
    return weight * decay(days, half_life, floor) * (1 + count)


def prominence(importance: float, days: float, count: int, status: str, ranking: Ranking) -> float:
    """Return how much an entry counts by itself: importance x decay x (1 + reinforcements).

    A retired one counts nothing.

    Example:
        >>> round(prominence(0.9, 3650, 0, "active", Ranking()), 4), prominence(0.9, 0, 5, "retired", Ranking())
        (0.09, 0.0)
    """
    if status == "retired":
        return 0.0
    return activation(importance, days, count, half_life=ranking.half_life_days, floor=ranking.decay_floor)


def age_in_days(seen: str | None, today: date) -> float:
    """Return the days since an ISO date.

    An entry without a date, or from the future, has age 0.

    Example:
        >>> age_in_days("2026-01-01", date(2026, 4, 1)), age_in_days(None, date(2026, 4, 1))
        (90.0, 0.0)
    """
    if seen is None:
        return 0.0
    return float(max(0, (today - date.fromisoformat(seen)).days))


def final_score(relevance: float, prominence: float, scope: float, *, is_superseded: bool) -> float:
    """Return a hit's score: `relevance * prominence * scope`.

    It is halved when a newer entry replaces the hit's.

    Example:
        >>> round(final_score(0.65, 1.0, 1.5, is_superseded=False), 4)
        0.975
    """
    return relevance * prominence * scope * (SUPERSEDED_FACTOR if is_superseded else 1.0)
