"""The evidence gate before a proposed rule is accepted: what past sessions say for and against it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from memory_kb.learning.memories import Memory
from memory_kb.learning.twins import likeness
from memory_kb.retrieval.query import parse_words

#: Sessions that accept a rule, sessions that reject one, and how alike an existing one says the same.
ACCEPTING, REJECTING, ALIKE = 5, 3, 0.85
_SHORTEST = 15
DRAFT_CONFIDENCE = 0.4
_KEYWORDS, _TELLING = 3, 4


class Evidence(NamedTuple):
    """How many past sessions about a rule's words ended well, and how many badly."""

    successes: int = 0
    failures: int = 0

    def plus(self, other: Evidence) -> Evidence:
        """Return both together.

        Example:
            >>> Evidence(2, 0).plus(Evidence(3, 1))
            Evidence(successes=5, failures=1)
        """
        return Evidence(self.successes + other.successes, self.failures + other.failures)


class Near(NamedTuple):
    """The rule that says nearly the same, and how nearly."""

    rule: Memory
    similarity: float


class Verdict(NamedTuple):
    """What becomes of a proposed rule.

    `decision` is `accept`, `draft` (nascent, with the confidence given), `reject`, or `helpful`: a
    mark on the rule `existing`, which says the same.
    """

    decision: str
    reason: str
    confidence: float | None = None
    existing: Memory | None = None


def judge_rule(text: str, evidence: Evidence, near: Near | None = None) -> Verdict:
    """Return what becomes of a proposed rule.

    Example:
        >>> judge_rule("Run the migrations first.", Evidence(5, 0)).decision, judge_rule("Run the migrations first.", Evidence(0, 3)).decision
        ('accept', 'reject')
        >>> judge_rule("Run the migrations first.", Evidence(4, 1))
        Verdict(decision='draft', reason='4 sessions speak for it and 1 against', confidence=0.4, existing=None)
    """
    if len(" ".join(text.split())) < _SHORTEST:
        return Verdict("reject", f"a rule of fewer than {_SHORTEST} characters says too little")
    if near and near.similarity >= ALIKE:
        return Verdict("helpful", f"rule {near.rule.id} says the same", existing=near.rule)
    good, bad = evidence
    told = f"{good} session{'' if good == 1 else 's'} speak{'s' if good == 1 else ''} for it and {bad} against"
    if good >= ACCEPTING and not bad:
        return Verdict("accept", told)
    if bad >= REJECTING and not good:
        return Verdict("reject", told)
    return Verdict("draft", told, DRAFT_CONFIDENCE)


def find_nearest(text: str, rules: Iterable[Memory]) -> Near | None:
    """Return the live rule or pitfall that is most like a text; one that says the opposite is not.

    Example:
        >>> from memory_kb.model import Location
        >>> rule = Memory("r1", "a.md", "", Location(), "T", "Run the migrations first.", kind="rule")
        >>> find_nearest("run the migrations first", [rule]).similarity, find_nearest("never run the migrations first", [rule])
        (1.0, None)
    """
    found = [Near(one, likeness(text, one.text)) for one in rules if one.is_live and one.kind in ("rule", "pitfall")]
    best = max(found, key=lambda near: near.similarity, default=None)
    return best if best and best.similarity > 0 else None


def keywords(text: str) -> tuple[str, ...]:
    """Return the words of a rule that past sessions are searched for, the longest first.

    Example:
        >>> keywords("Always run the database migrations before the integration tests.")
        ('integration', 'migrations', 'database')
    """
    words = list(dict.fromkeys(word.strip('"') for word in parse_words(text).terms))
    telling = [word for word in words if len(word) >= _TELLING] or words
    return tuple(sorted(telling, key=len, reverse=True))[:_KEYWORDS]
