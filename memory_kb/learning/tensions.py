"""Two entries that stand against each other until somebody judges: what marks them, and what a judgment gives back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from memory_kb.learning.memories import Memory, plan_fields, with_words
from memory_kb.notes.plans import Change
from memory_kb.notes.splice import Value

#: What is left of the importance of each, and the least of it (S3-65).
TENSION_FACTOR, TENSION_FLOOR = 0.7, 0.1
_FLAG = "review"


def is_in_tension(memory: Memory) -> bool:
    """Tell whether an entry bears the marks of a tension that nobody has judged."""
    return _FLAG in memory.words("flags") and any(link.relation == "contradicts" for link in memory.links)


def weaken(memory: Memory) -> dict[str, Value]:
    """Return the fields of an entry in a tension; its importance is lowered once, however many it stands against.

    Example:
        >>> from memory_kb.model import Location
        >>> weaken(Memory("x", "a.md", "", Location(), "T", "Text.", importance=0.5))
        {'importance': 0.35, 'flags': ['review']}
    """
    flags: Value = with_words(memory, "flags", _FLAG)
    if is_in_tension(memory):
        return {"flags": flags}
    return {
        "importance": min(memory.importance, max(TENSION_FLOOR, round(memory.importance * TENSION_FACTOR, 6))),
        "flags": flags,
    }


def restore(memory: Memory) -> dict[str, Value]:
    """Return the importance that a tension took from an entry; nothing where there was none, or where it took no share.

    Example:
        >>> from memory_kb.entry import Link
        >>> from memory_kb.model import Location
        >>> marked = {"flags": ["review"]}
        >>> restore(Memory("x", "a.md", "", Location(), "T", "", importance=0.35, links=(Link("y", "contradicts"),), metadata=marked))
        {'importance': 0.5}
    """
    if not is_in_tension(memory) or memory.importance <= TENSION_FLOOR:
        return {}
    return {"importance": min(1.0, round(memory.importance / TENSION_FACTOR, 6))}


def plan_settlements(rejected: Collection[Memory], memories: Iterable[Memory]) -> Iterator[Change]:
    """Plan to settle what stood against rejected entries alone: the flag goes, the importance comes back."""
    lost = {one.id for one in rejected}
    everything = list(memories)
    live = {one.id for one in everything if one.is_live} - lost
    for memory in everything:
        against = {link.to for link in memory.links if link.relation == "contradicts"}
        if memory.is_live and memory.id not in lost and is_in_tension(memory) and against & lost and not against & live:
            values: dict[str, Value] = {
                **restore(memory),
                "flags": [flag for flag in memory.words("flags") if flag != _FLAG],
            }
            change = plan_fields(
                memory, values, f"What it stood against was rejected: {', '.join(sorted(against & lost))}."
            )
            if change:
                yield change
