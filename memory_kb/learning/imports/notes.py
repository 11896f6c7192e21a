"""What the readers of note folders share: a note's frontmatter and text, and ids for links between notes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from memory_kb.learning.imports.pieces import TextFile, heading_on
from memory_kb.learning.intake import id_of
from memory_kb.notes.entries import find_blocks
from memory_kb.notes.fields import read_text, read_words


class SourceNote(NamedTuple):
    """A note of another tool.

    Attributes:
        stem: its file's name without the ending.
        body: its text below the frontmatter.
        line: the line its text begins on.
    """

    path: str
    stem: str
    title: str
    meta: Mapping[str, Any]
    body: str
    line: int

    def words(self, *names: str) -> tuple[str, ...]:
        """Return the words of the first of some fields that has any."""
        return next((found for name in names if (found := read_words(self.meta.get(name)))), ())


def read_note(file: TextFile) -> SourceNote:
    """Return a file as a note; it is called by its title, else by its file's name.

    Example:
        >>> note = read_note(TextFile("a/Tea.md", "---\\ntitle: Teas\\n---\\nGreen.\\n"))
        >>> note.title, note.stem, note.body, note.line
        ('Teas', 'Tea', 'Green.\\n', 4)
    """
    text = file.text.lstrip("\ufeff").replace("\r\n", "\n")
    block = next(find_blocks(text, file.path, []), None)
    is_head = block is not None and not text[: block.span.start].strip()
    start = block.span.end if block and is_head else 0
    meta = block.metadata if block and is_head else {}
    stem = file.path.rpartition("/")[2].removesuffix(".md")
    return SourceNote(
        file.path, stem, read_text(meta.get("title")) or stem, meta, text[start:], text.count("\n", 0, start) + 1
    )


def name_notes(notes: Iterable[SourceNote], key_of: Mapping[str, str], *fields: str) -> dict[str, str]:
    """Return the ids that notes are going to have, by all the names that links may use.

    Args:
        notes: the notes of one source.
        key_of: what makes each of them this one, by its path.
        fields: those that hold further names.
    """
    names: dict[str, str] = {}
    for note in notes:
        path = note.path.removesuffix(".md")
        inner = path.partition("/")[2] or path
        for name in (
            note.title,
            note.stem,
            path,
            inner,
            *(word for field in fields for word in read_words(note.meta.get(field))),
        ):
            names.setdefault(name.casefold(), id_of(key_of[note.path]))
    return names


def drop_title(body: str, title: str) -> str:
    """Return a text without the heading that only repeats its title.

    Example:
        >>> drop_title("# Tea\\n\\nGreen.\\n", "Tea"), drop_title("# Kinds\\n", "Tea")
        ('Green.', '# Kinds')
    """
    lines: Sequence[str] = body.strip("\n").split("\n")
    heading = heading_on(lines[0]) if lines else None
    return "\n".join(lines[1:] if heading and heading[1].casefold() == title.casefold() else lines).strip("\n")
