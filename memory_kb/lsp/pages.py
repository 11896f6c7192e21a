"""The notes that an editor has open, as they stand there."""

from __future__ import annotations

from functools import cached_property

from memory_kb.entry import Document, Entry, Span
from memory_kb.lsp.positions import Ruler
from memory_kb.notes.entries import first_heading, parse_document
from memory_kb.notes.sheets import yaml_span
from memory_kb.notes.wikilinks import Wikilink, find_wikilinks


class Page:
    """A note as it stands in an editor, or in its file.

    `path` is as paths stand in output, `version` None for what is not open.
    """

    def __init__(self, uri: str, path: str, text: str, version: int | None, encoding: str) -> None:
        self.uri, self.path, self.text, self.version = uri, path, text, version
        self.encoding = encoding

    @cached_property
    def ruler(self) -> Ruler:
        """Its places."""
        return Ruler(self.text, self.encoding)

    @cached_property
    def document(self) -> Document:
        """Its entries and what is wrong with them."""
        return parse_document(self.text, self.path)

    def entry_at(self, offset: int) -> Entry | None:
        """Return the entry that a character belongs to."""
        return next((entry for entry in self.document.entries if entry.span.start <= offset <= entry.span.end), None)

    def entry(self, entry_id: str) -> Entry | None:
        """Return the entry with an id."""
        return next((entry for entry in self.document.entries if entry.id == entry_id), None)

    def body(self, entry: Entry) -> str:
        """Return the text of an entry below its frontmatter."""
        return self.text[entry.body.start : entry.body.end]

    def link_at(self, offset: int) -> Wikilink | None:
        """Return the link that a character is part of."""
        return next((link for link in find_wikilinks(self.text) if link.whole.start <= offset <= link.whole.end), None)

    def value_at(self, offset: int, names: tuple[str, ...]) -> tuple[str, Span] | None:
        """Return the value of one of some fields, or of a `to:`, that a character is part of."""
        import re

        entry = self.entry_at(offset)
        if entry is None or not entry.has_frontmatter or offset > entry.body.start:
            return None
        block = yaml_span(self.text, entry)
        fields = "|".join(map(re.escape, names))
        found = re.compile(
            rf"(?:^|[\s{{,-])(?:{fields})[ \t]*:[ \t]*([\"']?)([^\"'\n,}}\r]*?)\1[ \t]*(?=[,}}\r\n#]|\Z)", re.MULTILINE
        )
        for one in found.finditer(self.text, block.start, block.end):
            if one.start(2) <= offset <= one.end(2) and one[2].strip():
                return one[2].strip(), Span(*one.span(2))
        return None

    def place_of(self, entry_id: str) -> Span:
        """Return where an entry begins: its heading, else its first line."""
        entry = self.entry(entry_id)
        if entry is None:
            return Span(0, 0)
        body = self.body(entry)
        start = entry.body.start + len(body) - len(body.lstrip()) if first_heading(body) else entry.span.start
        end = self.text.find("\n", start)
        return Span(start, len(self.text) if end < 0 else end - (self.text[end - 1] == "\r"))
