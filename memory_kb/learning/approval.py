"""Plan what approving an entry writes: its status, its place, and what it takes the place of."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import date

from memory_kb.errors import CannotSplice, UsageError
from memory_kb.learning.inversion import is_in_review, plan_replacement
from memory_kb.markdown.document import parse_document
from memory_kb.markdown.splice import Value, change_fields, find_entry, newline_of, pin_id, refuse_broken, separated
from memory_kb.memory import Memory
from memory_kb.model import KINDS, Location
from memory_kb.store.changes import Change, create_file, move, plan_fields, remove, write_file
from memory_kb.store.file_edits import NoteText
from memory_kb.text import first_free, parse_date, slugify


@dataclass(frozen=True, slots=True)
class Approval:
    """Plans to approve entries.

    `memories` are all entries of the vault; `read` returns a file as it is now.
    """

    memories: Sequence[Memory]
    folder_of: Callable[[Location], str]
    read: Callable[[str], NoteText | None]
    today: date

    def plan(self, wanted: Sequence[Memory]) -> tuple[Change, ...]:
        """Plan to approve entries; those that are approved already change no more.

        A proposal becomes active and moves from `review/` to the folder of its kind, one for the
        institution to the `institutional.md` of its scope; a warning takes the place of the rule it
        was made from; a flag goes. One that a person has set to active by hand is only moved.
        """
        changes: list[Change] = []
        taken = {memory.path for memory in self.memories}
        shared: dict[str, list[Memory]] = {}
        for memory in wanted:
            if not memory.is_live and memory.status not in ("proposed", "rejected"):
                hint = f"edit its status in {memory.path}"
                raise UsageError(f"{memory.id} is {memory.status} and waits for no review", hint)
            target = self._find_institutional(memory)
            if target:
                shared.setdefault(target, []).append(memory)
            else:
                changes += self._plan_one(memory, taken)
        for target, memories in shared.items():
            changes += self._plan_institutional(target, memories)
        return tuple(changes)

    def _plan_one(self, memory: Memory, taken: set[str]) -> list[Change]:
        change = plan_fields(memory, self._approved(memory), "Review: approved.")
        mine = [*([change] if change else []), *plan_replacement(memory, self.memories)]
        to = self._find_place(memory, taken)
        if to:
            taken.add(to)
            mine.append(move(memory, to, "Review: approved.", memory.id))
        together = next((one.together for one in mine if one.together), None)
        return [one.joined(together) for one in mine] if together else mine

    def _approved(self, memory: Memory) -> dict[str, Value]:
        """Return the fields that an approval sets: none where it was given already."""
        values: dict[str, Value] = {} if memory.is_live else {"status": "active"}
        values |= {"flags": []} if memory.words("flags") else {}
        return values | {"reviewed": self.today.isoformat()} if values or memory.is_unverified else {}

    def _find_place(self, memory: Memory, taken: Collection[str]) -> str | None:
        """Return the file in the folder of its kind that an entry of `review/` goes to."""
        folder = self.folder_of(memory.place)
        if not memory.path.startswith(f"{folder}review/"):
            return None
        name, ending = os.path.splitext(memory.path.rpartition("/")[2])
        if sum(one.path == memory.path for one in self.memories) > 1:
            name = f"{slugify(memory.title)}-{slugify(memory.id)[:8]}"
        day = f"{parse_date(memory.created_at) or self.today}/" if memory.kind == "episode" else ""
        stem = f"{folder}{KINDS[memory.kind].folder}/{day}{name}"
        return first_free(stem, lambda one: one + ending in taken) + ending

    def _find_institutional(self, memory: Memory) -> str | None:
        """Return the `institutional.md` that an entry of `review/` is meant for."""
        folder = self.folder_of(memory.place)
        is_meant = memory.metadata.get("institutional") is True and memory.place.learning_type != "institutional"
        if not (is_meant and folder and (is_in_review(memory) or not memory.is_live)):
            return None
        own, beside = f"{folder}institutional.md", "institutional.md"
        is_beside = memory.place.scope == "project" and self.read(own) is None and self.read(beside) is not None
        return beside if is_beside else own

    def _plan_institutional(self, target: str, memories: Sequence[Memory]) -> list[Change]:
        """Plan to add entries to the end of an `institutional.md`, whose text stays as it is."""
        held = self.read(target)
        text = held.text if held else ""
        newline = newline_of(text)
        changes = []
        for memory in memories:
            before = [one.id for one in parse_document(text, target).entries]
            lead = separated(text, newline) if text.strip("\ufeff \t\r\n") else text
            own = self._approved_text(memory).rstrip().replace("\r\n", "\n").replace("\n", newline)
            text = f"{lead}{own}{newline}"
            if [one.id for one in parse_document(text, target).entries] != [*before, memory.id]:
                raise CannotSplice(
                    f"{target} would not be read as one entry more (is a code fence left open, or the id there already?)"
                )
            changes.append(remove(memory, f"Review: approved, now in {target}.", memory.id, target))
        reason = f"Review: approved {', '.join(memory.id for memory in memories)}."
        change = write_file(held, text, reason) if held else create_file(target, text, reason)
        return [one.joined(f"institutional {target}") for one in (change, *changes)]

    def _approved_text(self, memory: Memory) -> str:
        """Return an entry with its frontmatter as an approval leaves it."""
        note = self.read(memory.path)
        if note is None:
            raise CannotSplice(f"{memory.path} is gone")
        entry = find_entry(note.text, memory.path, memory.id)
        refuse_broken(entry, memory.path)
        own = pin_id(note.text[entry.span.start : entry.span.end].lstrip("\ufeff"), memory.path, memory.id)
        return change_fields(own, memory.path, memory.id, self._approved(memory).items())
