"""What an extraction reports: scope by scope, what was asked, kept, dropped, and what it cost."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from memory_kb.learning.intake import TAKEN_AWAY
from memory_kb.reports import RunReport

#: The outcomes of a scope that had what it needed and came to its end.
SUCCEEDED = ("done", "quiet", "unchanged", "empty")


class Used(NamedTuple):
    """Calls to a language model, their tokens, and dollars; estimated where nothing was asked."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0.0

    def __str__(self) -> str:
        """Return what it took, in words.

        Example:
            >>> str(Used(1, 1_200, 80, 0.0031))
            '1 call, 1,200 tokens in and 80 out, $0.0031'
        """
        calls = f"{self.calls:,} call{'' if self.calls == 1 else 's'}"
        return f"{calls}, {self.input_tokens:,} tokens in and {self.output_tokens:,} out, ${self.usd:.4f}"

    def plus(self, other: Used, sign: int = 1) -> Used:
        """Return this and another together, or with `sign` -1 what this has more.

        Example:
            >>> Used(2, 300, 20, 0.2).plus(Used(1, 100, 10, 0.1), -1)
            Used(calls=1, input_tokens=200, output_tokens=10, usd=0.1)
        """
        return Used(
            self.calls + sign * other.calls,
            self.input_tokens + sign * other.input_tokens,
            self.output_tokens + sign * other.output_tokens,
            round(self.usd + sign * other.usd, 9),
        )


UNUSED = Used()


def add_up(parts: Iterable[Used]) -> Used:
    """Return what some calls took together."""
    return functools.reduce(Used.plus, parts, UNUSED)


class Kept(NamedTuple):
    """A learning and what became of it: created, reinforced, known, forgotten or refused."""

    id: str
    path: str
    action: str
    title: str
    message: str = ""


class Dropped(NamedTuple):
    """How many learnings of an answer were not kept for one reason."""

    reason: str
    times: int


@dataclass(frozen=True, slots=True)
class ScopeReport:
    """What one scope came to.

    Attributes:
        outcome: `done`; `quiet` when there was nothing worth keeping; `unchanged` when the same
            was dealt with before; `empty` when there was nothing to look at; `skipped` for want of
            a model; `failed`; `planned` by a dry run.
        message: why, in one sentence.
    """

    scope: str
    outcome: str
    message: str = ""
    used: Used = UNUSED
    kept: tuple[Kept, ...] = ()
    dropped: tuple[Dropped, ...] = ()

    def count(self, action: str) -> int:
        """Return how many learnings had this action."""
        return sum(one.action == action for one in self.kept)


@dataclass(frozen=True, slots=True)
class ExtractionReport:
    """What an extraction came to; `runs` are what it wrote, each to be taken back by its name."""

    session: str
    scopes: tuple[ScopeReport, ...]
    used: Used
    runs: tuple[RunReport, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def was_taken_away(self) -> int:
        """How many learnings are not kept, since they were taken back or deleted before."""
        return sum(kept.message == TAKEN_AWAY for one in self.scopes for kept in one.kept)

    @property
    def summary(self) -> str:
        """How many of the scopes succeeded, or would be asked for."""
        planned = sum(one.outcome == "planned" for one in self.scopes)
        if planned:
            return f"{planned}/{len(self.scopes)} scopes would be asked for"
        succeeded = sum(one.outcome in SUCCEEDED for one in self.scopes)
        return f"{succeeded}/{len(self.scopes)} scopes succeeded"
