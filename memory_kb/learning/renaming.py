"""Plans to call an entry otherwise, with every link that leads to it (complaint 20 of rivals' users)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from memory_kb.entry import Entry, Span
from memory_kb.errors import CannotSplice, UsageError
from memory_kb.notes.entries import first_heading, parse_document
from memory_kb.notes.fields import read_words
from memory_kb.notes.frontmatter import InvalidBlock, load_mapping
from memory_kb.notes.plans import Change, NoteText, move, write_file
from memory_kb.notes.sheets import refuse_broken, yaml_span
from memory_kb.notes.splice import Value, emit, set_value
from memory_kb.notes.wikilinks import rewrite_targets

_LONGEST = 200
_DATED = re.compile(r"\[\d{4}-\d{2}-\d{2}\]\s*")
#: Fields that name other entries by their ids.
_ID_LISTS = ("sources", "relevant_patterns")
_ALIASES = ("aliases", "alias")


class Renaming(NamedTuple):
    """What is renamed: the entry, where it stands, and its old and new name.

    `way` says what the name is: `id`, `title`, `heading` for the title that its first heading
    gives, `file` for that of its file, or `alias` for a further name.
    """

    path: str
    entry_id: str
    way: str
    old: str
    new: str


def check_name(name: str, way: str) -> str:
    """Return a new name as it is to be written.

    Raises:
        UsageError: links could not hold it, or it is empty.

    Example:
        >>> check_name("  Wait  for the event ", "title")
        'Wait for the event'
    """
    name = " ".join(name.split())
    if not name or len(name) > _LONGEST:
        raise UsageError("the new name is empty" if not name else f"the new name is longer than {_LONGEST} characters")
    if set(name) & set("[]|#\\^"):
        raise UsageError(f"{name!r} cannot stand in a [[link]]", "leave out the characters [ ] | # ^ and backslashes")
    if way == "file" and (set(name) & set('/:*?"<>') or name.startswith(".")):
        raise UsageError(f"{name!r} cannot be the name of a file")
    return name


def way_of(entry: Entry, body: str, name: str) -> str:
    """Return what is to be renamed of an entry: for its `title`, that which gives it one."""
    if name != "title":
        return name
    return "title" if entry.title else "heading" if first_heading(body) else "file"


def _never(_target: str) -> bool:
    return False


def plan_renaming(
    renaming: Renaming,
    notes: Iterable[NoteText],
    leads_to: Callable[[str], bool],
    stays: Callable[[str], bool] = _never,
) -> tuple[Change, ...]:
    """Plan to rename an entry and to rewrite the links to it; all of it happens, or nothing.

    Only links that use the old name are rewritten: those by another of its names lead to it still. So
    do those that name its file, which may be called like its title: for other readers of notes a file
    has no other name.

    Args:
        renaming: what is renamed.
        notes: its file, and all files with links to it.
        leads_to: tells whether a target that is called like the old name leads to this entry.
        stays: tells whether a target leads to it by another name too when it is renamed.

    Raises:
        CannotSplice: a file cannot be changed without changing more than that.

    Example:
        >>> old = NoteText("a.md", b"---\\nid: a\\n---\\nOne.\\n")
        >>> other = NoteText("b.md", b"See [[a|this]].\\n")
        >>> plan = plan_renaming(Renaming("a.md", "a", "id", "a", "tea"), [old, other], lambda name: name == "a")
        >>> [change.action.data for change in plan]
        [b'---\\nid: tea\\n---\\nOne.\\n', b'See [[tea|this]].\\n']
    """
    reason = f"Renamed from {renaming.old} to {renaming.new}."
    changes: list[Change] = []

    def new_id(target: str) -> str | None:
        suffix = ".md" if renaming.way == "file" and target.lower().endswith(".md") else ""
        bare = target[: len(target) - len(suffix)] if suffix else target
        folder, slash, last = bare.rpartition("/") if renaming.way == "file" else ("", "", bare)
        if last.casefold() != renaming.old.casefold() or not leads_to(target):
            return None
        return f"{folder}{slash}{renaming.new}{suffix}"

    def new_name(target: str) -> str | None:
        return None if stays(target) else new_id(target)

    names = _NewNames(new_name, new_id if renaming.way == "id" else new_name)
    moved: NoteText | None = None
    for note in notes:
        text = _rename_in_text(note.text, note.path, renaming, names)
        if text != note.text:
            changes.append(write_file(note, text, reason))
        if note.path == renaming.path and renaming.way == "file":
            moved = note
    if moved:
        folder = moved.path.rpartition("/")[0]
        changes.append(move(moved, f"{folder}{'/' if folder else ''}{renaming.new}.md", reason))
    return tuple(change.joined(f"rename {renaming.entry_id}") for change in changes)


class _NewNames(NamedTuple):
    """What links in texts and in fields are to say instead; None where they stay. Fields go by ids."""

    in_text: Callable[[str], str | None]
    in_fields: Callable[[str], str | None]


def _rename_in_text(text: str, path: str, renaming: Renaming, names: _NewNames) -> str:
    """Return a file's text with the name exchanged, in the entry itself and in links to it."""
    for number in range(len(parse_document(text, path).entries)):
        # Spans shift with every change, the order of the entries does not.
        entry = parse_document(text, path).entries[number]
        is_own = path == renaming.path and entry.id == renaming.entry_id
        if entry.fault is not None:
            is_named = is_own and renaming.way != "file"
            if (
                is_named
                or _in_body(text, entry, renaming, names.in_text, is_own=False)
                != text[entry.body.start : entry.body.end]
            ):
                refuse_broken(entry, path)
            continue
        text = (
            text[: entry.body.start]
            + _in_body(text, entry, renaming, names.in_text, is_own=is_own)
            + text[entry.body.end :]
        )
        if entry.has_frontmatter:
            text = _in_fields(text, entry, renaming, names.in_fields, is_own=is_own)
    return text


def _in_body(
    text: str, entry: Entry, renaming: Renaming, new_name: Callable[[str], str | None], *, is_own: bool
) -> str:
    body = text[entry.body.start : entry.body.end]
    if is_own and renaming.way == "heading":
        start = len(body) - len(body.lstrip())
        end = body.find("\n", start)
        line = body[start : len(body) if end < 0 else end]
        at = line.find(renaming.old)
        if at < 0:
            raise CannotSplice(f"the heading of {renaming.entry_id} in {renaming.path} cannot be found")
        body = body[: start + at] + renaming.new + body[start + at + len(renaming.old) :]
    return rewrite_targets(body, new_name)


def _in_fields(
    text: str, entry: Entry, renaming: Renaming, new_name: Callable[[str], str | None], *, is_own: bool
) -> str:
    for key, value in _new_values(entry, renaming, new_name, is_own=is_own).items():
        # The block ends where its body began, and setting a value moves that.
        block = yaml_span(text, entry)
        longer = len(text)
        text = _with_target(text, block, key, value, renaming) or set_value(text, block, key, value)
        entry = _shifted(entry, len(text) - longer)
    return text


def _with_target(text: str, block: Span, key: str, value: Value, renaming: Renaming) -> str | None:
    """Return a text in which only the names change that stand in a list; None where that is not told so simply."""
    if key not in ("links", *_ALIASES, *_ID_LISTS):
        return None
    held = re.compile(rf"^{key}[ \t]*:.*?(?=^[^\s#-]|\Z)", re.DOTALL | re.MULTILINE).search(
        text[block.start : block.end]
    )
    if held is None:
        return None
    lead, end = r"(?P<lead>(?:\bto[ \t]*:|-|\[|,)[ \t]*)", r"(?=[ \t]*(?:[,\]}\r\n]|$|[ \t]#))"
    name = re.compile(rf"{lead}(?P<quote>[\"']?){re.escape(renaming.old)}(?P=quote){end}", re.IGNORECASE)
    piece = name.sub(
        lambda found: f"{found['lead']}{emit(renaming.new, found['quote'] or None, is_flow=True)}", held[0]
    )
    old = text[block.start : block.end]
    new = f"{old[: held.start()]}{piece}{old[held.end() :]}"
    try:
        before, after = load_mapping(old), load_mapping(new)
    except InvalidBlock:
        return None
    return text[: block.start] + new + text[block.end :] if after == {**before, key: value} else None


def _shifted(entry: Entry, shift: int) -> Entry:
    return replace(entry, body=Span(entry.body.start + shift, entry.body.end + shift))


def _new_values(
    entry: Entry, renaming: Renaming, new_name: Callable[[str], str | None], *, is_own: bool
) -> Mapping[str, Value]:
    values: dict[str, Value] = {}
    if is_own and renaming.way in ("id", "title"):
        key = (
            "title"
            if renaming.way == "title" and entry.metadata.get("title") is not None
            else "name"
            if renaming.way == "title"
            else "id"
        )
        values[key] = renaming.new
    if is_own and renaming.way == "alias":
        key = next((key for key in _ALIASES if key in entry.metadata), "")
        held = entry.metadata.get(key)
        called = [renaming.new if word.casefold() == renaming.old.casefold() else word for word in read_words(held)]
        values[key] = called if isinstance(held, list) else ", ".join(called)
    listed = entry.metadata.get("links")
    links = listed if isinstance(listed, list) else []
    renamed = [_new_link(link, new_name) for link in links]
    if renamed != links:
        values["links"] = renamed
    if renaming.way == "id":
        for key in _ID_LISTS:
            words = read_words(entry.metadata.get(key))
            if renaming.old in words:
                values[key] = [renaming.new if word == renaming.old else word for word in words]
    return values


def _new_link(link: object, new_name: Callable[[str], str | None]) -> dict[str, str]:
    if isinstance(link, dict):
        name = new_name(str(link.get("to")))
        return {**link, "to": name} if name is not None else link
    return new_name(str(link)) or link  # type: ignore[return-value]


def shown_title(title: str) -> str:
    """Return a title without the day in front of it.

    Example:
        >>> shown_title("[2026-01-02] Retry")
        'Retry'
    """
    return _DATED.sub("", title, count=1)
