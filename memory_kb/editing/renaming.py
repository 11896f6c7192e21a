"""Rename an entry or a heading, or move files, with the links to them and in them."""

from __future__ import annotations

import contextlib
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from memory_kb.errors import CannotSplice, UsageError
from memory_kb.markdown.document import find_opening, first_heading, opens_with_section, toml_title
from memory_kb.markdown.headings import (
    Heading,
    find_anchor,
    find_headings,
    heading_address,
    heading_words_span,
    normal_heading,
)
from memory_kb.markdown.links import (
    TextLink,
    escape_address,
    find_links,
    rewrite_anchors,
    rewrite_targets,
    without_code,
)
from memory_kb.markdown.splice import Value, emit, read_entries, set_values, yaml_span
from memory_kb.model import Entry, Span
from memory_kb.store.changes import Change, move, write_file
from memory_kb.store.file_edits import NoteText
from memory_kb.store.walk import is_note_path
from memory_kb.terms import name_key
from memory_kb.text import note_name, read_words
from memory_kb.vault import Vault
from memory_kb.yaml_loader import InvalidBlock, load_mapping

_LONGEST = 200
_DATED = re.compile(r"\[\d{4}-\d{2}-\d{2}\]\s*")
#: Fields that name other entries by their ids.
_ID_LISTS = ("sources", "relevant_patterns")


class Renaming(NamedTuple):
    """What is renamed: the entry, where it is, and its old and new name.

    Attributes:
        way: what the name is: `id`, `title`, or `heading` for the title that its first heading gives.
        leads_to: returns whether a target that is called like the old name leads to this entry from a file.
        stays: returns whether a target leads to it by another name too when it is renamed.
        change_heading: returns the text of a file with the heading exchanged that is the title, and in links to it.
    """

    path: str
    entry_id: str
    way: str
    old: str
    new: str
    leads_to: Callable[[str, str], bool]
    stays: Callable[[str], bool] = lambda _: False
    change_heading: Callable[[str, str], str] = lambda text, _: text


def check_name(name: str, way: str) -> str:
    """Return a new name as it is to be written; UsageError where links could not hold it.

    Example:
        >>> check_name("  Wait  for the event ", "title")
        'Wait for the event'
    """
    name = " ".join(name.split())
    if not name or len(name) > _LONGEST:
        raise UsageError("the new name is empty" if not name else f"the new name is longer than {_LONGEST} characters")
    if way == "id" and " " in name:
        raise UsageError(
            f"{name!r} cannot be an id: it has spaces", f"write {name.replace(' ', '-')}, or rename the title: --title"
        )
    if set(name) & set("[]|#\\^"):
        raise UsageError(f"{name!r} cannot be used in a [[link]]", "leave out the characters [ ] | # ^ and backslashes")
    if way == "file" and (set(name) & set('/:*?"<>') or name.startswith(".")):
        raise UsageError(f"{name!r} cannot be the name of a file")
    return name


def path_in(folder: str, name: str, vault: Vault) -> str:
    """Return the path of a file in a folder, "" for the top; UsageError where it would be no note of the vault."""
    path = "/".join((*(part for part in folder.replace("\\", "/").split("/") if part.strip()), name))
    if not is_note_path(vault, path):
        raise UsageError(f"{path} would be no note of this vault", "choose another folder")
    return path


def way_of(entry: Entry, text: str, name: str) -> str:
    """Return which name of an entry in a note to change: for its `title`, the field or heading that it comes from."""
    if name != "title":
        return name
    if entry.title:
        return "title"
    body = text[entry.body.start : entry.body.end]
    if toml_title(body):
        raise CannotSplice("the title is in TOML, which no command changes")
    is_file_named = not entry.has_own_id and entry.span == Span(0, len(text)) and opens_with_section(body)
    return "heading" if first_heading(body) and not is_file_named else "file"


def plan_renaming(renaming: Renaming, notes: Iterable[NoteText]) -> tuple[Change, ...]:
    """Plan to rename an entry and to rewrite the links to it in its file and others; all of it happens, or nothing.

    Only links that use the old name are rewritten: those by another of its names lead to it still. So
    do those that name its file, which may be called like its title: for other readers of notes a file
    has no other name. A file is renamed by `plan_moving`.

    Example:
        >>> old = NoteText("a.md", b"---\\nid: a\\n---\\nOne.\\n")
        >>> other = NoteText("b.md", b"See [[a|this]].\\n")
        >>> plan = plan_renaming(Renaming("a.md", "a", "id", "a", "tea", lambda name, _: name == "a"), [old, other])
        >>> [change.data for change in plan]
        [b'---\\nid: tea\\n---\\nOne.\\n', b'See [[tea|this]].\\n']
    """
    reason = f"Renamed from {renaming.old} to {renaming.new}."
    return plan_rewrite(notes, lambda note: _rename_in(note, renaming), reason, f"rename {renaming.entry_id}")


def plan_rewrite(
    notes: Iterable[NoteText], rewrite: Callable[[NoteText], str], reason: str, name: str
) -> tuple[Change, ...]:
    """Plan to write notes whose texts are others by `rewrite`; all of it happens, or nothing."""
    texts = ((note, rewrite(note)) for note in notes)
    return tuple(write_file(note, text, reason)._replace(together=name) for note, text in texts if text != note.text)


def _rename_in(note: NoteText, renaming: Renaming) -> str:
    """Return a file's text with the name exchanged, in the entry itself and in links to it."""
    names = {renaming.old.casefold(): renaming.new}

    def new_target(target: str) -> str | None:
        is_meant = name_key(target) == name_key(renaming.old) and renaming.leads_to(target, note.path)
        return renaming.new if is_meant else None

    def new_link(target: str) -> str | None:
        return None if renaming.stays(target) else new_target(target)

    def change_fields(fields: str, entry: Entry) -> str:
        is_own = (note.path, entry.id) == (renaming.path, renaming.entry_id)
        for key, value in _new_values(entry, renaming, is_own=is_own).items():
            fields = _replace_names(fields, key, value, names)
        # Fields go by ids, so that a new id also replaces one by which another name leads to the entry.
        return rename_links(fields, entry, new_target if renaming.way == "id" else new_link)

    text = renaming.change_heading(note.text, note.path)
    return rewrite_note(text, note.path, lambda part: rewrite_targets(part, new_link), change_fields)


def _new_values(entry: Entry, renaming: Renaming, *, is_own: bool) -> Mapping[str, Value]:
    """Return the fields of an entry that have another value now, apart from its links."""
    way, old, new = renaming.way, renaming.old, renaming.new
    values: dict[str, Value] = {}
    if is_own and way == "id":
        values["id"] = new
    if is_own and way == "title":
        values["title" if entry.metadata.get("title") is not None else "name"] = new
    for key in _ID_LISTS if way == "id" else ():
        words = read_words(entry.metadata.get(key))
        if old in words:
            values[key] = [new if word == old else word for word in words]
    return values


def rename_links(block: str, entry: Entry, new_name: Callable[[str], str | None]) -> str:
    """Return the YAML of an entry in which its `links` have other targets; None leaves one as it is.

    Example:
        >>> block = "links:\\n  - {to: 'a/x.md', relation: mentions} # why\\n"
        >>> rename_links(block, read_entries(f"---\\n{block}---\\n", "b.md")[0], {"a/x.md": "c/x.md"}.get)
        "links:\\n  - {to: 'c/x.md', relation: mentions} # why\\n"
    """
    names: dict[str, str] = {}

    def rename(link: Any) -> Any:
        target = str(link.get("to") if isinstance(link, dict) else link)
        name = new_name(target)
        if name is None:
            return link
        names[target.casefold()] = name
        return {**link, "to": name} if isinstance(link, dict) else name

    listed = entry.metadata.get("links")
    links = list(map(rename, listed)) if isinstance(listed, list) else []
    return _replace_names(block, "links", links, names) if names else block


def _replace_names(block: str, key: str, value: Value, names: Mapping[str, str]) -> str:
    """Return YAML in which a field has a new value; in a list, if possible, only the changed names are replaced."""
    held = re.compile(rf"^{key}[ \t]*:.*?(?=^[^\s#-]|\Z)", re.DOTALL | re.MULTILINE).search(block)
    if held is not None and key in ("links", *_ID_LISTS):
        lead, end = r"(?P<lead>(?:\bto[ \t]*:|-|\[|,)[ \t]*)", r"(?=[ \t]*(?:[,\]}\r\n]|$|[ \t]#))"
        called = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
        name = re.compile(rf"{lead}(?P<quote>[\"']?)(?P<name>{called})(?P=quote){end}", re.IGNORECASE)

        def exchange(found: re.Match[str]) -> str:
            return found["lead"] + emit(names[found["name"].casefold()], found["quote"] or None, is_flow=True)

        new = f"{block[: held.start()]}{name.sub(exchange, held[0])}{block[held.end() :]}"
        with contextlib.suppress(InvalidBlock):
            if load_mapping(new) == {**load_mapping(block), key: value}:
                return new
    return set_values(block, Span(0, len(block)), {key: value})


def shown_title(title: str) -> str:
    """Return a title without the day in front of it.

    Example:
        >>> shown_title("[2026-01-02] Retry")
        'Retry'
    """
    return _DATED.sub("", title, count=1)


def rewrite_note(
    text: str,
    path: str,
    rewrite: Callable[[str], str],
    change_fields: Callable[[str, Entry], str] = lambda fields, _: fields,
) -> str:
    """Return the text of a file with its parts rewritten, frontmatter after `change_fields` has changed it.

    Example:
        >>> rewrite_note("---\\nup: '[[Tea]]'\\n---\\n[[Tea]]\\n", "a.md", lambda part: part.replace("Tea", "Milk"))
        "---\\nup: '[[Milk]]'\\n---\\n[[Milk]]\\n"
    """
    pieces, last = list[str](), 0
    for entry in read_entries(text, path):
        if entry.has_frontmatter and entry.fault is None:
            block = yaml_span(text, entry)
            fields = change_fields(text[block.start : block.end], entry)
            pieces += [rewrite(text[last : block.start]), _rewrite_values(fields, rewrite)]
            last = block.end
    return "".join((*pieces, rewrite(text[last:])))


def _rewrite_values(block: str, rewrite: Callable[[str], str]) -> str:
    """Return YAML with the links in its texts rewritten; a line stays as it is where YAML could not hold the new name."""
    lines = block.splitlines(keepends=True)
    for number, line in enumerate(lines):
        bare = line.lstrip(" \t")
        new = [*lines[:number], line[: len(line) - len(bare)] + rewrite(bare), *lines[number + 1 :]]
        with contextlib.suppress(InvalidBlock):
            if new != lines and _structure(load_mapping("".join(new))) == _structure(load_mapping(block)):
                lines = new
    return "".join(lines)


def _structure(value: object) -> object:
    """Return the mappings and lists of a value, without what is in them."""
    if isinstance(value, dict):
        return {key: _structure(one) for key, one in value.items()}
    return [_structure(one) for one in value] if isinstance(value, list) else None


class HeadingRenaming(NamedTuple):
    """A heading with its new words."""

    path: str
    text: str
    heading: Heading
    new: str
    resolve: Callable[[str, str], str | None]

    def rewrite(self, text: str, source: str) -> str:
        """Return the text of a file with the new words, in the heading itself and in the links that name it."""
        if source == self.path:
            start, end = heading_words_span(text, self.heading.span)
            text = text[:start] + self.new + text[end:]
        return rewrite_note(
            text, source, lambda part: rewrite_anchors(part, lambda link: self._new_anchor(link, source))
        )

    def _new_anchor(self, link: TextLink, source: str) -> str | None:
        parts, wanted = link.anchor.split("#"), normal_heading(self.heading.words)
        if wanted not in map(normal_heading, parts):
            return None
        if (self.resolve(link.target, source) if link.target else source) != self.path:
            return None
        for number, part in enumerate(parts):
            if find_anchor(self.text, "#".join(parts[: number + 1])) == self.heading.span:
                is_address = not link.is_wikilink and part == heading_address(self.heading.words)
                parts[number] = heading_address(self.new) if is_address else self.new
                return "#".join(parts)
        return None


def title_heading(text: str, entry: Entry) -> Heading:
    """Return the heading that opens an entry, as it is written.

    Example:
        >>> note = "<!-- Tea -->\\n# [2026-01-02] Tea #\\n"
        >>> title_heading(note, read_entries(note, "a.md")[0]).words
        '[2026-01-02] Tea'
    """
    start = entry.body.start + find_opening(text[entry.body.start : entry.body.end])
    place = Span(start, start + len(text[start:].partition("\n")[0].rstrip()))
    return Heading(1, text[slice(*heading_words_span(text, place))], place)


def heading_at(text: str, line: int) -> Heading | None:
    """Return the heading on a line, counted from 0."""
    return next((one for one in find_headings(text) if text.count("\n", 0, one.span.start) == line), None)


def plan_heading_renaming(renaming: HeadingRenaming, notes: Iterable[NoteText]) -> tuple[Change, ...]:
    """Plan to rename a heading, and to rewrite the links that name it.

    Example:
        >>> note = NoteText("a.md", b"# Tea\\n\\n## Steps\\n\\nSee [[#Steps]].\\n")
        >>> other = NoteText("b.md", b"[[a#Steps|s]] [s](a.md#steps)\\n")
        >>> heading = heading_at(note.text, 2)
        >>> renaming = HeadingRenaming("a.md", note.text, heading, "How to", lambda target, _: "a.md")
        >>> [change.data for change in plan_heading_renaming(renaming, [note, other])]
        [b'# Tea\\n\\n## How to\\n\\nSee [[#How to]].\\n', b'[[a#How to|s]] [s](a.md#how-to)\\n']
    """
    wanted = normal_heading(renaming.new)
    if any(normal_heading(one.words) == wanted and one != renaming.heading for one in find_headings(renaming.text)):
        raise UsageError(f"{renaming.path} has a heading {renaming.new!r} already", "choose another name")
    reason = f"Renamed from {renaming.heading.words} to {renaming.new}."
    return plan_rewrite(notes, lambda note: renaming.rewrite(note.text, note.path), reason, f"rename {renaming.path}")


#: Of links to files beside a note that are no notes, such as pictures: `](../img/a.png` and `](<../img/my tea.png>`.
_BESIDE = re.compile(
    r"(?<=\]\()(?![a-zA-Z][\w+.-]*:|[/#<])[^\s()#?]+|(?<=\]\(<)(?![a-zA-Z][\w+.-]*:|[/#])[^<>#?\n]+(?=[#?>])"
)


class Moving(NamedTuple):
    """Notes and folders that move, and the vault around them.

    Attributes:
        moves: the old and the new path of each note, and of each folder with `/` at the end.
        resolve: returns the file that a target leads to from a file.
        is_alone: returns whether no other note will be called like a path.
        is_file: returns whether there is a file, now.
    """

    moves: Mapping[str, str]
    resolve: Callable[[str, str], str | None]
    is_alone: Callable[[str], bool] = lambda _: True
    is_file: Callable[[str], bool] = lambda _: False

    def path_after(self, path: str) -> str:
        """Return where a file is after the move."""
        inside = (one for one in self.moves.items() if one[0].endswith("/") and path.startswith(one[0]))
        return self.moves.get(path) or next((new + path.removeprefix(old) for old, new in inside), path)


def plan_moving(moving: Moving, notes: Iterable[NoteText]) -> tuple[Change, ...]:
    """Plan to move files and to rewrite the links to them and in them that would lead elsewhere.

    A link by a file's name stays one where the name is that of one file alone. Links by titles and ids stay.

    Example:
        >>> notes = [NoteText("a/x.md", b"[y](y.md) [[z]]"), NoteText("b.md", b"[x](a/x.md#p) [[a/x]] [[x]]")]
        >>> files = {"y.md": "a/y.md", "z": "z.md", "a/x.md": "a/x.md", "a/x": "a/x.md", "x": "a/x.md"}
        >>> moving = Moving({"a/x.md": "c/v.md"}, lambda target, _: files.get(target))
        >>> [change.data for change in plan_moving(moving, notes)[:2]]
        [b'[y](../a/y.md) [[z]]', b'[x](c/v.md#p) [[c/v]] [[v]]']
    """
    reason = f"Moved {', '.join(f'from {old} to {new}' for old, new in list(moving.moves.items())[:3])}."
    name, notes = f"move {min(moving.moves)}", list(notes)
    moved = (move(note, after, reason) for note in notes if (after := moving.path_after(note.path)) != note.path)
    changes = plan_rewrite(notes, lambda note: _rewrite_moved(note, moving), reason, name)
    return (*changes, *(change._replace(together=name) for change in moved))


def _rewrite_moved(note: NoteText, moving: Moving) -> str:
    def rename(target: str) -> str | None:
        return _new_target(target, note.path, moving)

    text = rewrite_note(
        note.text,
        note.path,
        lambda part: rewrite_targets(part, rename),
        lambda fields, entry: rename_links(fields, entry, rename),
    )
    is_elsewhere = posixpath.dirname(note.path) != posixpath.dirname(moving.path_after(note.path))
    return _keep_attachments(text, note.path, moving) if is_elsewhere else text


def _new_target(target: str, source: str, moving: Moving) -> str | None:
    """Return what a link in a file is to say instead; None where it stays."""
    found = moving.resolve(target, source)
    if found is None or (moving.path_after(found), moving.path_after(source)) == (found, source):
        return None
    now, folder = moving.path_after(found), posixpath.dirname(moving.path_after(source))
    suffix = target[-3:] if target.lower().endswith(".md") else ""
    beside = name_key(posixpath.normpath(posixpath.join(posixpath.dirname(source), target)))
    is_relative = beside in (name_key(found), name_key(found.removesuffix(".md")))
    path = now.removesuffix(".md")
    if "/" not in target and not (suffix and is_relative):
        if name_key(target.removesuffix(suffix)) != name_key(note_name(found)):
            return None
        path = target.removesuffix(suffix) if note_name(now) == note_name(found) else note_name(now)
        path = path if moving.is_alone(now) else now.removesuffix(".md")
    elif is_relative and (suffix or target.startswith(".")):
        path = posixpath.relpath(path, folder or ".")
    elif now == found:
        return path if is_relative and path != target else None
    elif target.startswith("/"):
        path = f"/{path}"
    return None if posixpath.normpath(target) == path + suffix else path + suffix


def _keep_attachments(text: str, source: str, moving: Moving) -> str:
    """Return the text of a note that moves with its paths to pictures and other attachments leading there still."""
    places = [(link.span, link.target) for link in find_links(text) if link.is_attachment and "/" in link.target]
    beside = _BESIDE.finditer(without_code(text)) if "](" in text else ()
    places += [(Span(*one.span()), unquote(one[0])) for one in beside if not one[0].lower().endswith(".md")]
    old, new = posixpath.dirname(source), posixpath.dirname(moving.path_after(source))
    pieces, done = [], 0
    for span, target in sorted(places):
        file = posixpath.normpath(posixpath.join(old, target))
        path = posixpath.relpath(moving.path_after(file), new or ".")
        if moving.is_file(file) and path != posixpath.normpath(target):
            is_quoted = text[span.start - 1] in "[<"
            pieces += [text[done : span.start], path if is_quoted else escape_address(path)]
            done = span.end
    return "".join((*pieces, text[done:]))
