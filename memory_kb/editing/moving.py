"""Rename or move files, with the links to them and in them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple
from urllib.parse import unquote

from memory_kb.editing.renaming import plan_rewrite, rename_links
from memory_kb.markdown.links import escape_address, find_wikilinks, is_attachment, rewrite_targets, without_code
from memory_kb.markdown.splice import read_entries
from memory_kb.model import Span
from memory_kb.store.files import NoteText
from memory_kb.store.plan import Change, move

#: Of links to files beside a note that are no notes, such as pictures: `](../img/a.png`.
_BESIDE = re.compile(r"(?<=\]\()(?![a-zA-Z][\w+.-]*:|[/#<])[^\s()#?]+")


class Moving(NamedTuple):
    """Files that move, and the vault around them.

    Attributes:
        moves: the old and the new path of each file.
        resolve: returns the file that a target leads to from a file.
        is_alone: returns whether no file that stays is called like a path.
        find_file: returns the attachment that a name or path leads to from a file.
        is_only: returns whether no other attachment will be called like a path.
    """

    moves: Mapping[str, str]
    resolve: Callable[[str, str], str | None]
    is_alone: Callable[[str], bool] = lambda _: True
    find_file: Callable[[str, str], str | None] = lambda *_: None
    is_only: Callable[[str], bool] = lambda _: True


def plan_moving(moving: Moving, notes: Iterable[NoteText]) -> tuple[Change, ...]:
    """Plan to move files and to rewrite the links to them and in them that would lead elsewhere.

    A link by a file's name stays one where the name is that of one file alone. Links by titles and ids stay.

    Example:
        >>> notes = [NoteText("a/x.md", b"[y](y.md) [[z]]"), NoteText("b.md", b"[x](a/x.md#p) [[a/x]] [[x]]")]
        >>> files = {"y.md": "a/y.md", "z": "z.md", "a/x.md": "a/x.md", "a/x": "a/x.md", "x": "a/x.md"}
        >>> moving = Moving({"a/x.md": "c/v.md"}, lambda target, _: files.get(target))
        >>> [change.action.data for change in plan_moving(moving, notes)[:2]]
        [b'[y](../a/y.md) [[z]]', b'[x](c/v.md#p) [[c/v]] [[v]]']
    """
    reason = f"Moved {', '.join(f'from {old} to {new}' for old, new in list(moving.moves.items())[:3])}."
    name, notes = f"move {min(moving.moves)}", list(notes)
    moved = (move(note, moving.moves[note.path], reason) for note in notes if note.path in moving.moves)
    changes = plan_rewrite(notes, lambda note: _rewrite(note, moving), reason, name)
    return (*changes, *(change.joined(name) for change in moved))


def _rewrite(note: NoteText, moving: Moving) -> str:
    def rename(target: str) -> str | None:
        return _new_target(target, note.path, moving)

    text = note.text
    if not note.path.lower().endswith(".md"):
        return text
    for entry in reversed(list(read_entries(text, note.path))):
        if entry.has_frontmatter and entry.fault is None:
            text = rename_links(text, entry, rename)
    text = rewrite_targets(text, rename)
    old, new = (posixpath.dirname(path) for path in (note.path, moving.moves.get(note.path, note.path)))
    return _keep_attachments(text, note.path, moving) if old != new or any(map(is_attachment, moving.moves)) else text


def _new_target(target: str, source: str, moving: Moving) -> str | None:
    """Return what a link in a file is to say instead; None where it stays."""
    found = moving.resolve(target, source)
    if found is None or not {source, found} & moving.moves.keys():
        return None
    now, folder = moving.moves.get(found, found), posixpath.dirname(moving.moves.get(source, source))
    suffix = target[-3:] if target.lower().endswith(".md") else ""
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(source), target)).casefold()
    is_relative = beside in (found.casefold(), found.removesuffix(".md").casefold())
    path = now.removesuffix(".md")
    if "/" not in target and not (suffix and is_relative):
        if target.removesuffix(suffix).casefold() != _stem(found).casefold():
            return None
        path = target.removesuffix(suffix) if _stem(now) == _stem(found) else _stem(now)
        path = path if moving.is_alone(now) else now.removesuffix(".md")
    elif is_relative and (suffix or target.startswith(".")):
        path = posixpath.relpath(path, folder or ".")
    elif now == found:
        return path if is_relative and path != target else None
    elif target.startswith("/"):
        path = f"/{path}"
    return None if posixpath.normpath(target) == path + suffix else path + suffix


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".md")


def _keep_attachments(text: str, source: str, moving: Moving) -> str:
    """Return a text whose links to pictures and other attachments lead to them after the move."""
    places = [(link.span, link.target, True) for link in find_wikilinks(text) if link.is_attachment]
    beside = _BESIDE.finditer(without_code(text)) if "](" in text else ()
    places += [(Span(*one.span()), unquote(one[0]), False) for one in beside if not one[0].lower().endswith(".md")]
    pieces, done = [], 0
    for span, target, is_wikilink in sorted(places):
        new = _new_file_path(target, source, moving, is_wikilink=is_wikilink)
        if new is not None:
            pieces += [text[done : span.start], new if is_wikilink else escape_address(new)]
            done = span.end
    return "".join((*pieces, text[done:]))


def _new_file_path(target: str, source: str, moving: Moving, *, is_wikilink: bool) -> str | None:
    """Return what a link to an attachment is to say instead; None where it stays."""
    old, folder = posixpath.dirname(source), posixpath.dirname(moving.moves.get(source, source))
    found = moving.find_file(target, source)
    if found is None:
        return None
    now = moving.moves.get(found, found)
    is_from_top = is_wikilink and posixpath.normpath(target.lstrip("/")) == found
    new = now
    if is_wikilink and "/" not in target:
        name = now.rpartition("/")[2]
        new = name if moving.is_only(now) or posixpath.join(folder, name) == now else now
    elif not is_from_top and posixpath.normpath(posixpath.join(old, target)) == found:
        new = posixpath.relpath(now, folder or ".")
    return None if posixpath.normpath(target) == new else new
