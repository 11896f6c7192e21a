"""Find what is being written at a place of a note, and complete it: links, tags, fields and their values."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import islice
from typing import NamedTuple
from urllib.parse import unquote

from lsprotocol import types as lsp
from lsprotocol.types import CompletionItemKind as Kind

from memory_kb.index.editor_catalog import UNFIT, Catalog, find_names
from memory_kb.lsp.open_notes import Page, blocks
from memory_kb.markdown.fields import FIELDS
from memory_kb.markdown.headings import find_headings, heading_address
from memory_kb.markdown.links import escape_address, without_code
from memory_kb.markdown.splice import emit
from memory_kb.model import Span, StoredEntry
from memory_kb.terms import MARKS

_MOST = 100
#: Values that name other entries by their ids.
_ID_FIELDS = ("links.to", "sources", "relevant_patterns")
#: The id of a block, at the end of its line.
_BLOCK_ID = re.compile(r"(?:^|[ \t])(\^[A-Za-z0-9-]+)[ \t]*$", re.MULTILINE)

ReadText = Callable[[str], str]


class _Offer(NamedTuple):
    """What can be put in at a place; `find` is what it is found by, its label where that is empty."""

    label: str
    text: str
    kind: Kind
    find: str = ""
    entry: StoredEntry | None = None
    about: str | None = None


def complete_at(page: Page, offset: int, catalog: Catalog, read: ReadText, today: date) -> lsp.CompletionList:
    """Return the completions for a place, best first."""
    spot = find_spot(page.text, offset)
    makers: Mapping[str, Callable[[], Iterator[_Offer]]] = {
        "link": lambda: _links(page, spot, catalog),
        "anchor": lambda: _anchors(page, spot, _linked_text(page, spot, catalog, read)),
        "path": lambda: _paths(page, spot, catalog),
        "part": lambda: _parts(spot, _linked_text(page, spot, catalog, read)),
        "tag": lambda: _words(_tags(catalog, spot.word), Kind.Keyword),
        "callout": lambda: _callouts(page, spot),
        "name": lambda: _names(page, spot),
        "value": lambda: _values(page, spot, catalog, today),
    }
    offers = islice(makers[spot.kind](), _MOST) if spot.kind else ()
    place = page.ruler.range(spot.span)
    items = [_item(place, number, offer) for number, offer in enumerate(offers)]
    return lsp.CompletionList(is_incomplete=len(items) >= _MOST or spot.kind in ("link", "path", "tag"), items=items)


def _item(place: lsp.Range, number: int, offer: _Offer) -> lsp.CompletionItem:
    entry = offer.entry
    return lsp.CompletionItem(
        label=offer.label,
        kind=offer.kind,
        label_details=lsp.CompletionItemLabelDetails(description=f"{entry.kind}, {entry.scope}") if entry else None,
        detail=f"{entry.path}:{entry.line}" if entry else None,
        documentation=offer.about,
        sort_text=f"{number:05}",
        filter_text=offer.find or offer.label,
        text_edit=lsp.TextEdit(place, offer.text),
    )


def find_entries(catalog: Catalog, word: str) -> Iterable[StoredEntry]:
    """Return the entries that any name goes with a word, each once."""
    entries = (called.entry for called in find_names(catalog, word, _MOST))
    return {(entry.path, entry.line): entry for entry in entries}.values()


def _links(page: Page, spot: Spot, catalog: Catalog) -> Iterator[_Offer]:
    """Yield links that other readers of notes follow too, and that show the name that was chosen."""
    is_closed = page.text.startswith(("]]", "|", "#"), spot.span.end)
    is_embed = page.text[: spot.span.start].rstrip(" ").endswith("![[")
    for label, _, entry in find_names(catalog, spot.word, _MOST):
        name = catalog.link_name(entry)
        is_shown = is_closed or is_embed or label.casefold() in (name.casefold(), name.rpartition("/")[2].casefold())
        shown = "" if is_shown else f"|{''.join(sign for sign in label if sign not in UNFIT).strip()}"
        text = f"{name}{shown}{'' if is_closed else ']]'}"
        yield _Offer(label, text, Kind.Reference, f"{label} {entry.id} {spot.word}", entry)


def _linked_text(page: Page, spot: Spot, catalog: Catalog, read: ReadText) -> str:
    """Return the text of the note that a link names, "" if there is none; the page's own text if it names no note."""
    if not spot.target:
        return page.text
    entry = catalog.resolve(spot.target, page.path)
    return read(entry.path) if entry else ""


def _anchors(page: Page, spot: Spot, text: str) -> Iterator[_Offer]:
    names = [*(heading.words for heading in find_headings(text)), *_BLOCK_ID.findall(text)]
    closing = "" if page.text.startswith(("]]", "|"), spot.span.end) else "]]"
    for name in dict.fromkeys(names):
        if spot.word.casefold() in name.casefold():
            yield _Offer(name, f"{name}{closing}", Kind.Text)


def _paths(page: Page, spot: Spot, catalog: Catalog) -> Iterator[_Offer]:
    """Yield notes as paths relative to the folder of the page."""
    folder, seen = posixpath.dirname(page.path), set[str]()
    typed = spot.word.rpartition("/")[2].removesuffix(".md")
    for label, _, entry in find_names(catalog, typed, _MOST):
        if entry.path in seen or entry.path.startswith(("/", "~")):
            continue
        seen.add(entry.path)
        path = escape_address(posixpath.relpath(entry.path, folder or "."))
        yield _Offer(label, path, Kind.File, f"{spot.word} {path} {label}", entry)


def _parts(spot: Spot, text: str) -> Iterator[_Offer]:
    """Yield the headings of a Markdown link's note, written as GitHub names them."""
    for heading in find_headings(text):
        name = heading_address(heading.words)
        if spot.word.casefold() in name:
            yield _Offer(heading.words, name, Kind.Text, f"{name} {heading.words}")


def _tags(catalog: Catalog, word: str) -> list[str]:
    wanted = word.casefold()
    # What is being written is a tag of this note already, and of no other.
    fitting = [tag for tag in catalog.tags if wanted in tag.casefold() and (tag != word or catalog.tags[tag] > 1)]
    return sorted(fitting, key=lambda tag: (not tag.casefold().startswith(wanted), -catalog.tags[tag], tag))


def _words(words: Sequence[str], kind: Kind) -> Iterator[_Offer]:
    return (_Offer(word, word, kind) for word in words)


#: The kinds of callouts of Obsidian, those of alerts on GitHub among them.
_CALLOUTS = "note tip important warning caution info abstract todo success question failure danger bug example quote"


def _callouts(page: Page, spot: Spot) -> Iterator[_Offer]:
    closing = "" if page.text.startswith("]", spot.span.end) else "] "
    names = (one for one in _CALLOUTS.split() if one.startswith(spot.word.lower()))
    return (_Offer(name, name + closing, Kind.EnumMember) for name in names)


def _names(page: Page, spot: Spot) -> Iterator[_Offer]:
    present = _present(page.text, spot)
    rest = page.text[spot.span.end :].partition("\n")[0]
    for name, field in FIELDS.items():
        if name not in present and spot.word.casefold() in name:
            text = name if rest.lstrip().startswith(":") else f"{name}: "
            yield _Offer(name, text, Kind.Property, about=field.about)


def _present(text: str, spot: Spot) -> frozenset[str]:
    """Return the fields that a block has already, the line that is being written aside."""
    start, end = text.rfind("\n", 0, spot.span.start) + 1, text.find("\n", spot.span.end)
    end = spot.block.end if end < 0 else min(end + 1, spot.block.end)
    lines = (text[spot.block.start : start] + text[end : spot.block.end]).splitlines()
    return frozenset(line.partition(":")[0].strip("\"'") for line in lines if ":" in line and not line[:1].isspace())


def _values(page: Page, spot: Spot, catalog: Catalog, today: date) -> Iterator[_Offer]:
    field = FIELDS.get(spot.field.partition(".")[0])
    quote = "" if page.text[: spot.span.start].endswith(("'", '"')) else "'"
    if spot.field in _ID_FIELDS:
        for entry in find_entries(catalog, spot.word):
            has_id = spot.field != "links.to" or not quote or '"id"' in (entry.metadata or "")
            name = entry.id if has_id else catalog.link_name(entry)
            text = emit(name, is_flow=True) if quote else name
            yield _Offer(entry.title, text, Kind.Reference, f"{entry.title} {entry.id} {spot.word}", entry)
    elif spot.field == "links.":
        yield from _words(["to: ", "relation: "], Kind.Property)
    elif spot.field == "tags":
        yield from _words(_tags(catalog, spot.word), Kind.Keyword)
    elif field is None or spot.field.count(".") > (spot.field == "links.relation"):
        return
    elif field.form == "flag":
        yield from _words(["true", "false"], Kind.Value)
    elif field.form == "day" or spot.field in ("date", "valid_until", "reviewed"):
        yield from _words([f"{quote}{today.isoformat()}{quote}"], Kind.Value)
    elif spot.field != "links":
        yield from _words([one for one in field.choices if spot.word.casefold() in one], Kind.EnumMember)


_NAME, _VALUE = re.compile(r"[\w-]*"), re.compile(r"[\w./*-]*")
_FIELD = re.compile(r"[\"']?([\w-]+)[\"']?[ \t]*:[ \t]*")
_ITEM = re.compile(r"[ \t]*(?:-[ \t]+)*")
_LINK = re.compile(r"\[\[([^\[\]\n]*)\Z")
_CALLOUT = re.compile(r"[ \t]*>[> \t]*\[!([a-zA-Z-]*)\Z")
_MARKDOWN_LINK = re.compile(r"\]\((<?)([^()<>\n]*)\Z")
_TAG = re.compile(rf"(?:(?<=[\s(])|^)#([\w{MARKS}/-]*)\Z", re.MULTILINE)
#: The fields that hold lists, also where their words are written with commas between them alone.
_LISTS = ("tags", "applies_to", "aliases", "sources", "flags")


class Spot(NamedTuple):
    """What is being written at a place of a note.

    Attributes:
        kind: `name` or `value` of a field, `link`, `anchor` within a linked note, `path` and `part` of a
            Markdown link, `tag`, `callout`, or "" for plain text.
        word: what is there up to the place.
        span: what a completion takes the place of.
        field: the field whose value it is, `links.to` and the like within its objects.
        target: the note of an `anchor` or `part`.
        block: the frontmatter that it is in.
    """

    kind: str
    word: str
    span: Span
    field: str = ""
    target: str = ""
    block: Span = Span(0, 0)


def find_spot(text: str, offset: int) -> Spot:
    """Return what is being written at a character of a text.

    Example:
        >>> note = "---\\nkind: po\\ntags: [a, de\\n---\\nSee #ta and [[Te\\n"
        >>> [find_spot(note, note.index(part) + len(part))[:2] for part in ("po", "de", "Te", "#ta")]
        [('value', 'po'), ('value', 'de'), ('link', 'Te'), ('tag', 'ta')]
        >>> find_spot(note, note.index("kind") + 2)[:2], find_spot("Just text.", 4).kind
        (('name', 'ki'), '')
    """
    start = text.rfind("\n", 0, offset) + 1
    before = text[start:offset]
    link = _LINK.search(before)
    if link and without_code(text)[start + link.start()] == "[":
        return _in_link(text, offset, start + link.start(1), link[1])
    block = next((one for one in blocks(text) if one.start <= offset <= one.end), None)
    if block:
        return _in_block(text, offset, block)
    path = _MARKDOWN_LINK.search(before)
    if path and without_code(text)[start + path.start()] == "]":
        return _in_markdown_link(text, offset, start + path.start(2), path[2])
    callout = _CALLOUT.match(before)
    if callout and without_code(text)[start + callout.start(1) - 1] == "!":
        return Spot("callout", callout[1], Span(start + callout.start(1), offset))
    tag = _TAG.search(before)
    if tag and (tag[1] or start + tag.start() > start) and without_code(text)[start + tag.start()] == "#":
        return Spot("tag", tag[1], Span(start + tag.start(1), offset))
    return Spot("", "", Span(offset, offset))


def _in_link(text: str, offset: int, start: int, word: str) -> Spot:
    if "|" in word:
        return Spot("", "", Span(offset, offset))
    end = _end_of(re.compile(r"[^\[\]|#\n]*(?=\]\]|[|#])"), text, offset)
    target, mark, anchor = word.partition("#")
    if mark:
        return Spot("anchor", anchor, Span(start + len(target) + 1, end), target=target.strip())
    return Spot("link", word.lstrip(), Span(start + len(word) - len(word.lstrip()), end))


def _in_markdown_link(text: str, offset: int, start: int, word: str) -> Spot:
    if re.match(r"[a-z][a-z\d+.-]*:", word, re.IGNORECASE):
        return Spot("", "", Span(offset, offset))
    target, mark, anchor = word.partition("#")
    end = _end_of(re.compile(r"[^\s()<>]*(?=[)>])" if mark else r"[^\s()<>#]*(?=[)>#])"), text, offset)
    if mark:
        return Spot("part", unquote(anchor), Span(start + len(target) + 1, end), target=unquote(target))
    return Spot("path", unquote(word), Span(start, end))


def _in_block(text: str, offset: int, block: Span) -> Spot:
    start = max(text.rfind("\n", 0, offset) + 1, block.start)
    line = text[start:offset]
    top, item = _FIELD.match(line), _ITEM.match(line)
    indent = item.end() if item else 0
    if top is None and indent == 0:
        kind = "name" if _NAME.fullmatch(line) else ""
        return Spot(kind, line, Span(start, _end_of(_NAME, text, offset)), block=block)
    if top:
        field, begin = top[1], top.end()
    else:  # the last field above that is not indented
        above = text[block.start : start].split("\n")
        fields = [found[1] for one in above if not one[:1].isspace() and (found := _FIELD.match(one))]
        field, begin = fields[-1] if fields else "", indent
    held = line[begin:]
    is_flow = held.startswith(("[", "{"))
    if is_flow or (top and field in _LISTS):
        begin += max(map(held.rfind, "[{,")) + 1
    begin += len(line[begin:]) - len(line[begin:].lstrip())
    key = _FIELD.match(line, begin) if is_flow or top is None else None
    if key:
        field, begin = f"{field}.{key[1]}", key.end()
    elif held.rfind("{") > held.rfind("}"):
        field = f"{field}."
    elif field == "links" and not (top or is_flow):
        field = "links.to"
    begin += line.startswith(("'", '"'), begin)
    return Spot("value", line[begin:], Span(start + begin, _end_of(_VALUE, text, offset)), field, block=block)


def _end_of(word: re.Pattern[str], text: str, offset: int) -> int:
    found = word.match(text, offset)
    return found.end() if found else offset
