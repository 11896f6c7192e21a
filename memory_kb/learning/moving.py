"""Move a note to another folder, and rewrite the links that go by paths."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable
from urllib.parse import quote, unquote

from memory_kb.markdown.links import rewrite_targets, without_code
from memory_kb.store.files import NoteText
from memory_kb.store.plan import Change, move, write_file

#: Of links to files beside a note that are no notes, such as pictures: `](../img/a.png`.
_BESIDE = re.compile(r"(?<=\]\()(?![a-zA-Z][\w+.-]*:|[/#<])[^\s()#?]+")


def plan_moving(
    path: str,
    to: str,
    notes: Iterable[NoteText],
    resolve: Callable[[str, str], str | None],
    exists: Callable[[str], bool] = lambda _: False,
) -> tuple[Change, ...]:
    """Plan to move a file and to rewrite the links to it and in it that would lead elsewhere.

    Links by a name alone stay: a name is found from every folder.

    Args:
        path: the file.
        to: where it is to be.
        notes: the file, and all files with links to it.
        resolve: returns the file that a target leads to from a file.
        exists: tells whether there is a file of another kind at a path.

    Example:
        >>> notes = [NoteText("a/x.md", b"[y](y.md) [[z]]"), NoteText("b.md", b"[x](a/x.md#p) [[a/x]] [[x]]")]
        >>> files = {"y.md": "a/y.md", "z": "z.md", "a/x.md": "a/x.md", "a/x": "a/x.md", "x": "a/x.md"}
        >>> [change.action.data for change in plan_moving("a/x.md", "c/x.md", notes, lambda target, _: files.get(target))[:2]]
        [b'[y](../a/y.md) [[z]]', b'[x](c/x.md#p) [[c/x]] [[x]]']
    """
    reason = f"Moved from {path} to {to}."
    changes: list[Change] = []
    moves: list[Change] = []
    for note in notes:
        is_own = note.path == path
        folder = posixpath.dirname(to if is_own else note.path)

        def rename(target: str, note: NoteText = note, folder: str = folder, is_own: bool = is_own) -> str | None:  # noqa: FBT001
            found = resolve(target, note.path)
            if found is None or not (is_own or found == path):
                return None
            now = to if found == path else found
            if target.lower().endswith(".md"):
                return _unless(target, posixpath.relpath(now, folder or "."))
            return _unless(target, now.removesuffix(".md")) if "/" in target else None

        text = rewrite_targets(note.text, rename)
        if is_own:
            text = _keep_attachments(text, posixpath.dirname(path), folder, exists)
            moves.append(move(note, to, reason))
        if text != note.text:
            changes.append(write_file(note, text, reason))
    return tuple(change.joined(f"move {path}") for change in (*changes, *moves))


def _unless(old: str, new: str) -> str | None:
    return None if posixpath.normpath(old) == new else new


def _keep_attachments(text: str, old: str, new: str, exists: Callable[[str], bool]) -> str:
    """Return a text whose links to files beside it lead to them from another folder."""
    pieces, done = [], 0
    for found in _BESIDE.finditer(without_code(text)):
        file = posixpath.normpath(posixpath.join(old, unquote(found[0])))
        if not found[0].lower().endswith(".md") and exists(file):
            pieces += [text[done : found.start()], quote(posixpath.relpath(file, new or "."))]
            done = found.end()
    return "".join((*pieces, text[done:]))
