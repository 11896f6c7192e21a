"""The lines of a file at which something stands that the index knows an entry to say."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from memory_kb.entry import Entry
from memory_kb.errors import MemoryKBError
from memory_kb.index.reading import decode
from memory_kb.notes.changes import read_note_text
from memory_kb.notes.entries import parse_document
from memory_kb.notes.vault import Vault
from memory_kb.notes.wikilinks import Wikilink, find_wikilinks
from memory_kb.ports import StoredEntry


class Places:
    """Where in their files entries say what they say; without an answer it is where an entry's text begins."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        # What is asked comes file by file.
        self._read = functools.lru_cache(maxsize=2)(self._read_file)

    def of_field(self, entry: StoredEntry, value: str, field: str = "") -> int:
        """Return the line of a value in an entry's frontmatter, behind a field if one is named."""
        text, found = self._find(entry)
        if found is None:
            return entry.line
        named = rf"^[ \t]*[\"']?{re.escape(field)}[\"']?[ \t]*:[^\n]*?" if field else ""
        place = re.compile(rf"{named}(?<![\w-]){re.escape(value)}(?![\w-])", re.MULTILINE).search(
            text, found.span.start, found.body.start
        )
        return text.count("\n", 0, place.end()) + 1 if place else entry.line

    def of_link(self, entry: StoredEntry, target: str, anchor: str | None = None) -> int:
        """Return the line of an entry's first link to a target, and to a heading or block of it if one is named."""
        text, found = self._find(entry)
        links: Iterator[Wikilink] = find_wikilinks(text, found.body.start, found.body.end) if found else iter(())
        place = next(
            (link.whole.start for link in links if link.target == target and anchor in (None, link.anchor)), None
        )
        return text.count("\n", 0, place) + 1 if place is not None else entry.line

    def _find(self, entry: StoredEntry) -> tuple[str, Entry | None]:
        text, entries = self._read(entry.source)
        found = None
        for one in entries:
            if one.id == entry.entry_id and one.line <= entry.line:
                found = one
        return text, found

    def _read_file(self, path: str) -> tuple[str, tuple[Entry, ...]]:
        try:
            text, _ = decode(read_note_text(path, self._vault.resolve(path)).data)
        except (MemoryKBError, OSError):
            return "", ()
        return text, parse_document(text, path).entries
