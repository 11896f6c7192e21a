"""A text that is in no file yet, as the index would read it."""

from __future__ import annotations

from memory_kb.index.reading import RawNote, read_note
from memory_kb.model import FileStat
from memory_kb.notes.entries import parse_document
from memory_kb.notes.plans import encode, hash_of
from memory_kb.notes.vault import default_status, locate
from memory_kb.ports import StoredEntry, StoredMemory


def read_unsaved(path: str, text: str, *, is_memory: bool) -> list[StoredMemory]:
    """Return the entries of a text with all they say, planned against the text as its bytes are.

    Example:
        >>> [(one.entry.entry_id, one.text) for one in read_unsaved("a.md", "---\\nid: x\\n---\\nOne.\\n", is_memory=False)]
        [('x', 'One.')]
    """
    data, place = encode(text), locate(path, is_memory=is_memory)
    status = default_status(path, is_memory=is_memory)
    chunks = read_note(RawNote(FileStat(path, path, len(data), 0, 0), data, is_cut=False), place, status).chunks
    firsts = [chunk for chunk in chunks if chunk.part == 0]
    bodies = [text[entry.body.start : entry.body.end].strip() for entry in parse_document(text, path, status).entries]
    return [
        StoredMemory(StoredEntry._make(getattr(chunk, name) for name in _COLUMNS), hash_of(data), chunk.job, chunk.task, chunk.learning_type, body)
        for chunk, body in zip(firsts, bodies, strict=False)
    ]


_COLUMNS = ("entry_id", "title", "kind", "type", "scope", "status", "source", "line", "end_line", "tags", "dated", "metadata")
