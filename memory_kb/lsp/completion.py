"""Find what is being written at a place of a note, and complete it: links, tags, fields and their values."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from itertools import islice
from typing import NamedTuple
from urllib.parse import unquote

from lsprotocol import types as lsp
from lsprotocol.types import CompletionItemKind as Kind

from memory_kb.index.editor_catalog import UNFIT, Suggested
from memory_kb.lsp.open_notes import Page, find_yaml
from memory_kb.markdown.fields import FIELDS
from memory_kb.markdown.headings import find_headings, heading_address
from memory_kb.markdown.links import escape_address, without_code
from memory_kb.markdown.splice import emit
from memory_kb.model import Span, StoredEntry
from memory_kb.terms import MARKS

#: The most completions that are offered.
MOST = 100
#: Values that name other entries by their ids.
_ID_FIELDS = ("links.to", "sources", "relevant_patterns")
#: The id of a block, at the end of its line.
_BLOCK_ID = re.compile(r"(?:^|[ \t])(\^[A-Za-z0-9-]+)[ \t]*$", re.MULTILINE)
#: The kinds of callouts of Obsidian, those of alerts on GitHub among them.
_CALLOUTS = "note tip important warning caution info abstract todo success question failure danger bug example quote"


class Known(NamedTuple):
    """What the vault has for a place: names or tags that go with its word, and the text of the note that a link names."""

    suggested: Sequence[Suggested] = ()
    text: str = ""


class _Offer(NamedTuple):
    """What can be put in at a place; `find` is what it is found by, its label where that is empty."""

    label: str
    text: str
    kind: Kind
    find: str = ""
    entry: StoredEntry | None = None
    about: str | None = None


def complete_at(page: Page, spot: Spot, known: Known, today: date) -> lsp.CompletionList:
    """Return the completions for a place, best first."""
    makers: Mapping[str, Callable[[], Iterator[_Offer]]] = {
        "link": lambda: _links(page, spot, known),
        "anchor": lambda: _anchors(page, spot, known.text),
        "path": lambda: _paths(page, spot, known),
        "part": lambda: _parts(spot, known.text),
        "tag": lambda: _words([one.label for one in known.suggested], Kind.Keyword),
        "callout": lambda: _callouts(page, spot),
        "name": lambda: _names(page, spot),
        "value": lambda: _values(page, spot, known, today),
    }
    offers = islice(makers[spot.kind](), MOST) if spot.kind else ()
    place = page.ruler.range(spot.span)
    items = [_item(place, number, offer) for number, offer in enumerate(offers)]
    return lsp.CompletionList(is_incomplete=len(items) >= MOST or spot.kind in ("link", "path", "tag"), items=items)


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


def _links(page: Page, spot: Spot, known: Known) -> Iterator[_Offer]:
    """Yield links that other readers of notes follow too, and that show the name that was chosen."""
    is_closed = page.text.startswith(("]]", "|", "#"), spot.span.end)
    is_embed = page.text[: spot.span.start].rstrip(" ").endswith("![[")
    for label, name, entry in known.suggested:
        is_shown = is_closed or is_embed or label.casefold() in (name.casefold(), name.rpartition("/")[2].casefold())
        shown = "" if is_shown else f"|{''.join(sign for sign in label if sign not in UNFIT).strip()}"
        text = f"{name}{shown}{'' if is_closed else ']]'}"
        yield _Offer(label, text, Kind.Reference, f"{label} {entry.id if entry else ''} {spot.word}", entry)


def _anchors(page: Page, spot: Spot, text: str) -> Iterator[_Offer]:
    names = [*(heading.words for heading in find_headings(text)), *_BLOCK_ID.findall(text)]
    closing = "" if page.text.startswith(("]]", "|"), spot.span.end) else "]]"
    for name in dict.fromkeys(names):
        if spot.word.casefold() in name.casefold():
            yield _Offer(name, f"{name}{closing}", Kind.Text)


def _paths(page: Page, spot: Spot, known: Known) -> Iterator[_Offer]:
    """Yield notes as paths relative to the folder of the page."""
    folder = posixpath.dirname(page.path)
    found = {one.entry.path: one for one in reversed(known.suggested) if one.entry}
    for entry_path, one in reversed(found.items()):
        if not entry_path.startswith(("/", "~")):
            path = escape_address(posixpath.relpath(entry_path, folder or "."))
            yield _Offer(one.label, path, Kind.File, f"{spot.word} {path} {one.label}", one.entry)


def _parts(spot: Spot, text: str) -> Iterator[_Offer]:
    """Yield the headings of a Markdown link's note, written as GitHub names them."""
    for heading in find_headings(text):
        name = heading_address(heading.words)
        if spot.word.casefold() in name:
            yield _Offer(heading.words, name, Kind.Text, f"{name} {heading.words}")


def _words(words: Sequence[str], kind: Kind) -> Iterator[_Offer]:
    return (_Offer(word, word, kind) for word in words)


def _callouts(page: Page, spot: Spot) -> Iterator[_Offer]:
    closing = "" if page.text.startswith("]", spot.span.end) else "] "
    names = (one for one in _CALLOUTS.split() if one.startswith(spot.word.lower()))
    return (_Offer(name, name + closing, Kind.EnumMember) for name in names)


def _names(page: Page, spot: Spot) -> Iterator[_Offer]:
    """Yield the fields that the block does not have yet."""
    before, after = page.text[spot.block.start : spot.span.start], page.text[spot.span.end : spot.block.end]
    present = {found[1] for line in f"{before}\n{after}".split("\n") if (found := _FIELD.match(line))}
    has_colon = after.partition("\n")[0].lstrip().startswith(":")
    for name, field in FIELDS.items():
        if name not in present and spot.word.casefold() in name:
            yield _Offer(name, name if has_colon else f"{name}: ", Kind.Property, about=field.about)


def _values(page: Page, spot: Spot, known: Known, today: date) -> Iterator[_Offer]:
    field = FIELDS.get(spot.field.partition(".")[0])
    quote = "" if page.text[: spot.span.start].endswith(("'", '"')) else "'"
    if spot.field in _ID_FIELDS:
        for one in {(one.entry.path, one.entry.line): one for one in reversed(known.suggested) if one.entry}.values():
            entry = one.entry
            assert entry
            has_id = spot.field != "links.to" or not quote or '"id"' in (entry.metadata or "")
            name = entry.id if has_id else one.text
            text = emit(name, is_flow=True) if quote else name
            yield _Offer(entry.title, text, Kind.Reference, f"{entry.title} {entry.id} {spot.word}", entry)
    elif spot.field == "links.":
        yield from _words(["to: ", "relation: "], Kind.Property)
    elif spot.field == "tags":
        yield from _words([one.label for one in known.suggested], Kind.Keyword)
    elif field is None or spot.field.count(".") > (spot.field == "links.relation"):
        return
    elif field.form == "flag":
        yield from _words(["true", "false"], Kind.Value)
    elif field.form == "day" or spot.field in ("date", "valid_until", "reviewed"):
        yield from _words([f"{quote}{today.isoformat()}{quote}"], Kind.Value)
    elif spot.field != "links":
        yield from _words([one for one in field.choices if spot.word.casefold() in one], Kind.EnumMember)


_NAME, _VALUE = re.compile(r"[\w-]*"), re.compile(r"[\w./*-]*")
_FIELD = re.compile(r"[\"']?([\w-]+)[\"']?[ \t]*:(?:[ \t]+|$)")
#: What is before a value: the line up to the last sign that one may begin behind, and in its group a key.
_BEFORE_VALUE = re.compile(r"(?:.*[\[{,]|[ \t]*-(?=[ \t])|)[ \t]*(?:[\"']?([\w-]+)[\"']?[ \t]*:[ \t]+)?[\"']?")
_LINK = re.compile(r"\[\[([^\[\]\n]*)\Z")
_CALLOUT = re.compile(r"[ \t]*>[> \t]*\[!([a-zA-Z-]*)\Z")
_MARKDOWN_LINK = re.compile(r"\]\((<?)([^()<>\n]*)\Z")
_TAG = re.compile(rf"(?:(?<=[\s(])|^)#([\w{MARKS}/-]*)\Z", re.MULTILINE)


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

    @property
    def asks(self) -> str:
        """What it needs to know of the vault: `names`, `tags`, the `text` of a note, or ""."""
        if self.kind == "tag" or (self.kind, self.field) == ("value", "tags"):
            return "tags"
        if self.kind in ("link", "path") or (self.kind == "value" and self.field in _ID_FIELDS):
            return "names"
        return "text" if self.kind in ("anchor", "part") else ""


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
    block = next((one for one in find_yaml(text) if one.start <= offset <= one.end), None)
    if block:
        return _in_block(text, offset, block)
    path = _MARKDOWN_LINK.search(before)
    if path and without_code(text)[start + path.start()] == "]":
        return _in_markdown_link(text, offset, start + path.start(2), path[2])
    callout = _CALLOUT.match(before)
    if callout and without_code(text)[start + callout.start(1) - 1] == "!":
        return Spot("callout", callout[1], Span(start + callout.start(1), offset))
    tag = _TAG.search(before)
    if tag and (tag[1] or tag.start() > 0) and without_code(text)[start + tag.start()] == "#":
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
    if _NAME.fullmatch(line):
        return Spot("name", line, Span(start, _end_of(_NAME, text, offset)), block=block)
    fields = [found[1] for one in text[block.start : offset].split("\n") if (found := _FIELD.match(one))]
    before = _BEFORE_VALUE.match(line)
    if not fields or not before:
        return Spot("", "", Span(offset, offset), block=block)
    field, key = fields[-1], before[1]
    if key and key != field:
        field = f"{field}.{key}"
    elif not key and field == "links":
        field = "links." if line.rfind("{") > line.rfind("}") else "links.to"
    return Spot("value", line[before.end() :], Span(start + before.end(), _end_of(_VALUE, text, offset)), field)


def _end_of(word: re.Pattern[str], text: str, offset: int) -> int:
    found = word.match(text, offset)
    return found.end() if found else offset
