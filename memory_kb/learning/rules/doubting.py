"""Rules that nobody is given before a person has looked at them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from datetime import date

from memory_kb.learning.memories import Memory
from memory_kb.learning.rules.confidence import REMOVAL, read_evidence
from memory_kb.learning.rules.inversion import DEPRECATION, spot_of, targets_of
from memory_kb.learning.rules.playbook import MIN_SCORE, PITFALL_BOOST, RULE_KINDS
from memory_kb.model import Location

_FLAGS = frozenset({REMOVAL, DEPRECATION})


def is_doubted(memory: Memory, today: date, waiting: Collection[tuple[str, Location]] = ()) -> bool:
    """Tell whether a rule or pitfall is left out of what an agent is given.

    That is one that is flagged as a candidate for removal, one whose inversion is proposed, and
    one whose confidence is below what any selection takes (S0-44). Here the confidence fades from
    the last day on which the rule was applied or recalled, and not at all where a person pinned it.

    Args:
        memory: any entry; others than rules are not doubted.
        today: the day ages count to.
        waiting: the spots of rules whose inversion is proposed.

    Example:
        >>> rule = Memory("x", "a.md", "", Location(), "T", "", kind="rule", metadata={"confidence": 0.04})
        >>> is_doubted(rule, date(2026, 1, 1)), is_doubted(replace(rule, kind="pitfall"), date(2026, 1, 1))
        (True, False)
    """
    if memory.kind not in RULE_KINDS:
        return False
    if not _FLAGS.isdisjoint(memory.words("flags")) or spot_of(memory.id, memory) in waiting:
        return True
    evidence = read_evidence(memory)
    if memory.is_pinned or memory.is_evergreen:
        evidence = evidence._replace(applied=None)
    elif evidence.applied and memory.seen:
        evidence = evidence._replace(applied=max(evidence.applied, memory.seen))
    return evidence.decayed(today) * (PITFALL_BOOST if memory.kind == "pitfall" else 1.0) < MIN_SCORE


def set_aside(memories: Iterable[Memory], today: date) -> list[Memory]:
    """Return the entries with the doubted rules among them as if they were retired: they still hide wider ones."""
    held = list(memories)
    waiting = targets_of(held)
    return [replace(one, status="retired") if one.is_live and is_doubted(one, today, waiting) else one for one in held]
