"""Compute the confidence of rules, select those that fit a task, and format them for a prompt.

Confidences are rounded to six decimals before they are compared or stored, so that 0.5 + 0.1 + 0.2 reaches 0.8.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.errors import UsageError
from memory_kb.lazy_regex import lazy_regex
from memory_kb.memory import Memory
from memory_kb.model import SCOPES
from memory_kb.search.scoring import decay
from memory_kb.store.changes import Change, plan_fields
from memory_kb.text import count_tokens, parse_date, pluralize

if TYPE_CHECKING:
    from memory_kb.markdown.splice import Value
    from memory_kb.providers.protocols import TokenCounter

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
#: The kinds that the playbook holds.
RULE_KINDS = ("rule", "pitfall")
#: A prompt gets at most this much of the playbook, both lists together.
MAX_TOKENS, MAX_RULES = 500, 10
MIN_SCORE = 0.05
PITFALL_BOOST = 1.5
_INERT = ("proposed", "rejected")
#: The flag of a rule that says what not to do and fails at it: its opposite would say nothing.
DEPRECATION = "deprecation_candidate"
#: The field with the day until which a person put the judgment off.
SNOOZED = "snoozed_until"
_DOUBTED = frozenset({REMOVAL, DEPRECATION})
_HEADING = lazy_regex(r" {0,3}#{1,6}(?:[ \t]+(.*?))?[ \t#]*$")
#: The parts of a body that follow its text.
RULE_PARTS = frozenset({"conditions", "correct approach", "incorrect approach", "what fails", "why", "prevention"})
_CONTROL = lazy_regex(r"[\x00-\x1f\x7f-\x9f]")
_AVOID = lazy_regex(r"avoid:\s*", re.IGNORECASE)
_HEADS = {
    "rule": "## Relevant Guidelines\n\nThe following rules are based on past experience with similar tasks:\n",
    "pitfall": "## Patterns to Avoid\n\nThese patterns have caused problems in similar past work:\n",
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


def parse_outcome(word: str) -> str:
    """Return the outcome that a word means: `helpful`, `harmful` and `partial` have other names."""
    other_names = {"helpful": "success", "harmful": "failure", "partial": "mixed"}
    outcome = other_names.get(word.lower(), word.lower())
    if outcome not in RULE_OUTCOMES:
        raise UsageError(f"unknown outcome {word!r}", f"it may be {', '.join(RULE_OUTCOMES)}")
    return outcome


def mature(evidence: Evidence, today: date, *, is_pinned: bool = False) -> str:
    """Return the maturity that the evidence earns, one level up or down at most.

    Between the bounds for rising and falling nothing moves. A pinned rule does not fall.
    """
    confidence, level = evidence.decayed(today), evidence.maturity
    applications = evidence.success_count + evidence.failure_count
    if level == "nascent":
        return "established" if confidence >= 0.5 and applications >= 3 else level
    if level == "established":
        if confidence > 0.8 and applications >= 10:
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
    return _TYPE_WEIGHTS.get(kind, 0.9) * decay(days, half_life) * (1 + count)


class PlaybookRule(NamedTuple):
    """A rule or pitfall as it is listed and chosen.

    `confidence` is what is left of it today, `stored_confidence` what the file says. `relevance` is the share of its
    tags that fits the task, and `score` that times the confidence, times 1.5 for a pitfall; None where nothing was
    asked.
    """

    id: str
    kind: str
    text: str
    confidence: float
    stored_confidence: float
    maturity: str
    success_count: int
    failure_count: int
    last_applied: date | None
    tags: tuple[str, ...]
    flags: tuple[str, ...]
    is_pinned: bool
    scope: str
    path: str
    line: int
    relevance: float | None = None
    score: float | None = None


class Selection(NamedTuple):
    """The rules for a task, best first; `text` is ready for a prompt, `token_count` its size."""

    rules: tuple[PlaybookRule, ...]
    anti_patterns: tuple[PlaybookRule, ...]
    total_score: float
    token_count: int
    text: str


def in_force(memories: Iterable[Memory]) -> tuple[Memory, ...]:
    """Return the entries without those that a narrower scope has under the same id.

    One that is retired there hides the wider one too; what is only proposed hides nothing.
    """
    held = list(memories)
    narrowest: dict[str, int] = {}
    for memory in held:
        if memory.status not in _INERT and not memory.is_quarantined:
            narrowest[memory.id] = min(SCOPES.index(memory.place.scope), narrowest.get(memory.id, len(SCOPES)))
    return tuple(memory for memory in held if SCOPES.index(memory.place.scope) <= narrowest.get(memory.id, len(SCOPES)))


def active_rules(memories: Iterable[Memory]) -> tuple[Memory, ...]:
    """Return the live rules and pitfalls in force, those that nothing has superseded and nobody has to verify first."""
    return tuple(memory for memory in in_force(memories) if is_rule(memory) and not memory.is_quarantined)


def is_rule(memory: Memory) -> bool:
    """Return whether an entry is a live rule or pitfall that nothing has superseded."""
    return memory.kind in RULE_KINDS and memory.is_live and not memory.is_superseded


def was_reviewed(memory: Memory) -> bool:
    """Return whether a person has reviewed a rule since its last outcome."""
    reviewed, applied = memory.day("reviewed"), memory.day("last_applied")
    return reviewed is not None and (applied is None or reviewed >= applied)


def is_snoozed(memory: Memory, today: date) -> bool:
    """Return whether a person put the judgment off to a later day."""
    until = memory.day(SNOOZED)
    return until is not None and until > today


def rule_text(memory: Memory) -> str:
    """Return what a rule says, on one line that nothing in it breaks out of.

    That is the first paragraph of its body, without headings; its title where there is none.
    """
    lines: list[str] = []
    for line in memory.text.replace("\r\n", "\n").split("\n"):
        heading = _HEADING.match(line)
        if lines and (heading or not line.strip()):
            break
        if heading and (heading[1] or "").strip().lower() in RULE_PARTS:
            break
        if not heading and line.strip():
            lines.append(line)
    return _CONTROL.sub("", " ".join(" ".join(lines).split())) or _CONTROL.sub("", " ".join(memory.title.split()))


def make_rule(memory: Memory, today: date, wanted: Sequence[str] | None = None) -> PlaybookRule:
    """Return a rule as it is listed, or as it is chosen for the words of a task."""
    evidence = read_evidence(memory)
    confidence = evidence.decayed(today)
    rule = PlaybookRule(
        id=memory.id,
        kind=memory.kind,
        text=rule_text(memory),
        confidence=confidence,
        stored_confidence=evidence.confidence,
        maturity=evidence.maturity,
        success_count=evidence.success_count,
        failure_count=evidence.failure_count,
        last_applied=memory.day("last_applied"),
        tags=memory.tags,
        flags=memory.words("flags"),
        is_pinned=memory.is_pinned,
        scope=memory.place.scope,
        path=memory.path,
        line=memory.line,
    )
    if wanted is None:
        return rule
    relevance = measure_relevance(memory.tags, wanted)
    score = confidence * relevance * (PITFALL_BOOST if memory.kind == "pitfall" else 1.0)
    return rule._replace(relevance=round(relevance, 6), score=round(score, 6))


def measure_relevance(tags: Sequence[str], wanted: Iterable[str]) -> float:
    """Return which share of a rule's tags a task asks for, in any case of letters."""
    own, asked = {tag.casefold() for tag in tags}, {word.strip().lstrip("#").casefold() for word in wanted}
    return len(own & asked) / len(own) if own else 0.0


def select_rules(
    memories: Iterable[Memory],
    labels: Sequence[str],
    type: str | None,
    today: date,
    *,
    max_tokens: int = MAX_TOKENS,
    max_rules: int = MAX_RULES,
    count: "TokenCounter" = count_tokens,
) -> Selection:
    """Choose the rules and pitfalls that fit a task, best first.

    Both lists share one budget. A rule that does not fit into what is left of it is skipped
    and the next is tried. What people prefer (`proxy-tasks/`) is no rule for a worker.
    """
    wanted = [word for word in (*labels, type) if word]
    usable = (
        one for one in active_rules(memories) if one.place.learning_type != "proxy" and not is_doubted(one, today)
    )
    known = (make_rule(one, today, wanted) for one in usable)
    fitting = [rule for rule in known if (rule.score or 0.0) >= MIN_SCORE]
    fitting.sort(key=lambda rule: (-(rule.score or 0.0), rule.id, rule.path))
    chosen: list[PlaybookRule] = []
    for rule in fitting:
        if len(chosen) == max_rules:
            break
        if count(format_for_prompt([*chosen, rule])) <= max_tokens:
            chosen.append(rule)
    text = format_for_prompt(chosen)
    return Selection(
        rules=tuple(rule for rule in chosen if rule.kind == "rule"),
        anti_patterns=tuple(rule for rule in chosen if rule.kind == "pitfall"),
        total_score=round(sum(rule.score or 0.0 for rule in chosen), 6),
        token_count=count(text),
        text=text,
    )


def format_for_prompt(rules: Sequence[PlaybookRule]) -> str:
    """Return rules in their order and then pitfalls, as a prompt shows them; a list that is empty is left out."""
    lists = []
    for kind, head in _HEADS.items():
        said = [format_rule(kind, rule.text, rule.maturity, rule.confidence) for rule in rules if rule.kind == kind]
        lines = [f"{number}. {line}" for number, line in enumerate(said, 1)]
        if lines:
            lists.append("\n".join((head, *lines)))
    return "\n\n".join(lists)


def format_rule(kind: str, text: str, maturity: str, confidence: float) -> str:
    """Return a rule or pitfall as a line of a prompt shows it.

    Example:
        >>> format_rule("rule", "Wait for the event.", "proven", 0.92), format_rule("pitfall", "Avoid: sleeping.", "nascent", 0.5)
        ('[PROVEN] Wait for the event. (confidence: 0.92)', 'AVOID: sleeping. (confidence: 0.50)')
    """
    if kind == "pitfall":
        said = f"AVOID: {_AVOID.sub('', text, count=1)}" if _AVOID.match(text) else f"Pitfall: {text}"
        return f"{said} (confidence: {confidence:.2f})"
    return f"[{maturity.upper()}] {text} (confidence: {confidence:.2f})"


def plan_feedback(memory: Memory, outcome: str, today: date, reason: str) -> Change | None:
    """Plan to count an outcome of a rule, pitfall or skill."""
    return plan_fields(memory, count_outcome(memory, outcome, today), reason)


def count_outcome(memory: Memory, outcome: str, today: date) -> "dict[str, Value]":
    """Return the fields of a rule, pitfall or skill after one more outcome; a skill has no decay."""
    assert outcome in RULE_OUTCOMES
    if memory.kind == "skill":
        name = f"{outcome}_count"
        return {} if outcome == "mixed" else {name: memory.count(name) + 1}
    after = add_outcome(read_evidence(memory), outcome, today)
    values: dict[str, Value] = {"confidence": after.confidence}
    if outcome != "mixed":
        values[f"{outcome}_count"] = getattr(after, f"{outcome}_count")
    return values | {"last_applied": today.isoformat()}


def is_doubted(memory: Memory, today: date) -> bool:
    """Return whether a rule or pitfall is left out of what an agent is given.

    That is one that is flagged as a candidate for removal, and one whose confidence is below what
    any selection takes. Here the confidence fades from the last day on which the rule was applied
    or recalled, and not at all where a person pinned it.
    """
    if memory.kind not in RULE_KINDS:
        return False
    if not _DOUBTED.isdisjoint(memory.words("flags")):
        return True
    evidence = read_evidence(memory)
    if memory.is_pinned or memory.is_evergreen:
        evidence = evidence._replace(applied=None)
    elif evidence.applied and memory.seen:
        evidence = evidence._replace(applied=max(evidence.applied, memory.seen))
    return evidence.decayed(today) * (PITFALL_BOOST if memory.kind == "pitfall" else 1.0) < MIN_SCORE
