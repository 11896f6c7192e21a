"""Join entries that say the same into one, and find files that are copies of another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date

from memory_kb.markdown.fields import parse_date
from memory_kb.markdown.splice import Value
from memory_kb.model import Link
from memory_kb.store.plan import (
    Change,
    Memory,
    move,
    plan_fields,
    set_body,
    with_links,
    with_words,
)

_SUMS = ("usage_count", "success_count", "failure_count")
_LAST = ("last_reinforced", "last_applied")


def longest(memories: Sequence[Memory]) -> Memory:
    """Return the entry with the longest text, the first of those."""
    return max(memories, key=lambda memory: len(memory.text.strip()))


def by_rank(memories: Sequence[Memory]) -> tuple[Memory, ...]:
    """Return entries that are to be merged, the primary first: of highest importance, then confidence, then the oldest."""

    def rank(memory: Memory) -> tuple[float, float, date, str, int]:
        made = parse_date(memory.created_at) or date.max
        return -memory.importance, -memory.share("confidence", 0.5), made, memory.path, memory.line

    primary = min(memories, key=rank)
    return (primary, *(memory for memory in memories if memory is not primary))


def plan_archiving(memory: Memory, to: str, reason: str, *successors: str) -> tuple[Change, ...]:
    """Plan to move an entry to a file of the archive, all or nothing, with links to what takes its place.

    An entry that shares its file with others gets one of its own there.
    """
    values: dict[str, Value] = {"status": "archived"}
    if successors:
        values["links"] = with_links(memory, *(Link(one, "superseded_by") for one in successors))
    marked, moved = plan_fields(memory, values, reason), move(memory, to, reason, memory.id)
    return tuple(change.joined(f"archive {memory.path} {memory.id}") for change in (marked, moved) if change)


def merge(
    primary: Memory,
    others: Sequence[Memory],
    archive: Callable[[Memory], str],
    body_of: Callable[[Memory], str],
    reason: str,
    extra: Mapping[str, Value] | None = None,
) -> tuple[Change, ...]:
    """Plan to merge entries into one of them; all of it happens, or nothing.

    The others go to the archive with a link to the primary. `archive` names the file that an entry moves to, `body_of`
    returns its text below the frontmatter; the values in `extra` win over the merged ones.
    """
    everything = (primary, *others)
    together = f"merge {primary.path} {primary.id}"
    said = longest(everything)
    plan: list[Change | None] = []
    if said is not primary:
        plan.append(set_body(primary, primary.id, body_of(said).strip("\r\n"), f"{reason} The longest text stays."))
    plan.append(plan_fields(primary, merged_fields(primary, others) | dict(extra or {}), reason))
    for other in others:
        plan += plan_archiving(other, archive(other), f"Merged into {primary.id}.", primary.id)
    return tuple(change.joined(together) for change in plan if change)


def merged_fields(primary: Memory, others: Sequence[Memory]) -> dict[str, Value]:
    """Return the values that the primary of a merge gets.

    They are the most reinforcements, the sums of usage, successes and failures, all tags, sources and links, the
    latest `last_*` and the earliest `created_at`.
    """
    everything = (primary, *others)
    values: dict[str, Value] = {"status": "compacted"}
    count = max(memory.reinforcement_count for memory in everything)
    if count > primary.reinforcement_count:
        values["reinforcement_count"] = count
    values |= {
        name: sum(memory.count(name) for memory in everything)
        for name in _SUMS
        if any(name in memory.metadata for memory in everything)
    }
    for name in _LAST:
        known = [text for memory in everything if memory.day(name) and (text := memory.word(name))]
        if known:
            values[name] = max(known, key=lambda text: (parse_date(text) or date.min, text))
    created = [memory.created_at for memory in everything if memory.created_at]
    if created:
        values["created_at"] = min(created, key=lambda text: (parse_date(text) or date.max, text))
    sources = [
        *(word for memory in others for word in memory.words("sources")),
        *(word for memory in others if (word := memory.word("session_id"))),
    ]
    for name, words in (("tags", [tag for memory in others for tag in memory.tags]), ("sources", sources)):
        union: list[str] = with_words(primary, name, *words)
        if len(union) > len(primary.words(name)):
            values[name] = union
    own = {memory.id for memory in everything}
    links = [link for memory in others for link in memory.links if link.to not in own]
    values["links"] = with_links(primary, *links, *(Link(memory.id, "supersedes") for memory in others))
    return values


def find_copies(memories: Iterable[Memory]) -> list[Memory]:
    """Return the entries whose file is the same, byte for byte, as that of another of their id and scope.

    `memories` are alone in their files; the first by path is not among the copies. Entries that share an id
    and differ all stay, and `doctor` reports them.
    """
    first: dict[object, Memory] = {}
    ordered = sorted(memories, key=lambda memory: memory.path)
    return [one for one in ordered if first.setdefault((one.id, one.place, one.hash), one) is not one]
