"""How entries stand that cite code or have a last day, and what a prompt says beside them."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.learning.memories import Memory

if TYPE_CHECKING:
    from memory_kb.learning.freshness.citations import Unusable
    from memory_kb.learning.freshness.verdicts import Finding

_SHOWN_REFERENCE, _SHOWN_REASONS = 80, 2


class Standing(NamedTuple):
    """How an entry stands: the worst that its citations and its `valid_until` say.

    Attributes:
        verdict: `fresh`, `moved`, `drifted`, `gone`, `over` past its date, or None where there is
            nothing to judge. One of several citations that is gone leaves the rest: `drifted`.
        findings: what is told of each citation.
    """

    verdict: str | None
    findings: tuple[Finding, ...] = ()
    unusable: tuple[Unusable, ...] = ()

    @property
    def is_void(self) -> bool:
        """Whether nothing of it should be put before an agent."""
        return self.verdict in ("gone", "over")

    @property
    def is_stale(self) -> bool:
        """Whether somebody should look at it."""
        return self.verdict in ("gone", "drifted")


def has_claim(memory: Memory) -> bool:
    """Tell whether an entry may be anything but sound: it cites something, or has a last day."""
    return "cites" in memory.metadata or "valid_until" in memory.metadata


def is_over(memory: Memory, today: date) -> bool:
    """Tell whether the last day of an entry has passed.

    Example:
        >>> from memory_kb.model import Location
        >>> one = Memory("x", "a.md", "", Location(), "T", "", metadata={"valid_until": "2026-03-01"})
        >>> is_over(one, date(2026, 3, 1)), is_over(one, date(2026, 3, 2))
        (False, True)
    """
    last = memory.day("valid_until")
    return last is not None and today > last


def say_mark(standing: Standing) -> str:
    """Return what stands beside an entry in a prompt; empty where it is as it was.

    Example:
        >>> from memory_kb.learning.freshness.citations import Citation, Reference
        >>> from memory_kb.learning.freshness.verdicts import Finding
        >>> finding = Finding(Citation(Reference("src/api/x.py", 10, 20)), "drifted", "src/api/x.py", reason="changed")
        >>> say_mark(Standing("drifted", (finding,)))
        '[may be stale: src/api/x.py#L10-L20 changed]'
    """
    stale = [one for one in standing.findings if one.verdict in ("drifted", "gone")]
    if standing.is_stale and stale:
        told = "; ".join(
            f"{_short(one.citation.reference.text)} {_short(one.reason)}" for one in stale[:_SHOWN_REASONS]
        )
        more = f"; and {len(stale) - _SHOWN_REASONS} more" if len(stale) > _SHOWN_REASONS else ""
        return f"[may be stale: {told}{more}]"
    away = [one for one in standing.findings if one.verdict == "moved" and one.path != one.citation.reference.path]
    names = dict.fromkeys(f"{_short(one.citation.reference.path)} is now {_short(one.path)}" for one in away)
    told = "; ".join(list(names)[:_SHOWN_REASONS])
    return f"[{told}]" if told else ""


def _short(text: str) -> str:
    return (
        text if len(text) <= _SHOWN_REFERENCE else f"{text[: _SHOWN_REFERENCE // 2]}…{text[-_SHOWN_REFERENCE // 2 :]}"
    )
