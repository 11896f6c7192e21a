"""Open notes of an editor, and positions in them."""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_right
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

from lsprotocol import types as lsp
from pygls.workspace import PositionCodec

from memory_kb.markdown.document import display_title, find_opening, first_heading, parse_document
from memory_kb.markdown.headings import Heading, find_anchor, find_headings, heading_words_span, sections_by_heading
from memory_kb.markdown.links import TextLink, find_links, without_code
from memory_kb.markdown.splice import yaml_span
from memory_kb.model import Document, Entry, Span
from memory_kb.reports import EntryView
from memory_kb.terms import name_key
from memory_kb.text import note_name, read_words

_LINE_END = re.compile(r"\r\n|\n|\r")
#: Frontmatter, which may not be finished: from a `---` line to the next, else to a blank line.
_BLOCK = re.compile(
    r"(?:\A\ufeff?\s*|\n[ \t]*\r?\n(?=---[ \t]*\r?\n[\"']?[\w-]+[\"']?[ \t]*:(?:[ \t]|\r?$)))---[ \t]*\r?\n"
    r"(?P<yaml>(?:(?!---)[^\n]*\n)*?(?=---[ \t]*\r?$)|(?:[ \t]*[^\s][^\n]*(?:\n|\Z))*)",
    re.MULTILINE,
)


def find_yaml(text: str) -> list[Span]:
    """Return the places of frontmatter, of blocks that are not finished too.

    Example:
        >>> note = "---\\nki\\n---\\nText.\\n\\n---\\nid: b\\n"
        >>> [note[one.start : one.end] for one in find_yaml(note)]
        ['ki\\n', 'id: b\\n']
    """
    return [Span(*found.span("yaml")) for found in _BLOCK.finditer(without_code(text))]


class Ruler:
    """A text that places can be looked up in.

    Editors count in UTF-16 unless they agree on something else, so that an emoji is two.

    Example:
        >>> ruler = Ruler("a😀b\\r\\nc", "utf-16")
        >>> ruler.position(2), ruler.offset(lsp.Position(0, 3)), ruler.position(5)
        (0:3, 2, 1:0)
    """

    def __init__(self, text: str, encoding: str) -> None:
        self.text = text
        self._codec = PositionCodec(encoding)
        self._starts = [0, *(found.end() for found in _LINE_END.finditer(text))]

    def position(self, offset: int) -> lsp.Position:
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self._starts, offset) - 1
        return lsp.Position(line, self._units(self.text[self._starts[line] : offset]))

    def offset(self, position: lsp.Position) -> int:
        """Return the character at a place; behind the end of a line it is that end."""
        if position.line >= len(self._starts):
            return len(self.text)
        start, *after = self._starts[position.line : position.line + 2]
        line = self.text[start : after[0]].rstrip("\r\n") if after else self.text[start:]
        within = lsp.Position(0, min(position.character, self._units(line)))
        return start + self._codec.position_from_client_units([line], within).character

    def range(self, span: Span) -> lsp.Range:
        return lsp.Range(self.position(span.start), self.position(span.end))

    def _units(self, text: str) -> int:
        return len(text) if text.isascii() else self._codec.client_num_units(text)


class Page:
    """A note as it is in an editor, or in its file.

    `path` is as paths are written in output, `version` None for what is not open.
    """

    def __init__(self, uri: str, path: str, text: str, version: int | None, encoding: str) -> None:
        self.uri, self.path, self.text, self.version = uri, path, text, version
        self.encoding = encoding

    @cached_property
    def ruler(self) -> Ruler:
        return Ruler(self.text, self.encoding)

    @cached_property
    def document(self) -> Document:
        return parse_document(self.text, self.path)

    def entry_at(self, offset: int) -> Entry | None:
        return next((entry for entry in self.document.entries if entry.span.start <= offset <= entry.span.end), None)

    def body(self, entry: Entry) -> str:
        return self.text[entry.body.start : entry.body.end]

    @cached_property
    def headings(self) -> tuple[Heading, ...]:
        return tuple(find_headings(self.text))

    @cached_property
    def links(self) -> tuple[TextLink, ...]:
        """The links of its text, those to its own headings among them."""
        return tuple(find_links(self.text, with_own=True))

    def link_at(self, offset: int) -> TextLink | None:
        return next((link for link in self.links if link.whole.start <= offset <= link.whole.end), None)

    def value_at(self, offset: int, names: tuple[str, ...]) -> tuple[str, Span] | None:
        """Return the value of one of some fields, or of a `to:`, that a character is part of."""
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
        entry = next((entry for entry in self.document.entries if entry.id == entry_id), None)
        if entry is None:
            return Span(0, 0)
        body = self.body(entry)
        start = entry.body.start + find_opening(body) if first_heading(body) else entry.span.start
        end = self.text.find("\n", start)
        return Span(start, len(self.text) if end < 0 else end - (self.text[end - 1] == "\r"))


_TITLES = ("title", "name")
_KINDS = {
    "rule": lsp.SymbolKind.Constant,
    "pitfall": lsp.SymbolKind.Event,
    "skill": lsp.SymbolKind.Function,
    "policy": lsp.SymbolKind.Constant,
}


class Subject(NamedTuple):
    """An entry, or a section of its file, that a place is about.

    Attributes:
        span: the name of it that is there.
        way: `id`, `title` or `file` where that is a name that can be changed, `section` or `block` where
            the place names one, else "".
        is_own: whether the place is part of the entry itself.
        section: the line of the heading or block that a link leads to, or that the place is on.
    """

    path: str
    entry_id: str
    span: Span
    way: str
    is_own: bool
    section: Span | None = None


def find_named(page: Page, offset: int) -> str:
    """Return the name of another entry at a place, "" where there is none."""
    link = page.link_at(offset)
    named = None if link else page.value_at(offset, ("to",))
    return link.target if link else named[0] if named else ""


def find_subject(page: Page, offset: int, named: EntryView | None, read: Callable[[str], str]) -> Subject | None:
    """Return what a character of a page is about; None for a name of nothing and for no entry at all.

    `named` is the entry of the name that `find_named` returns.
    """
    link = page.link_at(offset)
    if link:
        return _find_linked(page, link, offset, named, read)
    if to := page.value_at(offset, ("to",)):
        return _call(named, *to, page.text) if named else None
    own = page.entry_at(offset)
    if own is None:
        return None
    subject = Subject(page.path, own.id, Span(offset, offset), "", is_own=True)
    for way, fields in (("id", ("id",)), ("title", _TITLES)):
        value = page.value_at(offset, fields)
        if value:
            return subject._replace(span=value[1], way=way)
    body = page.body(own)
    if (title := first_heading(body)) and not own.title:
        start = page.text.find(title, own.body.start + find_opening(body))
        if start >= 0 and start <= offset <= start + len(title):
            return subject._replace(span=Span(start, start + len(title)), way="title")
    section = next((one.span for one in page.headings if one.span.start <= offset <= one.span.end), None)
    if section:
        return subject._replace(span=heading_words_span(page.text, section), way="section", section=section)
    return subject


def _find_linked(
    page: Page, link: TextLink, offset: int, named: EntryView | None, read: Callable[[str], str]
) -> Subject | None:
    """Return the entry that a link leads to; its section where the place is on the name of that."""
    subject = _call(named, link.target, link.span, page.text) if named else None
    if not link.target and (own := page.entry_at(offset)):
        subject = Subject(page.path, own.id, link.anchor_span, "", is_own=False)
    section = find_anchor(read(subject.path), link.anchor) if subject and link.anchor else None
    if subject is None or section is None:
        return subject
    if offset < link.anchor_span.start:
        return subject._replace(section=section)
    way = "block" if link.anchor.startswith("^") else "section"
    return subject._replace(section=section, way=way, span=link.anchor_span)


def _call(entry: EntryView, name: str, span: Span, text: str) -> Subject:
    """Return an entry by the name that a link uses; an alias cannot be changed there."""
    key = name_key(name.strip())
    aliases = read_words(entry.metadata.get("aliases", entry.metadata.get("alias")))
    if key == entry.id.casefold():
        way = "id"
    elif posixpath.basename(key).removesuffix(".md") == name_key(note_name(entry.path)):
        way = "file"
        start = span.start + text[span.start : span.end].rfind("/") + 1
        span = Span(start, span.end - (3 if text[: span.end].lower().endswith(".md") else 0))
    else:
        way = "" if key in map(name_key, aliases) and key != name_key(entry.title) else "title"
    return Subject(entry.path, entry.id, span, way, is_own=False)


def list_symbols(page: Page) -> list[lsp.DocumentSymbol]:
    """Return the entries of a page, each with the headings inside of it."""
    ruler, found = page.ruler, []
    entries = page.document.entries
    for entry in entries:
        body = page.body(entry)
        title = display_title(entry, body, page.path, is_only=len(entries) == 1)
        detail = f"{entry.kind}, {entry.status}" if entry.has_frontmatter else None
        kind = _KINDS.get(entry.kind, lsp.SymbolKind.String)
        whole, name = ruler.range(entry.span), ruler.range(page.place_of(entry.id))
        children = [
            lsp.DocumentSymbol(heading.words or "heading", lsp.SymbolKind.String, place, place)
            for heading in page.headings
            if entry.body.start <= heading.span.start < entry.body.end and (place := ruler.range(heading.span))
        ]
        found.append(lsp.DocumentSymbol(title or "entry", kind, whole, name, detail=detail, children=children))
    return found


def list_foldings(page: Page) -> list[lsp.FoldingRange]:
    """Return what an editor can fold: frontmatter, and each section down to the next heading of its level."""
    text = page.text.rstrip()
    sections = sections_by_heading(text).values()
    spans = [(max(0, one.start - 1), one.end) for one in find_yaml(page.text)]
    spans += [(one.start, one.end - (one.end < len(text))) for one in sections]
    lines = [(page.ruler.position(start).line, page.ruler.position(end).line) for start, end in spans]
    return [lsp.FoldingRange(first, last) for first, last in lines if first < last]
