"""Rename a heading and the links that name it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from memory_kb.errors import UsageError
from memory_kb.markdown.links import TextLink, rewrite_anchors
from memory_kb.markdown.scanner import (
    Heading,
    find_anchor,
    find_headings,
    heading_address,
    heading_words_span,
    normal_heading,
)
from memory_kb.store.files import NoteText
from memory_kb.store.plan import Change, write_file


class HeadingRenaming(NamedTuple):
    """A heading with its new words.

    Attributes:
        path: the file it is in.
        text: the text of that file.
        heading: the heading.
        new: its new words.
        resolve: returns the file that a target leads to from a file.
    """

    path: str
    text: str
    heading: Heading
    new: str
    resolve: Callable[[str, str], str | None]

    def rewrite_links(self, text: str, source: str) -> str:
        """Return the text of a file in which the links that name the heading say the new words."""
        return rewrite_anchors(text, lambda link: self._new_anchor(link, source))

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


def heading_at(text: str, line: int) -> Heading | None:
    """Return the heading on a line, counted from 0.

    Example:
        >>> heading_at("# Tea\\n\\n## Steps\\n", 2).words
        'Steps'
    """
    return next((one for one in find_headings(text) if text.count("\n", 0, one.span.start) == line), None)


def plan_heading_renaming(renaming: HeadingRenaming, notes: Iterable[NoteText]) -> tuple[Change, ...]:
    """Plan to rename a heading, and to rewrite the links that name it.

    Args:
        renaming: what is renamed.
        notes: its file, and all files with links to it.

    Raises:
        UsageError: the note has another heading of that name.

    Example:
        >>> note = NoteText("a.md", b"# Tea\\n\\n## Steps\\n\\nSee [[#Steps]].\\n")
        >>> other = NoteText("b.md", b"[[a#Steps|s]] [s](a.md#steps)\\n")
        >>> heading = heading_at(note.text, 2)
        >>> renaming = HeadingRenaming("a.md", note.text, heading, "How to", lambda target, _: "a.md")
        >>> [change.action.data for change in plan_heading_renaming(renaming, [note, other])]
        [b'# Tea\\n\\n## How to\\n\\nSee [[#How to]].\\n', b'[[a#How to|s]] [s](a.md#how-to)\\n']
    """
    wanted = normal_heading(renaming.new)
    if any(normal_heading(one.words) == wanted and one != renaming.heading for one in find_headings(renaming.text)):
        raise UsageError(f"{renaming.path} has a heading {renaming.new!r} already", "choose another name")
    changes = []
    for note in notes:
        text = note.text
        if note.path == renaming.path:
            start, end = heading_words_span(text, renaming.heading.span)
            text = text[:start] + renaming.new + text[end:]
        text = renaming.rewrite_links(text, note.path)
        if text != note.text:
            changes.append(write_file(note, text, f"Renamed from {renaming.heading.words} to {renaming.new}."))
    return tuple(change.joined(f"rename {renaming.path}") for change in changes)
