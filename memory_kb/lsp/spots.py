"""What stands at a place of a note: a field, its value, a link, a tag."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memory_kb.entry import Span
from memory_kb.notes.wikilinks import without_code

_RULE = re.compile(r"^---[ \t]*\r?$", re.MULTILINE)
_KEY_LINE = re.compile(r"[\"']?[\w-]+[\"']?[ \t]*:(?:[ \t]|\r?$)", re.MULTILINE)
_NAME = re.compile(r"([\w-]*)\Z")
_FIELD = re.compile(r"[\"']?([\w-]+)[\"']?[ \t]*:[ \t]*")
_ITEM = re.compile(r"[ \t]*(?:-[ \t]+)*")
_LINK = re.compile(r"\[\[([^\[\]\n]*)\Z")
_TAG = re.compile(r"(?:(?<=[\s(])|^)#([\w/-]*)\Z", re.MULTILINE)


class Spot(NamedTuple):
    """What stands at a place.

    Attributes:
        kind: `name` or `value` of a field, `link`, `anchor` within a linked note, `tag`, or "" for
            plain text.
        word: what stands there up to the place.
        span: what a completion takes the place of.
        field: the field whose value it is, `links.to` and the like within its objects.
        target: the note of an `anchor`.
        block: the frontmatter that it is in.
    """

    kind: str
    word: str
    span: Span
    field: str = ""
    target: str = ""
    block: Span = Span(0, 0)


def find_spot(text: str, offset: int) -> Spot:
    """Return what stands at a character of a text.

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
    if link:
        return _in_link(text, offset, start + link.start(1), link[1])
    block = next((one for one in blocks(text) if one.start <= offset <= one.end), None)
    if block:
        return _in_block(text, offset, block)
    tag = _TAG.search(before)
    if tag and (tag[1] or start + tag.start() > start) and without_code(text)[start + tag.start()] == "#":
        return Spot("tag", tag[1], Span(start + tag.start(1), offset))
    return Spot("", "", Span(offset, offset))


def _in_link(text: str, offset: int, start: int, word: str) -> Spot:
    if "|" in word:
        return Spot("", "", Span(offset, offset))
    rest = re.compile(r"[^\[\]|#\n]*(?=\]\]|[|#])").match(text, offset)
    end = rest.end() if rest else offset
    target, mark, anchor = word.partition("#")
    if mark:
        return Spot("anchor", anchor, Span(start + len(target) + 1, end), target=target.strip())
    return Spot("link", word.lstrip(), Span(start + len(word) - len(word.lstrip()), end))


def blocks(text: str) -> Iterator[Span]:
    """Yield where frontmatter stands, that which is still being written too.

    Example:
        >>> note = "---\\nki\\n---\\nText.\\n\\n---\\nid: b\\n"
        >>> [note[one.start : one.end] for one in blocks(note)]
        ['ki\\n', 'id: b\\n']
    """
    opened: int | None = None
    bare = without_code(text)
    for rule in _RULE.finditer(bare):
        end = min(rule.end() + 1, len(text))
        if opened is not None:
            yield Span(opened, rule.start())
            opened = None
            continue
        above = text[: rule.start()]
        is_head = not above.strip(" \t\r\n\ufeff")
        if is_head or (re.search(r"\n[ \t]*\r?\n\Z", above) and _KEY_LINE.match(text, end)):
            opened = end
    if opened is not None:
        stop = re.compile(r"\n[ \t]*\r?\n").search(text, max(0, opened - 1))
        yield Span(opened, stop.start() + 1 if stop else len(text))


def _in_block(text: str, offset: int, block: Span) -> Spot:
    start = max(text.rfind("\n", 0, offset) + 1, block.start)
    line = text[start:offset]
    field = _FIELD.match(line)
    if field and not line[0].isspace():
        return _in_value(text, offset, block, field[1], start + field.end())
    item = _ITEM.match(line)
    indent = len(item[0]) if item else 0
    if indent == 0:
        name = _NAME.search(line)
        if name and name.start() == 0:
            end = re.compile(r"[\w-]*").match(text, offset)
            return Spot("name", name[1], Span(start, end.end() if end else offset), block=block)
        return Spot("", "", Span(offset, offset), block=block)
    parent = next((found[1] for found in _parents(text, block, start)), "")
    inner = _FIELD.match(line, indent)
    if inner:
        return _plain(text, offset, block, f"{parent}.{inner[1]}", start + inner.end())
    if parent == "links" and re.fullmatch(r"[\w-]*", line[indent:]):
        return _plain(text, offset, block, "links.to", start + indent)
    return _plain(text, offset, block, parent, start + indent)


def _parents(text: str, block: Span, start: int) -> Iterator[re.Match[str]]:
    """Yield the fields above a line, the nearest first."""
    for line in reversed(text[block.start : start].split("\n")):
        found = _FIELD.match(line)
        if found and not line[:1].isspace():
            yield found


def _in_value(text: str, offset: int, block: Span, field: str, start: int) -> Spot:
    """Return what stands in a value that is on the line of its field, in a list or an object there."""
    held = text[start:offset]
    if not held.startswith(("[", "{")):
        comma = held.rfind(",") + 1 if field in ("tags", "applies_to", "aliases", "sources", "flags") else 0
        return _plain(text, offset, block, field, start + comma + len(held[comma:]) - len(held[comma:].lstrip()))
    cut = max(held.rfind(sign) for sign in "[{,") + 1
    piece = held[cut:]
    lead = len(piece) - len(piece.lstrip())
    inner = _FIELD.match(piece, lead)
    if inner:
        return _plain(text, offset, block, f"{field}.{inner[1]}", start + cut + inner.end())
    if held.rfind("{") > held.rfind("}"):
        return _plain(text, offset, block, f"{field}.", start + cut + lead)
    return _plain(text, offset, block, field, start + cut + lead)


def _plain(text: str, offset: int, block: Span, field: str, start: int) -> Spot:
    start += text[start:offset].startswith(("'", '"'))
    end = re.compile(r"[\w./*-]*").match(text, offset)
    return Spot("value", text[start:offset], Span(min(start, offset), end.end() if end else offset), field, block=block)
