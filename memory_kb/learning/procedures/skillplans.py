"""Plans to keep a skill: a new file, or an entry changed part by part (S1-24, S2-26)."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from memory_kb.credentials import locate_in
from memory_kb.errors import Forgotten, SecretRefused, UsageError
from memory_kb.learning.memories import Memory
from memory_kb.learning.procedures.skills import is_usable, key_of, name_of
from memory_kb.learning.procedures.skilltexts import SkillText, render_skill, update_body
from memory_kb.learning.remember import Draft, check_draft, render
from memory_kb.model import Location, Problem
from memory_kb.notes.fields import read_text
from memory_kb.notes.plans import Change, NoteText, create_file, replace_entry
from memory_kb.notes.sheets import change_fields, find_entry, newline_of, pin_id, refuse_broken
from memory_kb.notes.splice import Value
from memory_kb.reports import RunReport
from memory_kb.text import slugify

#: Names that no file can have on some systems.
_RESERVED = frozenset(
    {"con", "prn", "aux", "nul", "note", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10))}
)
_MAX_NAME = 200


@dataclass(frozen=True, slots=True)
class SkillDraft:
    """A skill to keep.

    Attributes:
        text: what it says; the parts that are None stay as they are in a skill that is there.
        tags: None leaves them as they are.
        body: the whole body where it is known already, as it is written for a new skill.
        fields: further values of a new skill's frontmatter.
        id: the id that a new skill should have.
    """

    text: SkillText
    tags: tuple[str, ...] | None = None
    source: str | None = None
    created_by: str | None = None
    body: str | None = None
    fields: tuple[tuple[str, Value], ...] = ()
    id: str | None = None


class Named(NamedTuple):
    """The id of a new skill and the file it goes to, below the scope's folder."""

    id: str
    file: str


@dataclass(frozen=True, slots=True)
class SkillWritten:
    """A skill that was told, and what was written for it.

    Attributes:
        action: `created`, `updated`, `unchanged`, or `counted` for feedback.
    """

    id: str
    name: str
    path: str
    action: str
    run: RunReport


class SkillMoved(NamedTuple):
    """What became of one skill of an import, or of one file of an export.

    `action` is `created`, `updated`, `known`, `forgotten` or `refused` for what came in, and
    `written`, `unchanged` or `left` for what went out.
    """

    name: str
    id: str
    path: str
    action: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class SkillsImported:
    """What an import of skills came to."""

    skills: tuple[SkillMoved, ...]
    run: RunReport
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class SkillsExported:
    """What an export of skills came to, file by file."""

    files: tuple[SkillMoved, ...]
    problems: tuple[Problem, ...] = ()


def check_skill(draft: SkillDraft) -> SkillDraft:
    """Return a draft with its name on one line, and its words checked.

    Raises:
        UsageError: it has no name, or a word the format does not have.
        SecretRefused: it holds what looks like a credential.

    Example:
        >>> check_skill(SkillDraft(SkillText(" Ship  it "))).text.name
        'Ship it'
    """
    name = read_text(draft.text.name)
    if name is None or not name.strip("#"):
        raise UsageError("a skill has no name", 'try: memory-kb skills create "Release train" --step "Tag the build."')
    if len(name) > _MAX_NAME:
        raise UsageError(
            f"the name of a skill is longer than {_MAX_NAME} characters", "put what it does into the description"
        )
    text = SkillText(
        name,
        read_text(draft.text.description),
        *(getattr(draft.text, part) for part in ("prerequisites", "steps", "errors", "exit_criteria", "template")),
    )
    check_draft(Draft(render_skill(text), "skill", name, draft.tags or (), source=draft.source))
    secret = locate_in((draft.body or "", draft.created_by or "", *_texts(draft.fields)))
    if secret:
        raise SecretRefused(secret.described)
    return SkillDraft(text, draft.tags, draft.source, draft.created_by, draft.body, draft.fields, draft.id)


def _texts(value: object) -> Iterable[str]:
    """Yield every text in a value of frontmatter."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, held in value.items():
            yield f"{key}: {held}" if isinstance(held, str) else str(key)
            yield from _texts(held)
    elif isinstance(value, Sequence):
        for item in value:
            yield from _texts(item)


def find_same(memories: Iterable[Memory], draft: SkillDraft, place: Location) -> Memory | None:
    """Return the live skill of a scope that has the draft's name, in any case of letters.

    One that was renamed is known by its id, if it is for the same; an id alone says little, since
    catalogues number their skills alike.

    Raises:
        Forgotten: there is none, but one that was retired or rejected.
    """
    here = [memory for memory in memories if memory.kind == "skill" and memory.place[:3] == place[:3]]
    key = key_of(draft.text.name)
    about = draft.text.description
    renamed = [
        memory
        for memory in here
        if draft.id and memory.id == draft.id and about and memory.word("description") == about
    ]
    same = [memory for memory in here if key_of(name_of(memory)) == key] + renamed
    live = next((memory for memory in same if is_usable(memory)), None)
    if live:
        return live
    erased = (
        memory
        for memory in here
        if memory.metadata.get("tombstone") and memory.id in (draft.id, make_slug(draft.text.name))
    )
    gone = next((memory for memory in (*same, *erased) if memory.status in ("retired", "rejected")), None)
    if gone:
        raise Forgotten(gone.id, gone.path)
    return None


def make_slug(name: str) -> str:
    """Return a name as a file name of safe characters, on any system.

    Example:
        >>> make_slug("../../Release: Train!"), make_slug("NUL"), make_slug("¡!")
        ('release-train', 'nul-skill', 'note-skill')
    """
    slug = slugify(unicodedata.normalize("NFC", name))
    return f"{slug}-skill" if slug in _RESERVED else slug


def name_skill(draft: SkillDraft, taken: Collection[str], is_free: Callable[[str], bool]) -> Named:
    """Return the id and the file of a new skill: its slug, with a number where that is taken.

    Example:
        >>> name_skill(SkillDraft(SkillText("Release Train")), {"release-train"}, lambda file: True)
        Named(id='release-train-2', file='skills/release-train-2.md')
    """
    slug = make_slug(draft.text.name)
    names = (f"{slug}-{number}" if number > 1 else slug for number in range(1, 1_000_000))
    wanted = draft.id if draft.id and draft.id not in taken else None
    found = next(name for name in names if is_free(f"skills/{name}.md") and (wanted or name not in taken))
    return Named(wanted or found, f"skills/{found}.md")


def plan_new_skill(draft: SkillDraft, entry_id: str, path: str, now: datetime, reason: str) -> Change:
    """Plan the file of a new skill, with the counters of one that was never tried unless it brings its own."""
    own: dict[str, Value] = {"name": draft.text.name}
    own |= {
        name: value
        for name in ("description", "created_by")
        if (value := getattr(draft.text if name == "description" else draft, name))
    }
    body = draft.body if draft.body is not None else render_skill(draft.text)
    fields = tuple((own | dict(draft.fields)).items())
    kept = Draft(body, "skill", tags=draft.tags or (), source=draft.source, fields=fields)
    return create_file(path, render(kept, entry_id, now), reason, entry_id)


def plan_skill_update(
    note: NoteText, entry_id: str, draft: SkillDraft, reason: str, fields: Mapping[str, Value] | None = None
) -> Change | None:
    """Plan to change those parts of a skill that a draft speaks of; None where all of them stand so already.

    Its counters stay, as does every other byte of the entry.

    Example:
        >>> note = NoteText("a.md", b"---\\nid: x\\nname: Ship\\nsuccess_count: 7 # in May\\n---\\n# Skill: Ship\\n\\n## Steps\\n\\n1. Tag.\\n")
        >>> print(plan_skill_update(note, "x", SkillDraft(SkillText("ship", steps=("Push.",))), "Told so.").action.text)
        ---
        id: x
        name: Ship
        success_count: 7 # in May
        ---
        # Skill: Ship
        <BLANKLINE>
        ## Steps
        <BLANKLINE>
        1. Push.
        <BLANKLINE>
    """
    newline = newline_of(note.text)
    found = find_entry(note.text, note.path, entry_id)
    refuse_broken(found, note.path)
    before = note.text[found.span.start : found.span.end]
    text = pin_id(before, note.path, entry_id, newline)
    entry = find_entry(text, note.path, entry_id)
    body = text[entry.body.start : entry.body.end]
    if draft.body is None:
        new = update_body(body, draft.text, read_text(entry.metadata.get("description")), newline)
    else:
        tail = body[len(body.rstrip()) :] or newline
        lead = body[: len(body) - len(body.lstrip("\r\n"))]
        new = (
            body
            if _said(body) == _said(draft.body)
            else lead + draft.body.strip("\r\n").replace("\r\n", "\n").replace("\n", newline) + tail
        )
    values: dict[str, Value] = dict(fields or {})
    if draft.text.description is not None and draft.text.description != read_text(entry.metadata.get("description")):
        values["description"] = draft.text.description
    if draft.tags is not None and draft.tags != entry.tags:
        values["tags"] = list(draft.tags)
    head = (
        text[: entry.body.start]
        if text[: entry.body.start].endswith("\n") or not new
        else text[: entry.body.start] + newline
    )
    changed = change_fields(head + new, note.path, entry_id, values.items(), newline)
    return replace_entry(note, entry_id, changed, reason) if changed != text else None


def _said(body: str) -> list[str]:
    return [line.rstrip() for line in body.strip().splitlines()]
