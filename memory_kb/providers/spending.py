"""Limit the cost of a day, and record it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from memory_kb.errors import ProviderFailed, SpendLimitReached
from memory_kb.store.json_lines import append_lines, read_objects
from memory_kb.text import pluralize

#: Dollars for a million tokens in and out, from the providers' price lists of November 2026.
_PRICES: dict[str, dict[str, tuple[float, float]]] = {
    "openai": {
        "gpt-4.1": (2.0, 8.0),
        "gpt-4.1-mini": (0.4, 1.6),
        "gpt-4.1-nano": (0.1, 0.4),
        "gpt-4o": (2.5, 10.0),
        "gpt-4o-mini": (0.15, 0.6),
        "gpt-5": (1.25, 10.0),
        "gpt-5-mini": (0.25, 2.0),
        "gpt-5-nano": (0.05, 0.4),
        "gpt-5.4": (2.5, 15.0),
        "gpt-5.4-mini": (0.75, 4.5),
        "gpt-5.4-nano": (0.2, 1.25),
        "gpt-5.5": (5.0, 30.0),
        "gpt-5.5-pro": (30.0, 180.0),
        "gpt-5.6-luna": (1.0, 6.0),
    },
    "gemini": {
        "gemini-2.5-flash": (0.3, 2.5),
        "gemini-2.5-flash-lite": (0.1, 0.4),
        "gemini-2.5-pro": (1.25, 10.0),
        "gemini-3.1-pro-preview": (2.0, 12.0),
        "gemini-3.5-flash": (1.5, 9.0),
        "gemini-3.5-flash-lite": (0.3, 2.5),
        "gemini-3.8-flash": (1.5, 7.5),
    },
    "anthropic": {
        "claude-fable-5-1": (10.0, 50.0),
        "claude-haiku-4-5": (1.0, 5.0),
        "claude-haiku-5-5": (0.1, 0.5),
        "claude-opus-5": (5.0, 25.0),
        "claude-opus-5-5": (4.0, 20.0),
        "claude-sonnet-4-6": (3.0, 15.0),
        "claude-sonnet-5-5": (2.0, 10.0),
    },
}
#: Above this many tokens in, every provider charges up to five times as much.
_LONG_PROMPT = 100_000
_LONG_FACTOR = 5.0


class TokenUsage(NamedTuple):
    """The tokens of one call."""

    input_tokens: int
    output_tokens: int


class Metered(NamedTuple):
    """Numbers of calls to a language model, tokens and dollars; an estimate if no call was made."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0

    def __str__(self) -> str:
        """Return the numbers as words.

        Example:
            >>> str(Metered(1, 1_200, 80, 0.0031))
            '1 call, 1,200 tokens in and 80 out, $0.0031'
        """
        tokens = f"{self.input_tokens:,} tokens in and {self.output_tokens:,} out"
        return f"{pluralize(self.calls, 'call')}, {tokens}, ${self.usd:.4f}"

    def plus(self, other: Metered, sign: int = 1) -> Metered:
        """Return the sum of this and another, or with `sign` -1 the difference.

        Example:
            >>> Metered(2, 300, 20, 0.2).plus(Metered(1, 100, 10, 0.1), -1)
            Metered(calls=1, input_tokens=200, output_tokens=10, usd=0.1)
        """
        return Metered(
            self.calls + sign * other.calls,
            self.input_tokens + sign * other.input_tokens,
            self.output_tokens + sign * other.output_tokens,
            round(self.usd + sign * other.usd, 9),
        )


def cost(provider: str, model: str, usage: TokenUsage) -> float:
    """Return the cost of a call in dollars.

    An unknown model is taken for the dearest known one of its provider; the day in a model's name does not count.

    Example:
        >>> cost("anthropic", "claude-haiku-4-5-20251001", TokenUsage(1_000, 100)), cost("openai", "new", TokenUsage(1_000, 100))
        (0.0015, 0.048)
    """
    prices = _PRICES[provider]
    undated = re.sub(r"-\d{4}-?\d{2}-?\d{2}$", "", model)
    price_in, price_out = prices.get(undated, max(prices.values()))
    factor = _LONG_FACTOR if usage.input_tokens > _LONG_PROMPT else 1.0
    return round(factor * (usage.input_tokens * price_in + usage.output_tokens * price_out) / 1e6, 9)


def _now() -> datetime:
    return datetime.now(UTC)


class SpendLog:
    """A ledger of calls, one JSON line each, that several processes write to; the first makes the file.

    On one day (UTC) at most `daily` dollars may be spent and `runs` calls made; None is no limit of calls.
    """

    def __init__(self, file: Path, daily: float, clock: Callable[[], datetime] = _now, runs: int | None = None) -> None:
        self._file = file
        self._daily = daily
        self._clock = clock
        self._runs = runs
        #: The calls made through this object; those of other processes do not count.
        self.total = Metered()

    def spent_today(self) -> float:
        """Return the dollars spent since midnight UTC."""
        return sum(map(_dollars, self._calls_of_today()))

    def _calls_of_today(self) -> list[Mapping[str, Any]]:
        return list(read_objects(self._file, f'"time": "{self._clock().astimezone(UTC).date()}'.encode()))

    def check(self, usd: float) -> None:
        """Raise `SpendLimitReached` if a call of this cost does not fit into the limits of the day.

        A call that costs nothing is limited by the number of calls alone. Where the ledger cannot be written, none is
        made: `ProviderFailed`.
        """
        if self._runs is not None and len(self._calls_of_today()) >= self._runs:
            raise _refuse(f"it was asked {self._runs:,} times today, which is the limit", "daily_runs")
        if usd <= 0:
            return
        self._append()
        spent = self.spent_today()
        if spent + usd > self._daily:
            said = f"${spent:.2f} of ${self._daily:.2f} for today is spent and the call may cost ${usd:.4f}"
            raise _refuse(said, "daily_spend")

    def record(self, provider: str, model: str, usage: TokenUsage, usd: float) -> None:
        """Record a call and its cost."""
        self.total = self.total.plus(Metered(1, *usage, round(usd, 9)))
        time = self._clock().astimezone(UTC).isoformat(timespec="seconds")
        used = {"provider": provider, "model": model, **usage._asdict()}
        self._append({"time": time, **used, "usd": round(usd, 9)})

    def _append(self, *lines: dict[str, object]) -> None:
        try:
            append_lines(self._file, lines)
        except OSError as exc:
            raise ProviderFailed(
                f"the language model was not asked: {self._file}, where its cost is noted, cannot be written ({exc.strerror})"
            ) from exc


def _refuse(reason: str, setting: str) -> SpendLimitReached:
    hint = f"raise llm.{setting} in your own configuration, or wait until 00:00 UTC"
    return SpendLimitReached(f"the language model was not asked: {reason}", hint, is_passing=True)


def _dollars(call: Mapping[str, Any]) -> float:
    try:
        return max(0.0, float(call["usd"]))
    except (ValueError, KeyError, TypeError):
        return 0.0
