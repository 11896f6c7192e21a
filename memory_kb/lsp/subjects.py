"""Which entry a place of a note is about: the one a link leads to, or the one that stands there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lsprotocol.types import DocumentSymbol, SymbolKind

from memory_kb.entry import Entry, Span
from memory_kb.index.catalog import Catalog
from memory_kb.lsp.pages import Page
from memory_kb.notes.entries import display_title, first_heading
from memory_kb.notes.sheets import yaml_span
from memory_kb.notes.wikilinks import find_wikilinks, without_code
from memory_kb.ports import StoredEntry

_TITLES = ("title", "name")
_KINDS = {
    "rule": SymbolKind.Constant,
    "pitfall": SymbolKind.Event,
    "skill": SymbolKind.Function,
    "policy": SymbolKind.Constant,
}


class Subject(NamedTuple):
    """An entry that a place is about.

    Attributes:
        span: the name of it that stands there.
        way: `id`, `title`, `file` or `alias` where that is a name that can be changed, else "".
        is_own: whether the place is part of the entry itself.
    """

    path: str
    entry_id: str
    span: Span
    way: str
    is_own: bool


def find_subject(page: Page, offset: int, catalog: Catalog) -> Subject | None:
    """Return what a character of a page is about; None for a link to nowhere and for no entry at all."""
    link = page.link_at(offset)
    if link:
        return _called(link.target, link.span, catalog)
    named = page.value_at(offset, ("to",))
    if named:
        return _called(*named, catalog)
    own = page.entry_at(offset)
    if own is None:
        return None
    for way, fields in (("id", ("id",)), ("title", _TITLES)):
        value = page.value_at(offset, fields)
        if value:
            return Subject(page.path, own.id, value[1], way, is_own=True)
    heading = heading_span(page, own)
    if heading and heading.start <= offset <= heading.end:
        return Subject(page.path, own.id, heading, "" if own.title else "title", is_own=True)
    return Subject(page.path, own.id, Span(offset, offset), "", is_own=True)


def _called(name: str, span: Span, catalog: Catalog) -> Subject | None:
    """Return the entry that a link leads to, by the name that can be changed there."""
    entry = catalog.resolve(name)
    if entry is None:
        return None
    way = catalog.way_of(entry, name)
    if way == "file":
        start = span.start + name.rfind("/") + 1
        span = Span(start, span.end - (3 if name.lower().endswith(".md") else 0))
    return Subject(entry.source, entry.entry_id, span, way, is_own=False)


def heading_span(page: Page, entry: Entry) -> Span | None:
    """Return where the words of the heading that opens an entry stand."""
    body = page.body(entry)
    title = first_heading(body)
    if not title:
        return None
    start = page.text.find(title, entry.body.start)
    return Span(start, start + len(title)) if start >= 0 else None


def find_mentions(page: Page, entry: StoredEntry, catalog: Catalog) -> Iterator[Span]:
    """Yield where a page links to an entry."""
    for link in find_wikilinks(page.text):
        if catalog.resolve(link.target) == entry:
            yield link.whole
    for one in page.document.entries:
        if one.has_frontmatter and any(catalog.resolve(link.to) == entry for link in one.links):
            block = yaml_span(page.text, one)
            for named in dict.fromkeys(link.to for link in one.links if catalog.resolve(link.to) == entry):
                start = page.text.find(named, block.start, block.end)
                if start >= 0:
                    yield Span(start, start + len(named))


def list_symbols(page: Page) -> list[DocumentSymbol]:
    """Return the entries of a page, each with the headings inside of it."""
    ruler, found = page.ruler, []
    entries = page.document.entries
    for entry in entries:
        body = page.body(entry)
        title = display_title(entry, body, page.path, is_only=len(entries) == 1)
        own = ruler.range(Span(entry.span.start, entry.span.end))
        detail = f"{entry.kind}, {entry.status}" if entry.has_frontmatter else None
        symbol = DocumentSymbol(
            title or "entry",
            _KINDS.get(entry.kind, SymbolKind.String),
            own,
            ruler.range(page.place_of(entry.id)),
            detail=detail,
        )
        symbol.children = list(_headings(page, entry))
        found.append(symbol)
    return found


def _headings(page: Page, entry: Entry) -> Iterator[DocumentSymbol]:
    place = entry.body.start
    for line in without_code(page.body(entry)).splitlines(keepends=True):
        words = line.lstrip("#")
        level = len(line) - len(words)
        if 0 < level <= 6 and words[:1] in (" ", "\t") and words.strip():
            at = page.ruler.range(Span(place, place + len(line.rstrip("\r\n"))))
            yield DocumentSymbol(words.strip().rstrip("#").strip() or "heading", SymbolKind.String, at, at)
        place += len(line)
