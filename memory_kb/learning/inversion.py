"""Propose a warning to replace a rule that failed too often, and replace the rule when it is approved."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from memory_kb.learning.confidence import needs_inversion, read_evidence
from memory_kb.learning.ingest import Learning
from memory_kb.learning.playbook import DEPRECATION, active_rules, rule_text, was_reviewed
from memory_kb.learning.render_entry import Draft, without_empty
from memory_kb.markdown.splice import Value
from memory_kb.memory import Memory
from memory_kb.model import Link, Location
from memory_kb.store.changes import Change, Plan, plan_fields, plan_replaced, with_links, with_words
from memory_kb.text import pluralize

_TAGS = ("inverted", "anti-pattern")
_NEGATIVE = re.compile(
    r"(?:avoid|never|do not|don['\u2019]t|must not|should not|not|no|stop|refrain|beware)\b", re.IGNORECASE
)


def plan_scan(memories: Iterable[Memory]) -> tuple[tuple[Learning, ...], Plan]:
    """Return a proposed warning for every rule that failed too often, and the changes that need no proposal.

    Pitfalls, pinned rules, those whose proposal is open or was rejected, and those that a person has looked at since
    they failed are skipped. A rule that is negative already is flagged. An approval that somebody wrote into
    the proposal's file by hand is completed.
    """
    held = list(memories)
    waiting = frozenset(
        spot_of(target, one) for one in held if one.status in ("proposed", "rejected") and (target := original_of(one))
    )
    learnings: dict[str, Learning] = {}
    changes: list[Change | None] = []
    for memory in active_rules(held):
        is_due = (
            memory.kind == "rule"
            and not memory.is_pinned
            and not was_reviewed(memory)
            and needs_inversion(read_evidence(memory))
        )
        if is_due and not is_negative(rule_text(memory)):
            if spot_of(memory.id, memory) not in waiting:
                learning = _propose(memory)
                learnings.setdefault(learning.key, learning)
        elif is_due or DEPRECATION in memory.words("flags"):
            changes.append(_flag(memory, is_due=is_due))
    for proposal in held:
        if proposal.is_live and is_in_review(proposal):
            changes += plan_replacement(proposal, held, only_new=True)
    return tuple(learnings.values()), changes


def is_negative(text: str) -> bool:
    """Return whether a rule says what not to do.

    Example:
        >>> is_negative("Never push to main."), is_negative("Notify the owner first.")
        (True, False)
    """
    return _NEGATIVE.match(text.lstrip(" *_`\"'")) is not None


def invert(text: str, failures: int, successes: int) -> str:
    """Return the warning that a rule becomes."""
    return f"AVOID: {text} -- this pattern has caused repeated issues ({failures} failures vs {successes} successes)."


def _propose(memory: Memory) -> Learning:
    evidence = read_evidence(memory)
    place = memory.place
    fields: dict[str, Value | None] = {
        "status": "proposed",
        "confidence": 0.5,
        "sources": list(memory.words("sources")),
        "links": [{"to": memory.id, "relation": "derived_from"}],
    }
    draft = Draft(
        invert(rule_text(memory), evidence.failure_count, evidence.success_count),
        kind="pitfall",
        tags=tuple(dict.fromkeys((*memory.tags, *_TAGS))),
        applies_to=memory.applies_to,
        fields=without_empty(fields),
    )
    key = "/".join(("inversion", place.scope, place.job or "", place.task or "", memory.id))
    failed, succeeded = pluralize(evidence.failure_count, "time"), pluralize(evidence.success_count, "time")
    reason = f"Inversion: {memory.id} failed {failed} and succeeded {succeeded}."
    return Learning(draft, place._replace(learning_type="task"), key, reason)


def _flag(memory: Memory, *, is_due: bool) -> Change | None:
    left = [word for word in memory.words("flags") if word != DEPRECATION]
    flags: Value = with_words(memory, "flags", DEPRECATION) if is_due else left
    said = f"Flagged as {DEPRECATION}" if is_due else "No candidate any more"
    return plan_fields(memory, {"flags": flags}, f"{said}: negative already, {read_evidence(memory).described}.")


def original_of(proposal: Memory) -> str | None:
    """Return the id of the rule that a warning was made from, None for any other entry."""
    if proposal.kind != "pitfall" or _TAGS[0] not in (tag.casefold() for tag in proposal.tags):
        return None
    return next(
        (link.to for link in proposal.links if link.relation == "derived_from" and link.to != proposal.id), None
    )


def spot_of(entry_id: str, near: Memory) -> tuple[str, Location]:
    """Return a key that distinguishes an id of one scope from the same id of another."""
    return entry_id, near.place._replace(learning_type="task")


def is_in_review(memory: Memory) -> bool:
    """Return whether an entry is in a `review/` folder."""
    return "review" in memory.path.split("/")[:-1]


def plan_replacement(proposal: Memory, memories: Sequence[Memory], *, only_new: bool = False) -> list[Change]:
    """Plan to retire the rule that an approved warning was made from; both link to each other.

    With `only_new` a rule that is linked already is left alone: somebody has brought it back.
    """
    wanted = original_of(proposal)
    found = [memory for memory in memories if memory.id == wanted and memory.id != proposal.id]
    near = [memory for memory in found if spot_of(memory.id, memory) == spot_of(memory.id, proposal)]
    changes: list[Change] = []
    for memory in near or found[:1]:
        if only_new and any(link.relation == "superseded_by" and link.to == proposal.id for link in memory.links):
            continue
        values: dict[str, Value] = {"status": "retired", "confidence": 0.0}
        change = plan_replaced(memory, proposal.id, f"Inversion: replaced by {proposal.id}.", values)
        changes += [change] if change else []
    if changes:
        links: Value = list(with_links(proposal, Link(changes[0].entry_id or "", "supersedes")))
        link = plan_fields(proposal, {"links": links}, "Inversion: approved.")
        changes += [link] if link else []
    return [change.joined(f"inversion {proposal.id}") for change in changes]
