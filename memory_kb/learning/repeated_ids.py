"""Resolve repeated ids: of the versions of an entry one stays, the others are archived under a new id."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from datetime import date

from memory_kb.markdown.document import parse_document
from memory_kb.markdown.fields import parse_date
from memory_kb.markdown.splice import Value, newline_of, set_values, yaml_span
from memory_kb.model import Entry, Link
from memory_kb.similarity import CONTRADICTION_FROM, word_set
from memory_kb.store.files import NoteText
from memory_kb.store.plan import Change, Memory, create_file, remove, with_links, write_file
from memory_kb.text import jaccard

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
        if len(group) > 1:
            kept = min(
                group,
                key=lambda memory: (
                    not memory.is_pinned,
                    -memory.importance,
                    date.max - _newest(memory),
                    memory.path,
                    memory.line,
                ),
            )
            words = word_set(kept.text)
            gone = [memory for memory in group if memory is not kept and not memory.is_pinned]
            alike = [memory for memory in gone if jaccard(words, word_set(memory.text)) >= CONTRADICTION_FROM]
            if alike:
                found.append((kept, *alike))
    return found


def _newest(memory: Memory) -> date:
    return max(filter(None, (memory.seen, parse_date(memory.created_at))), default=date.min)


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

    Args:
        repeats: the groups that `find_repeats` gives.
        archive: names the file that an entry of an id moves to.
        note_of: reads a file.
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
    """Return the entry that a memory was made from, told from others of its id by its place."""
    same = [entry for entry in entries if entry.id == memory.id]
    at = [
        entry
        for entry in same
        if entry.line <= memory.line <= entry.line + text.count("\n", entry.span.start, entry.span.end)
    ]
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
