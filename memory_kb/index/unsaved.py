"""A text that is in no file yet, as the index would read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from memory_kb.index.catalog import Catalog
from memory_kb.index.inventory import links_of, name_entries
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
        StoredMemory(
            StoredEntry._make(getattr(chunk, name) for name in _COLUMNS),
            hash_of(data),
            chunk.job,
            chunk.task,
            chunk.learning_type,
            body,
        )
        for chunk, body in zip(firsts, bodies, strict=False)
    ]


#: The entries of a text as a catalog has them, each with the relations and targets of its links.
Told = tuple[tuple[StoredEntry, tuple[tuple[str, str], ...]], ...]


def tell_unsaved(path: str, text: str, *, is_memory: bool) -> Told:
    """Return what a text adds to a catalog.

    Example:
        >>> [(entry.title, links) for entry, links in tell_unsaved("a.md", "# Tea\\n\\nAs [[b]].\\n", is_memory=False)]
        [('Tea', (('mentions', 'b'),))]
    """
    return tuple(
        (one.entry, tuple(links_of(one.entry, one.text))) for one in read_unsaved(path, text, is_memory=is_memory)
    )


def lay_over(catalog: Catalog, drafts: Mapping[str, Told]) -> Catalog:
    """Return a catalog in which some files hold what they hold in an editor, whether they are saved or not."""
    new = {path: told for path, told in drafts.items() if told != catalog.told(path)}
    if not new:
        return catalog
    entries = [entry for entry in catalog.entries if entry.source not in new]
    entries += [entry for told in new.values() for entry, _ in told]
    entries.sort(key=lambda entry: entry.source)
    links = {place: held for place, held in catalog.links.items() if place[0] not in new}
    links |= {(entry.source, entry.line): held for told in new.values() for entry, held in told if held}
    return replace(catalog, entries=tuple(entries), names=name_entries(entries), links=links)


_COLUMNS = (
    "entry_id",
    "title",
    "kind",
    "type",
    "scope",
    "status",
    "source",
    "line",
    "end_line",
    "tags",
    "dated",
    "metadata",
    "text_tags",
    "fault",
)
