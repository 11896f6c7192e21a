"""Complete names in links, fields and values in frontmatter, and tags."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from itertools import islice

from lsprotocol.types import CompletionItem, CompletionItemKind, CompletionItemLabelDetails, CompletionList, TextEdit

from memory_kb.index.catalog import UNFIT, Catalog, find_names
from memory_kb.lsp.places import Page, Spot, find_spot
from memory_kb.markdown.fields import FIELDS
from memory_kb.markdown.links import escape_address, find_block_ids
from memory_kb.markdown.scanner import find_headings, heading_address
from memory_kb.markdown.splice import emit
from memory_kb.model import Span, StoredEntry
from memory_kb.yaml_loader import InvalidBlock, load_mapping

_MOST = 100
#: Values that name other entries by their ids.
_ID_FIELDS = ("links.to", "sources", "relevant_patterns")
_LINK_KEYS = ("to", "relation")

ReadText = Callable[[str], str]


def complete(page: Page, offset: int, catalog: Catalog, read: ReadText, today: date) -> CompletionList:
    """Return the completions for a place, best first.

    Args:
        page: the note.
        offset: the place in its text.
        catalog: what links may lead to.
        read: gives the text of a note by its path.
        today: the day.
    """
    spot = find_spot(page.text, offset)
    makers: Mapping[str, Callable[[], Iterator[CompletionItem]]] = {
        "link": lambda: _links(page, spot, catalog),
        "anchor": lambda: _anchors(page, spot, catalog, read),
        "path": lambda: _paths(page, spot, catalog),
        "part": lambda: _parts(page, spot, catalog, read),
        "tag": lambda: _words(page, spot, _tags(catalog, spot.word), CompletionItemKind.Keyword),
        "callout": lambda: _callouts(page, spot),
        "name": lambda: _names(page, spot),
        "value": lambda: _values(page, spot, catalog, today),
    }
    items = list(islice(makers[spot.kind](), _MOST)) if spot.kind else []
    return CompletionList(is_incomplete=len(items) >= _MOST or spot.kind in ("link", "path", "tag"), items=items)


def find_entries(catalog: Catalog, word: str) -> list[StoredEntry]:
    """Return the entries that any name goes with a word, each once."""
    return list(
        {(called.entry.source, called.entry.line): called.entry for called in find_names(catalog, word, _MOST)}.values()
    )


def _links(page: Page, spot: Spot, catalog: Catalog) -> Iterator[CompletionItem]:
    """Yield links that other readers of notes follow too, and that show the name that was chosen."""
    is_closed = page.text.startswith(("]]", "|", "#"), spot.span.end)
    is_embed = page.text[: spot.span.start].rstrip(" ").endswith("![[")
    for number, (label, _, entry) in enumerate(find_names(catalog, spot.word, _MOST)):
        name = catalog.link_name(entry)
        is_shown = is_closed or is_embed or label.casefold() in (name.casefold(), name.rpartition("/")[2].casefold())
        shown = "" if is_shown else f"|{''.join(sign for sign in label if sign not in UNFIT).strip()}"
        text = f"{name}{shown}{'' if is_closed else ']]'}"
        yield _item(
            page,
            spot.span,
            label,
            text,
            number,
            CompletionItemKind.Reference,
            entry,
            f"{label} {entry.entry_id} {spot.word}",
        )


def _anchors(page: Page, spot: Spot, catalog: Catalog, read: ReadText) -> Iterator[CompletionItem]:
    entry = catalog.resolve(spot.target, page.path) if spot.target else None
    if spot.target and entry is None:
        return
    text = read(entry.source) if entry else page.text
    names = [*(heading.words for heading in find_headings(text)), *(f"^{block}" for block in find_block_ids(text))]
    closing = "" if page.text.startswith(("]]", "|"), spot.span.end) else "]]"
    for number, name in enumerate(dict.fromkeys(names)):
        if spot.word.casefold() in name.casefold():
            yield _item(page, spot.span, name, f"{name}{closing}", number, CompletionItemKind.Text, None, name)


def _paths(page: Page, spot: Spot, catalog: Catalog) -> Iterator[CompletionItem]:
    """Yield notes as paths relative to the folder of the page."""
    folder, seen = posixpath.dirname(page.path), set[str]()
    typed = spot.word.rpartition("/")[2].removesuffix(".md")
    for number, (label, _, entry) in enumerate(find_names(catalog, typed, _MOST)):
        if entry.source in seen or entry.source.startswith(("/", "~")):
            continue
        seen.add(entry.source)
        path = escape_address(posixpath.relpath(entry.source, folder or "."))
        yield _item(page, spot.span, label, path, number, CompletionItemKind.File, entry, f"{spot.word} {path} {label}")


def _parts(page: Page, spot: Spot, catalog: Catalog, read: ReadText) -> Iterator[CompletionItem]:
    """Yield the headings of a Markdown link's note, written as GitHub names them."""
    entry = catalog.resolve(spot.target, page.path) if spot.target else None
    if spot.target and entry is None:
        return
    for number, heading in enumerate(find_headings(read(entry.source) if entry else page.text)):
        name = heading_address(heading.words)
        if spot.word.casefold() in name:
            yield _item(
                page, spot.span, heading.words, name, number, CompletionItemKind.Text, None, f"{name} {heading.words}"
            )


def _tags(catalog: Catalog, word: str) -> list[str]:
    wanted = word.casefold()
    # What is being written is a tag of this note already, and of no other.
    fitting = [tag for tag in catalog.tags if wanted in tag.casefold() and (tag != word or catalog.tags[tag] > 1)]
    return sorted(fitting, key=lambda tag: (not tag.casefold().startswith(wanted), -catalog.tags[tag], tag))


def _words(page: Page, spot: Spot, words: Sequence[str], kind: CompletionItemKind) -> Iterator[CompletionItem]:
    for number, word in enumerate(words):
        yield _item(page, spot.span, word, word, number, kind, None, word)


#: The kinds of callouts of Obsidian, those of alerts on GitHub among them.
_CALLOUTS = [
    "note",
    "tip",
    "important",
    "warning",
    "caution",
    "info",
    "abstract",
    "todo",
    "success",
    "question",
    "failure",
    "danger",
    "bug",
    "example",
    "quote",
]


def _callouts(page: Page, spot: Spot) -> Iterator[CompletionItem]:
    closing = "" if page.text.startswith("]", spot.span.end) else "] "
    for number, name in enumerate(one for one in _CALLOUTS if one.startswith(spot.word.lower())):
        yield _item(page, spot.span, name, name + closing, number, CompletionItemKind.EnumMember, None, name)


def _names(page: Page, spot: Spot) -> Iterator[CompletionItem]:
    present = _present(page.text, spot)
    line_end = page.text.find("\n", spot.span.end)
    rest = page.text[spot.span.end : len(page.text) if line_end < 0 else line_end]
    for number, (name, field) in enumerate(FIELDS.items()):
        if name not in present and spot.word.casefold() in name:
            text = name if rest.lstrip().startswith(":") else f"{name}: "
            item = _item(page, spot.span, name, text, number, CompletionItemKind.Property, None, name)
            item.documentation = field.about
            yield item


def _present(text: str, spot: Spot) -> frozenset[str]:
    """Return the fields that a block has already, the line that is being written aside."""
    start = text.rfind("\n", 0, spot.span.start) + 1
    end = text.find("\n", spot.span.end)
    others = (
        text[spot.block.start : start]
        + text[spot.block.end if end < 0 else min(end + 1, spot.block.end) : spot.block.end]
    )
    try:
        return frozenset(load_mapping(others))
    except InvalidBlock:
        return frozenset(
            line.partition(":")[0].strip() for line in others.splitlines() if ":" in line and not line[:1].isspace()
        )


def _values(page: Page, spot: Spot, catalog: Catalog, today: date) -> Iterator[CompletionItem]:
    field = FIELDS.get(spot.field.partition(".")[0])
    if spot.field in _ID_FIELDS:
        is_quoted = page.text[: spot.span.start].endswith(("'", '"'))
        for number, entry in enumerate(find_entries(catalog, spot.word)):
            filter_text = f"{entry.title} {entry.entry_id} {spot.word}"
            has_id = spot.field != "links.to" or is_quoted or '"id"' in (entry.metadata or "")
            name = entry.entry_id if has_id else catalog.link_name(entry)
            text = name if is_quoted else emit(name, is_flow=True)
            yield _item(page, spot.span, entry.title, text, number, CompletionItemKind.Reference, entry, filter_text)
    elif spot.field == "links.":
        yield from _words(page, spot, [f"{key}: " for key in _LINK_KEYS], CompletionItemKind.Property)
    elif spot.field == "tags":
        yield from _words(page, spot, _tags(catalog, spot.word), CompletionItemKind.Keyword)
    elif field is None or spot.field.count(".") > (spot.field == "links.relation"):
        return
    elif field.form == "flag":
        yield from _words(page, spot, ["true", "false"], CompletionItemKind.Value)
    elif field.form == "day" or spot.field in ("date", "valid_until", "reviewed"):
        quote = "" if page.text[: spot.span.start].endswith(("'", '"')) else "'"
        yield from _words(page, spot, [f"{quote}{today.isoformat()}{quote}"], CompletionItemKind.Value)
    elif spot.field != "links":
        yield from _words(
            page, spot, [one for one in field.choices if spot.word.casefold() in one], CompletionItemKind.EnumMember
        )


def _item(
    page: Page,
    span: Span,
    label: str,
    text: str,
    number: int,
    kind: CompletionItemKind,
    entry: StoredEntry | None,
    find: str,
) -> CompletionItem:
    told = CompletionItemLabelDetails(description=f"{entry.kind}, {entry.scope}") if entry else None
    return CompletionItem(
        label=label,
        kind=kind,
        label_details=told,
        detail=f"{entry.source}:{entry.line}" if entry else None,
        sort_text=f"{number:05}",
        filter_text=find,
        text_edit=TextEdit(page.ruler.range(span), text),
    )
