"""A session that is said to have gone otherwise than was said before: what it credited is settled again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import date

from memory_kb.learning.memories import Memory, plan_fields
from memory_kb.learning.rules.confidence import DELTAS
from memory_kb.learning.rules.outcomes import Account, Credited, Crediting, choose_credit, is_written, mark_of
from memory_kb.learning.rules.playbook import in_force, plan_feedback
from memory_kb.notes.outcomes import Mark, Outcome
from memory_kb.notes.plans import Change, SetFields
from memory_kb.notes.splice import Value


def find_former(
    outcomes: Iterable[Outcome], undone: Collection[str], memories: Iterable[Memory], session: str, word: str
) -> dict[str, Mark]:
    """Return the entries that a session credited last for another outcome than `word`, with what they got.

    Runs that were taken back do not count. Of an outcome that was never confirmed the counter of
    each entry tells whether it was written.
    """
    entries = {memory.id: memory for memory in in_force(memories)}
    last: dict[str, tuple[str, Mark]] = {}
    for outcome in outcomes:
        if outcome.session != session or outcome.run in undone:
            continue
        for name, mark in outcome.marks.items():
            if outcome.is_done or (name in entries and is_written(entries[name], mark)):
                last[name] = outcome.outcome, mark
    return {name: mark for name, (told, mark) in last.items() if told != word}


def plan_second_thoughts(
    memories: Iterable[Memory], former: Mapping[str, Mark], account: Account, today: date, reason: str
) -> Crediting:
    """Plan to take what some entries were credited back, and to credit them for what is said now."""
    credits_, marks, changes = list[Credited](), dict[str, Mark](), list[Change]()
    for memory in in_force(memories):
        if memory.id not in former or not memory.is_live:
            continue
        credit = choose_credit(memory, account)
        said = former[memory.id]
        change = _plan(memory, said, credit, today, f"Feedback: {credit}, where it was {said.credit} before. {reason}")
        marks[memory.id] = said if credit == said.credit else mark_of(take_back(memory, said), credit, today)
        credits_.append(
            Credited(
                memory.id,
                memory.kind,
                memory.title,
                credit,
                memory.share("confidence", 0.5),
                _confidence(memory, change),
            )
        )
        changes += [change] if change else []
    return Crediting(tuple(credits_), marks, tuple(changes))


def take_back(memory: Memory, mark: Mark) -> Memory:
    """Return an entry as it would be without a credit.

    Example:
        >>> from memory_kb.model import Location
        >>> rule = Memory("r", "a.md", "", Location(), "T", "", kind="rule", metadata={"confidence": 0.55, "success_count": 3})
        >>> dict(take_back(rule, Mark("success", 3)).metadata)
        {'confidence': 0.5, 'success_count': 2}
    """
    if mark.credit == "mixed":
        return memory
    name = f"{mark.credit}_count"
    values: dict[str, object] = {name: max(0, memory.count(name) - 1)}
    if memory.kind != "skill":
        added = DELTAS[mark.credit] if mark.added is None else mark.added
        values["confidence"] = round(min(1.0, max(0.0, memory.share("confidence", 0.5) - added)), 6)
    return replace(memory, metadata={**memory.metadata, **values})


def _plan(memory: Memory, former: Mark, credit: str, today: date, reason: str) -> Change | None:
    if credit == former.credit:
        return None
    before = take_back(memory, former)
    change = plan_feedback(before, credit, today, reason)
    new = dict(change.action.values) if change and isinstance(change.action, SetFields) else {}
    back: dict[str, Value] = {
        name: before.metadata[name] for name in before.metadata if memory.metadata.get(name) != before.metadata[name]
    }
    return plan_fields(memory, back | new, reason)


def _confidence(memory: Memory, change: Change | None) -> float:
    values = dict(change.action.values) if change and isinstance(change.action, SetFields) else {}
    after = values.get("confidence")
    return float(after) if isinstance(after, int | float) else memory.share("confidence", 0.5)
