"""Join entries into one: those that say the same are merged, of versions with one id one stays."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta

from memory_kb.markdown.document import parse_document
from memory_kb.markdown.fields import parse_date
from memory_kb.markdown.splice import Value, newline_of, set_values, yaml_span
from memory_kb.model import Entry, Link
from memory_kb.similarity import CONTRADICTION_FROM, word_set
from memory_kb.store.files import NoteText
from memory_kb.store.plan import (
    Change,
    Memory,
    create_file,
    move,
    plan_fields,
    remove,
    set_body,
    with_links,
    with_words,
    write_file,
)
from memory_kb.text import jaccard

#: The text of an entry as it is in its file, below the frontmatter.
BodyOf = Callable[[Memory], str]
_SUMS = ("usage_count", "success_count", "failure_count")
_LAST = ("last_reinforced", "last_applied")


def choose_primary(memories: Sequence[Memory]) -> Memory:
    """Return the entry that the others merge into: of highest importance, then confidence, then the oldest.

    Example:
        >>> from memory_kb.model import Location
        >>> light, heavy = (Memory(name, "a.md", "", Location(), "T", "", importance=weight) for name, weight in (("a", 0.4), ("b", 0.9)))
        >>> choose_primary([light, heavy]).id
        'b'
    """

    def rank(memory: Memory) -> tuple[float, float, date, str, int]:
        return (
            -memory.importance,
            -memory.share("confidence", 0.5),
            parse_date(memory.created_at) or date.max,
            memory.path,
            memory.line,
        )

    return min(memories, key=rank)


def longest(memories: Sequence[Memory]) -> Memory:
    """Return the entry with the longest text, the first of those."""
    return max(memories, key=lambda memory: len(memory.text.strip()))


def by_rank(memories: Sequence[Memory]) -> tuple[Memory, ...]:
    """Return entries that are to be merged, the primary first."""
    primary = choose_primary(memories)
    return (primary, *(memory for memory in memories if memory is not primary))


def merge(
    primary: Memory,
    others: Sequence[Memory],
    archive: Callable[[Memory], str],
    body_of: BodyOf,
    reason: str,
    extra: Mapping[str, Value] | None = None,
) -> tuple[Change, ...]:
    """Plan to merge entries into one of them; all of it happens, or nothing.

    The primary keeps its id and its fields, and gets the longest body, the most reinforcements,
    the sum of usage, successes and failures, all tags, sources and links, the latest `last_*`
    and the earliest `created_at`. The others go to the archive with a link to it.

    `archive` names the file that an entry moves to; the values in `extra` win over the merged ones.
    """
    everything = (primary, *others)
    together = f"merge {primary.path} {primary.id}"
    said = longest(everything)
    plan: list[Change | None] = []
    if said is not primary:
        plan.append(set_body(primary, primary.id, body_of(said).strip("\r\n"), f"{reason} The longest text stays."))
    plan.append(plan_fields(primary, merged_fields(primary, others) | dict(extra or {}), reason))
    for other in others:
        plan += _plan_leaving(other, archive(other), f"Merged into {primary.id}.", primary.id)
    return tuple(change.joined(together) for change in plan if change)


def _plan_leaving(memory: Memory, to: str, reason: str, successor: str) -> tuple[Change, ...]:
    fields = plan_fields(
        memory, {"status": "archived", "links": with_links(memory, Link(successor, "superseded_by"))}, reason
    )
    moved = move(memory, to, reason, memory.id)
    return (fields, moved) if fields else (moved,)


def merged_fields(primary: Memory, others: Sequence[Memory]) -> dict[str, Value]:
    """Return the values that the primary of a merge gets; a field that nobody has is not among them.

    Example:
        >>> from memory_kb.model import Location
        >>> def make(name: str, uses: int) -> Memory:
        ...     return Memory(name, "a.md", "", Location(), "T", "", reinforcement_count=uses, metadata={"id": name, "usage_count": uses})
        >>> merged = merged_fields(make("a", 2), [make("b", 3)])
        >>> merged["reinforcement_count"], merged["usage_count"], merged["status"]
        (3, 5, 'compacted')
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


_NAMESPACE = uuid.UUID("0c7d7a5e-7a86-5f0e-8f0c-3f1f7f0b6b1d")


def find_repeats(memories: Iterable[Memory]) -> list[tuple[Memory, ...]]:
    """Return the entries that are versions of one: same id, scope, learning type and kind, and text in common.

    The one that stays is first: of highest importance, then the newest, then the first. Entries
    that share an id by mistake alone, as a file does that was copied to begin another, share few
    words; they all stay, and `lint` reports them. So do pinned ones.
    """
    groups: dict[object, list[Memory]] = {}
    for memory in memories:
        if memory.metadata.get("id") is not None:
            groups.setdefault((memory.id, memory.place, memory.kind), []).append(memory)
    found = []
    for group in groups.values():
        kept = min(group, key=_rank_of_version)
        words = word_set(kept.text)
        gone = [memory for memory in group if memory is not kept and not memory.is_pinned]
        alike = [memory for memory in gone if jaccard(words, word_set(memory.text)) >= CONTRADICTION_FROM]
        if alike:
            found.append((kept, *alike))
    return found


def _rank_of_version(memory: Memory) -> tuple[bool, float, timedelta, str, int]:
    age = date.max - max(filter(None, (memory.seen, parse_date(memory.created_at))), default=date.min)
    return not memory.is_pinned, -memory.importance, age, memory.path, memory.line


def new_id(memory: Memory) -> str:
    """Return the id that an entry gets in place of the one it shared, the same in every run."""
    return str(uuid.uuid5(_NAMESPACE, f"{memory.id}\n{memory.path}\n{memory.text}"))


def plan_repeats(
    repeats: Sequence[tuple[Memory, ...]], archive: Callable[[Memory, str], str], note_of: Callable[[str], NoteText]
) -> tuple[Change, ...]:
    """Plan to move all but the first of each group to the archive.

    Two entries may not share an id, not even with one of them archived: a link to it would lead
    to either. So whoever moves gets a new id there, and a link to the one that keeps the old.
    Its text, and every byte of the entries around it, stay as they are.

    `repeats` are the groups that `find_repeats` returns; `archive` names the file that an entry of an id moves to.
    """
    leaving: dict[str, list[Memory]] = {}
    plan: list[Change] = []
    for group in repeats:
        for memory in group[1:]:
            leaving.setdefault(memory.path, []).append(memory)
    for path, memories in leaving.items():
        note = note_of(path)
        if note.hash != memories[0].hash:
            continue
        text = note.text
        entries = parse_document(text, path).entries
        taken = [(memory, entry) for memory in memories if (entry := _entry_of(memory, entries, text))]
        together = f"repeated ids of {path}"
        for memory, entry in taken:
            piece = _under_new_id(text[entry.span.start : entry.span.end], memory)
            reason = f"The id {memory.id} occurs here more than once; this one becomes {new_id(memory)}."
            plan.append(
                create_file(
                    archive(memory, new_id(memory)), piece.rstrip("\r\n") + newline_of(text), reason, new_id(memory)
                ).joined(together)
            )
        if len(taken) == len(entries):
            plan.append(remove(note, "All of it went to the archive.").joined(together))
        elif taken:
            rest = _without(text, [entry for _, entry in taken])
            reason = f"{', '.join(dict.fromkeys(memory.id for memory, _ in taken))}: all but one of this id went to the archive."
            plan.append(write_file(note, rest, reason).joined(together))
    return tuple(plan)


def _entry_of(memory: Memory, entries: Sequence[Entry], text: str) -> Entry | None:
    """Return the entry that a memory was made from, among others of its id by its place."""
    ends = ((entry, entry.line + text.count("\n", entry.span.start, entry.span.end)) for entry in entries)
    at = [entry for entry, end in ends if entry.id == memory.id and entry.line <= memory.line <= end]
    return at[-1] if at else None


def _under_new_id(piece: str, memory: Memory) -> str:
    values: dict[str, Value] = {
        "status": "archived",
        "links": with_links(memory, Link(memory.id, "superseded_by")),
        "id": new_id(memory),
    }
    return set_values(piece, yaml_span(piece, parse_document(piece, memory.path).entries[0]), values)


def _without(text: str, entries: Sequence[Entry]) -> str:
    for entry in sorted(entries, key=lambda entry: -entry.span.start):
        text = text[: entry.span.start] + text[entry.span.end :]
    return text
