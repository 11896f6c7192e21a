"""Find what is being written at a place of a note: a link, a tag, or a field of its frontmatter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

from memory_kb.markdown.links import without_code
from memory_kb.model import Span
from memory_kb.terms import MARKS

_RULE = re.compile(r"^---[ \t]*\r?$", re.MULTILINE)
_KEY_LINE = re.compile(r"[\"']?[\w-]+[\"']?[ \t]*:(?:[ \t]|\r?$)", re.MULTILINE)
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


def blocks(text: str) -> Iterator[Span]:
    """Yield the places of frontmatter, unfinished blocks included.

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
    top, item = _FIELD.match(line), _ITEM.match(line)
    indent = item.end() if item else 0
    if top is None and indent == 0:
        kind = "name" if _NAME.fullmatch(line) else ""
        return Spot(kind, line, Span(start, _end_of(_NAME, text, offset)), block=block)
    field, begin = (top[1], top.end()) if top else (_field_above(text[block.start : start]), indent)
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


def _field_above(text: str) -> str:
    """Return the last field of some lines that is not indented."""
    fields = [found[1] for line in text.split("\n") if not line[:1].isspace() and (found := _FIELD.match(line))]
    return fields[-1] if fields else ""


def _end_of(word: re.Pattern[str], text: str, offset: int) -> int:
    found = word.match(text, offset)
    return found.end() if found else offset
