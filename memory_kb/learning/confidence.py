"""Compute the confidence of a rule (decay, feedback, maturity and flags), and how present any entry still is.

Pure functions of numbers and days. Confidences are
rounded to six decimals before they are compared or stored, so that 0.5 + 0.1 + 0.2 reaches 0.8.
"""

# Annotations are evaluated here: to parse them from text takes a named tuple twice as long to define.
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.memory import Memory
from memory_kb.search.scoring import activation, decay
from memory_kb.text import parse_date, pluralize

if TYPE_CHECKING:
    from memory_kb.markdown.splice import Value

#: What a feedback adds after the decay is settled: one bug outweighs four successes.
DELTAS = {"success": 0.05, "failure": -0.20, "mixed": 0.0}
RULE_OUTCOMES = tuple(DELTAS)
MATURITIES = ("nascent", "established", "proven")
DEFAULT_CONFIDENCE = 0.5
DEMOTION, REMOVAL = "demotion_candidate", "removal_candidate"
_DIGITS = 6
#: How much an entry of each kind weighs.
_TYPE_WEIGHTS = {
    "policy": 1.5,
    "pitfall": 1.4,
    "architecture": 1.3,
    "decision": 1.2,
    "rule": 1.2,
    "skill": 1.1,
    "preference": 1.0,
    "fact": 0.9,
    "episode": 0.7,
}


class Evidence(NamedTuple):
    """What speaks for and against a rule; its confidence fades from `applied`, the last outcome or creation."""

    confidence: float = DEFAULT_CONFIDENCE
    maturity: str = MATURITIES[0]
    success_count: int = 0
    failure_count: int = 0
    applied: date | None = None

    @property
    def fields(self) -> "dict[str, Value]":
        """What a file says of a rule's evidence, beside its days."""
        return {
            "confidence": self.confidence,
            "maturity": self.maturity,
            "success_count": self.success_count,
            "failure_count": self.failure_count,
        }

    @property
    def described(self) -> str:
        """Its failures and successes in words."""
        return f"{pluralize(self.failure_count, 'failure')} and {pluralize(self.success_count, 'success', 'successes')}"

    @property
    def applications(self) -> int:
        """How often it was applied with a known outcome."""
        return self.success_count + self.failure_count

    def decayed(self, today: date) -> float:
        """Return the confidence that is left today; without a day nothing has faded."""
        days = (today - self.applied).days if self.applied else 0
        return round(self.confidence * decay(days), _DIGITS)


def read_evidence(memory: Memory) -> Evidence:
    """Return the evidence block of an entry; what cannot be used is read as its default."""
    word = (memory.word("maturity") or "").lower()
    made = parse_date(memory.created_at) or memory.day("date") or memory.day("created")
    return Evidence(
        confidence=round(memory.share("confidence", DEFAULT_CONFIDENCE), _DIGITS),
        maturity=word if word in MATURITIES else MATURITIES[0],
        success_count=memory.count("success_count"),
        failure_count=memory.count("failure_count"),
        applied=memory.day("last_applied") or made or (memory.seen if memory.last_reinforced is None else None),
    )


def add_outcome(evidence: Evidence, outcome: str, today: date) -> Evidence:
    """Return the evidence after an outcome: what has faded is settled first, then the outcome added.

    To add to the unfaded value would let one success resurrect a rule nobody used for a year.

    Example:
        >>> rule = Evidence(0.8, applied=date(2026, 1, 1))
        >>> [add_outcome(rule, word, date(2026, 4, 1)).confidence for word in ("success", "failure")]
        [0.45, 0.2]
    """
    confidence = round(min(1.0, max(0.0, evidence.decayed(today) + DELTAS[outcome])), _DIGITS)
    return evidence._replace(
        confidence=confidence,
        success_count=evidence.success_count + (outcome == "success"),
        failure_count=evidence.failure_count + (outcome == "failure"),
        applied=today,
    )


def mature(evidence: Evidence, today: date, *, is_pinned: bool = False) -> str:
    """Return the maturity that the evidence earns, one level up or down at most.

    Between the bounds for rising and falling nothing moves. A pinned rule does not fall.
    """
    confidence, level = evidence.decayed(today), evidence.maturity
    if level == "nascent":
        return "established" if confidence >= 0.5 and evidence.applications >= 3 else level
    if level == "established":
        if confidence > 0.8 and evidence.applications >= 10:
            return "proven"
        return "nascent" if confidence < 0.3 and not is_pinned else level
    return "established" if confidence < 0.5 and not is_pinned else level


def find_flag(evidence: Evidence, today: date) -> str | None:
    """Return what a rule is a candidate for: removal, else demotion, else nothing."""
    confidence = evidence.decayed(today)
    if confidence < 0.1 and evidence.failure_count > evidence.success_count:
        return REMOVAL
    return DEMOTION if confidence < 0.2 else None


def needs_inversion(evidence: Evidence) -> bool:
    """Return whether a rule failed so often that its opposite should be the rule."""
    return evidence.failure_count >= 3 and evidence.failure_count > 2 * evidence.success_count


def activation_score(kind: str, count: int, seen: date | None, today: date, half_life: float = 90.0) -> float:
    """Return `type_weight * decay * (1 + count)` with no floor; an entry without a date does not age."""
    days = max(0, (today - seen).days) if seen else 0
    return activation(_TYPE_WEIGHTS.get(kind, 0.9), days, count, half_life=half_life)
