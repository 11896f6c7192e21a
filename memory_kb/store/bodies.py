"""Read the whole text of an entry from its file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memory_kb.errors import MemoryKBError
from memory_kb.text import as_read

if TYPE_CHECKING:
    from memory_kb.store.plan import Memory
    from memory_kb.store.writer import Writer


def read_body(writer: Writer, memory: Memory) -> str:
    """Return what is below an entry's frontmatter.

    Raises:
        UnreadableInput: the file cannot be read.
        CannotSplice: the entry is not there any more.
    """
    from memory_kb.markdown.splice import find_entry

    note = writer.read(memory.path)
    entry = find_entry(note.text, note.path, memory.id)
    return note.text[entry.body.start : entry.body.end]


def whole_text(writer: Writer, memory: Memory) -> str:
    """Return an entry's text in one piece; as it was indexed where the file does not have it now."""
    from memory_kb.markdown.sections import SECTION

    if len(memory.text) < SECTION.whole:
        return memory.text
    try:
        return as_read(read_body(writer, memory).strip())
    except MemoryKBError:
        return memory.text
