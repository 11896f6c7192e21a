"""The review queue: what waits for a person's judgment, and what a judgment does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from memory_kb.credentials import find_secret
from memory_kb.errors import CannotSplice, SecretRefused, UsageError
from memory_kb.learning.memories import Memory, plan_fields
from memory_kb.learning.rules.confidence import read_evidence
from memory_kb.learning.rules.inversion import is_in_review, original_of, plan_replacement
from memory_kb.learning.rules.playbook import RULE_KINDS, rule_text
from memory_kb.learning.tensions import plan_settlements, restore
from memory_kb.model import Location
from memory_kb.notes.entries import parse_document
from memory_kb.notes.fields import parse_date
from memory_kb.notes.plans import Change, NoteText, create_file, move, remove, replace_entry, write_file
from memory_kb.notes.sheets import change_fields, find_entry, newline_of, pin_id, refuse_broken
from memory_kb.notes.splice import Value
from memory_kb.reports import RunReport
from memory_kb.text import short_id, shorten, slugify
from memory_kb.words import KINDS, UNVERIFIED

FolderOf = Callable[[Location], str]
#: Given a path, the file as it is, or None where there is none.
ReadNote = Callable[[str], NoteText | None]
_DECIDABLE = ("proposed", "rejected")
#: The most days that a judgment is put off by.
_LONGEST = 3_650
#: The field with the day until which a person put the judgment off.
SNOOZED = "snoozed_until"


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """An entry that waits for a judgment.

    Attributes:
        proposes: `entry`, `institutional`, `inversion`, or `flag` for a live entry that has some.
        of: the rule that an inversion would replace.
        reason: why it is here, in one sentence.
        approving, rejecting: what each would do, in a few words.
        text: all that it says.
        session: where it comes from, or None.
        created: the day it was proposed, or None.
    """

    id: str
    kind: str
    status: str
    title: str
    scope: str
    path: str
    line: int
    flags: tuple[str, ...]
    proposes: str
    of: str | None
    reason: str
    approving: str
    rejecting: str
    text: str = ""
    session: str | None = None
    created: str | None = None


@dataclass(frozen=True, slots=True)
class ReviewView:
    """An entry of the queue with its source text and what approving it would write."""

    item: ReviewItem
    text: str
    approval: RunReport


def is_waiting(memory: Memory) -> bool:
    """Tell whether an entry is in the queue: proposed wherever it lies, or live with flags or an instruction from outside."""
    return memory.status == "proposed" or (
        memory.is_live and memory.is_ours and (memory.is_quarantined or bool(memory.words("flags")))
    )


def is_snoozed(memory: Memory, today: date) -> bool:
    """Return whether a person put the judgment off to a later day."""
    until = parse_date(memory.metadata.get(SNOOZED))
    return until is not None and until > today


def comes_from(memory: Memory, session: str) -> bool:
    """Return whether an entry comes from a session, named in full or by its beginning."""
    return any(one.startswith(session) for one in (memory.word("session_id") or "", *memory.words("sources")))


def find_waiting(memories: Iterable[Memory], today: date, session: str | None = None) -> tuple[ReviewItem, ...]:
    """Return the queue: proposals, the newest first, then what was flagged; without what was put off.

    Args:
        memories: all entries.
        today: the day that ages count to.
        session: only what comes from this one, or None.
    """
    waiting = [
        memory
        for memory in memories
        if is_waiting(memory) and not is_snoozed(memory, today) and (session is None or comes_from(memory, session))
    ]
    waiting.sort(key=lambda memory: (memory.path, memory.line))
    waiting.sort(key=lambda memory: memory.created_at or "", reverse=True)
    waiting.sort(key=lambda memory: memory.status != "proposed")
    return tuple(make_item(memory, today) for memory in waiting)


def make_item(memory: Memory, today: date) -> ReviewItem:
    """Return an entry as the queue shows it."""
    of, flags = original_of(memory), memory.words("flags")
    if memory.is_live:
        approving = "keeps it and takes the flag away" if flags else "puts it in use"
        proposes, rejecting = "flag", "takes it out of use"
    elif of:
        proposes, approving, rejecting = (
            "inversion",
            f"puts it in the place of {short_id(of)}, which is retired",
            f"leaves {short_id(of)} in use",
        )
    elif _is_institutional(memory):
        proposes, approving, rejecting = "institutional", "adds it to institutional.md", "keeps it from coming back"
    else:
        proposes, approving, rejecting = "entry", "puts it in use", "keeps it from coming back"
    return ReviewItem(
        id=memory.id,
        kind=memory.kind,
        status=memory.status,
        title=shorten(rule_text(memory) if memory.kind in RULE_KINDS else memory.title),
        scope=memory.place.scope,
        path=memory.path,
        line=memory.line,
        flags=flags,
        proposes=proposes,
        of=of,
        reason=_explain(memory, of, today),
        approving=approving,
        rejecting=rejecting,
        text=memory.text.strip(),
        session=memory.word("session_id") or None,
        created=memory.created_at[:10] if memory.created_at else None,
    )


def plan_snooze(wanted: Sequence[Memory], today: date, days: int) -> tuple[Change, ...]:
    """Plan to leave entries out of the queue for some days.

    Raises:
        UsageError: one of them does not wait for review, or the days are none.
    """
    if not 0 < days <= _LONGEST:
        raise UsageError(f"a judgment can be put off by 1 to {_LONGEST:,} days, not {days:,}")
    until = (today + timedelta(days=days)).isoformat()
    for memory in wanted:
        if not is_waiting(memory):
            raise UsageError(f"{memory.id} does not wait for review", f"it is {memory.status}")
    planned = (plan_fields(memory, {SNOOZED: until}, f"Review: put off until {until}.") for memory in wanted)
    return tuple(change for change in planned if change)


def plan_edit(memory: Memory, note: NoteText, text: str) -> Change | None:
    """Plan to put another text in the place of what a proposal says; its frontmatter stays.

    Raises:
        UsageError: it does not wait for review, or the text is empty.
        SecretRefused: the text holds what looks like a credential.
    """
    if not is_waiting(memory):
        raise UsageError(f"{memory.id} does not wait for review", f"it is {memory.status}")
    if not text.strip():
        raise UsageError("there is no text", f"`memory-kb review reject {memory.id}` turns it down")
    secret = find_secret(text)
    if secret:
        raise SecretRefused(secret)
    entry = find_entry(note.text, note.path, memory.id)
    refuse_broken(entry, note.path)
    old = note.text[entry.span.start : entry.span.end]
    newline = newline_of(note.text)
    tail = old[len(old.rstrip()) :] or newline
    new = f"{note.text[entry.span.start : entry.body.start]}{newline.join(text.strip().splitlines())}{tail}"
    return None if new == old else replace_entry(note, memory.id, new, "Review: edited.")


def _explain(memory: Memory, of: str | None, today: date) -> str:
    if of and not memory.is_live:
        return f"{short_id(of)} failed too often."
    if memory.is_unverified and not memory.words("flags"):
        return f"It comes from outside and nobody has verified it ({UNVERIFIED})."
    if memory.is_live:
        evidence = read_evidence(memory)
        numbers = f"; confidence {evidence.decayed(today):.2f}, {evidence.told}"
        return f"Flagged: {', '.join(memory.words('flags'))}{numbers if memory.kind in RULE_KINDS else ''}."
    session = memory.word("session_id")
    return f"Proposed{f' from session {session}' if session else ''}."


def _is_institutional(memory: Memory) -> bool:
    return memory.metadata.get("institutional") is True


@dataclass(frozen=True, slots=True)
class Ground:
    """What an approval is planned on: all entries, the scopes' folders, the files, and the day."""

    memories: Sequence[Memory]
    folder_of: FolderOf
    read: ReadNote
    today: date

    def is_alone(self, path: str) -> bool:
        """Tell whether a file holds no more than one entry."""
        return sum(memory.path == path for memory in self.memories) <= 1


def plan_approval(wanted: Sequence[Memory], ground: Ground) -> tuple[Change, ...]:
    """Plan to approve entries; those that are approved already change no more.

    A proposal becomes active and moves from `review/` to the folder of its kind, one for the
    institution to the `institutional.md` of its scope; a warning takes the place of the rule it
    was made from; a flag goes. One that a person has set to active by hand is only moved.

    Raises:
        UsageError: one of them is retired or archived.
        CannotSplice: it cannot be added to `institutional.md` without being lost in its text.
    """
    changes: list[Change] = []
    taken = {memory.path for memory in ground.memories}
    shared: dict[str, list[Memory]] = {}
    for memory in wanted:
        if not memory.is_live and memory.status not in _DECIDABLE:
            raise UsageError(
                f"{memory.id} is {memory.status} and waits for no review", f"edit its status in {memory.path}"
            )
        target = _find_institutional(memory, ground)
        if target:
            shared.setdefault(target, []).append(memory)
            continue
        values = _approved(memory, ground.today)
        change = plan_fields(memory, values, "Review: approved.") if values else None
        mine = [*([change] if change else []), *plan_replacement(memory, ground.memories)]
        to = _find_place(memory, ground, taken)
        if to:
            taken.add(to)
            mine.append(move(memory, to, "Review: approved.", memory.id))
        together = next((one.together for one in mine if one.together), None)
        changes += [one.joined(together) for one in mine] if together else mine
    for target, memories in shared.items():
        changes += _plan_institutional(target, memories, ground)
    return tuple(changes)


def _approved(memory: Memory, today: date) -> dict[str, Value]:
    """Return the fields that an approval sets: none where it was given already."""
    values: dict[str, Value] = {}
    if not memory.is_live:
        values["status"] = "active"
    if memory.words("flags"):
        values |= {**restore(memory), "flags": []}
    return values | {"reviewed": today.isoformat()} if values or memory.is_unverified else {}


def _find_place(memory: Memory, ground: Ground, taken: Collection[str]) -> str | None:
    """Return the file in the folder of its kind that an entry of `review/` goes to."""
    folder = ground.folder_of(memory.place)
    if not memory.path.startswith(f"{folder}review/"):
        return None
    name = memory.path.rpartition("/")[2]
    if not ground.is_alone(memory.path):
        name = f"{slugify(memory.title)}-{slugify(memory.id)[:8]}.md"
    day = f"{(parse_date(memory.created_at) or ground.today).isoformat()}/" if memory.kind == "episode" else ""
    return free_path(f"{folder}{KINDS[memory.kind].folder}/{day}{name}", taken)


def free_path(path: str, taken: Collection[str]) -> str:
    """Return a path, numbered where another file has it.

    Example:
        >>> free_path("rules/a.md", {"rules/a.md"})
        'rules/a-2.md'
    """
    stem, dot, ending = path.rpartition(".")
    number = 2
    while path in taken:
        path, number = f"{stem}-{number}{dot}{ending}", number + 1
    return path


def _find_institutional(memory: Memory, ground: Ground) -> str | None:
    """Return the `institutional.md` that an entry of `review/` is meant for."""
    folder = ground.folder_of(memory.place)
    is_meant = (
        _is_institutional(memory)
        and memory.place.learning_type != "institutional"
        and (is_in_review(memory) or not memory.is_live)
    )
    if not is_meant or not folder:
        return None
    own, beside = f"{folder}institutional.md", "institutional.md"
    return (
        beside
        if memory.place.scope == "project" and ground.read(own) is None and ground.read(beside) is not None
        else own
    )


def _plan_institutional(target: str, memories: Sequence[Memory], ground: Ground) -> list[Change]:
    """Plan to add entries to the end of an `institutional.md`, whose text stays as it is."""
    held = ground.read(target)
    text = held.text if held else ""
    newline = newline_of(text)
    changes = []
    for memory in memories:
        note = ground.read(memory.path)
        if note is None:
            raise CannotSplice(f"{memory.path} is gone")
        entry = find_entry(note.text, memory.path, memory.id)
        refuse_broken(entry, memory.path)
        own = pin_id(note.text[entry.span.start : entry.span.end].lstrip("\ufeff"), memory.path, memory.id)
        own = change_fields(own, memory.path, memory.id, _approved(memory, ground.today).items())
        before = [one.id for one in parse_document(text, target).entries]
        own = own.rstrip().replace("\r\n", "\n").replace("\n", newline)
        text = f"{_closed(text, newline)}{own}{newline}"
        if [one.id for one in parse_document(text, target).entries] != [*before, memory.id]:
            raise CannotSplice(
                f"{target} would not be read as one entry more (is a code fence left open, or the id there already?)"
            )
        changes.append(remove(memory, f"Review: approved, now in {target}.", memory.id))
    reason = f"Review: approved {', '.join(memory.id for memory in memories)}."
    change = (
        write_file(held, text, reason)
        if held
        else create_file(target, text, reason, memories[0].id if len(memories) == 1 else None)
    )
    return [one.joined(f"institutional {target}") for one in (change, *changes)]


def _closed(text: str, newline: str) -> str:
    """Return a text that ends in a blank line, so that an entry may follow."""
    return f"{text}{'' if text.endswith(chr(10)) else newline}{newline}" if text.strip("\ufeff \t\r\n") else text


def plan_rejection(wanted: Sequence[Memory], reason: str | None, ground: Ground) -> tuple[Change, ...]:
    """Plan to reject entries: they stay where they are and keep their text from coming back.

    What stood against one of them, and against nothing else, is settled with it.

    Raises:
        UsageError: one of them does not wait for review.
    """
    changes = []
    for memory in wanted:
        if memory.status != "rejected" and not is_waiting(memory):
            hint = f"`memory-kb forget {memory.id}` retires it" if memory.is_live else f"it is {memory.status}"
            raise UsageError(f"{memory.id} does not wait for review", hint)
        values: dict[str, Value] = (
            {} if memory.status == "rejected" else {"status": "rejected", "reviewed": ground.today.isoformat()}
        )
        if reason and reason.strip():
            values["review_reason"] = " ".join(reason.split())
        said = values.get("review_reason")
        change = plan_fields(memory, values, f"Review: rejected, {said}." if said else "Review: rejected.")
        changes += [change] if change else []
    return (*changes, *plan_settlements(wanted, ground.memories))
