"""JSON files of other programs, changed by splices: comments, order, indents and line ends stay as they are.

A text is masked first: comments and commas before a closing bracket become blanks of the same
length, so that what is left is strict JSON in which every offset is that of the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from memory_kb.errors import CannotSplice

Key = str | int
Path = tuple[Key, ...]

_LEXEME = re.compile(r'"(?:[^"\\]|\\.)*"|//[^\r\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=[ \t\r\n]*[}\]])', re.DOTALL)
_BLANK = re.compile(r"[ \t\r\n]*")
_REST_OF_LINE = re.compile(r"[ \t]*(?://[^\r\n]*|(?:/\*[^\r\n]*?\*/[ \t]*)+(?=[\r\n]|$))")
_MARK = "\ufeff"


class Slot(NamedTuple):
    """A member of an object, or an item of an array, and where it stands in the text."""

    key: Key
    start: int
    value_start: int
    end: int


class Insertion(NamedTuple):
    """Text that was put at an offset of the text as it is then."""

    at: int
    text: str


def mask(text: str) -> str:
    """Return strict JSON of the same length.

    Example:
        >>> mask('{"a//": 1, /* b */}')
        '{"a//": 1         }'
    """
    plain = _LEXEME.sub(lambda found: found[0] if found[0][0] == '"' else re.sub(r"[^\r\n]", " ", found[0]), text)
    plain = _LAST_COMMA.sub(lambda found: found[0] if found[0][0] == '"' else " ", plain)
    return " " + plain[1:] if plain.startswith(_MARK) else plain


def parse(name: str, text: str) -> Any:
    """Return what a text says, comments aside; an empty one says `{}`.

    Raises:
        CannotSplice: it is not JSON; the sentence names the line.
    """
    return _Document(name, text).value


def insert(name: str, text: str, path: Path, value: Any) -> tuple[str, tuple[Insertion, ...]]:
    """Put a value at a path: a new member of an object, or behind the last item where the path ends in -1.

    Objects and the array on the way are made where they are missing. Returns the text, and what
    was put in, in the order in which it was.

    Raises:
        CannotSplice: the text is not JSON, or something else stands on the way.

    Example:
        >>> insert("x.json", '{\\n  "a": 1 // one\\n}\\n', ("b",), {"c": [2]})[0]
        '{\\n  "a": 1, // one\\n  "b": {\\n    "c": [\\n      2\\n    ]\\n  }\\n}\\n'
    """
    document = _Document(name, text)
    if document.is_blank:
        made = _render(_nest(path, value), 0, _Style("  ", "\n"))
        return f"{text}{made}\n", (Insertion(len(text), f"{made}\n"),)
    start, depth = document.root, 0
    while path[1:]:
        inner = document.find(start, path[0])
        if inner is None:
            break
        start, path, depth = inner.value_start, path[1:], depth + 1
    document.require(start, path[0])
    done: list[Insertion] = []
    for offset, piece in reversed(document.place(start, depth, path[0], _nest(path[1:], value))):
        text = text[:offset] + piece + text[offset:]
        done.append(Insertion(offset, piece))
    return text, tuple(done)


def remove(name: str, text: str, path: Path) -> str:
    """Take a member or an item out, with the comma that it leaves over and the line it stood on.

    Raises:
        CannotSplice: the text is not JSON.

    Example:
        >>> remove("x.json", '{\\n  "a": 1,\\n  "b": 2\\n}\\n', ("b",))
        '{\\n  "a": 1\\n}\\n'
    """
    document = _Document(name, text)
    slots, number = document.locate(path)
    slot = slots[number]
    begin = slot.start
    while begin and text[begin - 1] in " \t":
        begin -= 1
    if begin and text[begin - 1] == "\n":
        begin -= 2 if text[begin - 2 : begin] == "\r\n" else 1
    else:
        begin = slot.start
    comma = document.comma_after(slot.end)
    if comma is not None:
        if begin == slot.start:
            after = _BLANK.match(text, comma + 1)
            return text[:begin] + text[after.end() if after and number + 1 < len(slots) else comma + 1 :]
        return text[:begin] + text[slot.end : comma].strip(" \t") + text[comma + 1 :]
    if number == 0:
        return text[:begin] + text[slot.end :]
    before = document.comma_after(slots[number - 1].end)
    assert before is not None
    if begin == slot.start:
        begin = before + 1 if not text[before + 1 : begin].strip() else begin
    return text[:before] + text[before + 1 : begin] + text[slot.end :]


class _Style(NamedTuple):
    indent: str
    newline: str


def _nest(path: Path, value: Any) -> Any:
    for key in reversed(path):
        value = [value] if key == -1 else {key: value}
    return value


def _render(value: Any, depth: int, style: _Style | None) -> str:
    """Return a value as JSON, its first line without an indent; on one line without a style."""
    if style is None:
        return json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, ensure_ascii=False, indent=style.indent).split("\n")
    return f"{style.newline}{style.indent * depth}".join(lines)


class _Document:
    """A text that is about to be spliced."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text, self.plain = name, text, mask(text)
        self.is_blank = not self.plain.strip()
        try:
            self.value = {} if self.is_blank else json.loads(self.plain)
        except json.JSONDecodeError as exc:
            raise CannotSplice(f"{name}:{exc.lineno}: this is not JSON: {exc.msg}") from exc
        except RecursionError as exc:
            raise CannotSplice(f"{name}: this is nested too deeply to be read") from exc
        self.root = self._skip(0)
        if not isinstance(self.value, dict):
            raise CannotSplice(f"{name}:1: this is JSON but no object")

    def _skip(self, offset: int) -> int:
        found = _BLANK.match(self.plain, offset)
        assert found
        return found.end()

    def slots(self, start: int) -> list[Slot]:
        """Return what an object or array holds; of a scalar nothing."""
        opening = self.plain[start]
        if opening not in "{[":
            return []
        found: list[Slot] = []
        offset = self._skip(start + 1)
        while self.plain[offset] not in "}]":
            begin, key = offset, len(found)
            name: Key = key
            if opening == "{":
                name, offset = _DECODER.raw_decode(self.plain, offset)
                offset = self._skip(self._skip(offset) + 1)
            value = offset
            _, offset = _DECODER.raw_decode(self.plain, value)
            found.append(Slot(name, begin, value, offset))
            offset = self._skip(offset)
            if self.plain[offset] == ",":
                offset = self._skip(offset + 1)
        return found

    def find(self, start: int, key: Key) -> Slot | None:
        """Return the member with a key; of several the last, which is the one that counts."""
        if self.plain[start] != "{" or key == -1:
            return None
        return next((slot for slot in reversed(self.slots(start)) if slot.key == key), None)

    def locate(self, path: Path) -> tuple[list[Slot], int]:
        """Return the members beside the one at a path, and its number among them."""
        start, slots, number = self.root, list[Slot](), 0
        for key in path:
            slots = self.slots(start)
            number = next(number for number in range(len(slots) - 1, -1, -1) if slots[number].key == key)
            start = slots[number].value_start
        return slots, number

    def require(self, start: int, key: Key) -> None:
        """Raise unless what stands here can take the key."""
        wanted, kind = ("[", "a list") if key == -1 else ("{", "an object")
        if self.plain[start] != wanted:
            line = self.text.count("\n", 0, start) + 1
            raise CannotSplice(f"{self.name}:{line}: {kind} was expected here")

    def comma_after(self, offset: int) -> int | None:
        """Return where the comma behind a value is, were it only one before a closing bracket."""
        while offset < len(self.text):
            found = _LEXEME.match(self.text, offset)
            if found and found[0][0] == "/":
                offset = found.end()
            elif self.text[offset] == ",":
                return offset
            elif self.text[offset] in " \t\r\n":
                offset += 1
            else:
                return None
        return None

    def place(self, start: int, depth: int, key: Key, value: Any) -> list[tuple[int, str]]:
        """Return what to put where so that an object or array ends in a new value, in the style around it."""
        slots = self.slots(start)
        _, end = _DECODER.raw_decode(self.plain, start)
        newline = "\r\n" if "\r\n" in self.text else "\n"
        label = "" if key == -1 else f"{json.dumps(key, ensure_ascii=False)}: "
        is_inline = bool(slots) and "\n" not in self.text[start:end]
        style = None if is_inline else _Style(self._indent(), newline)
        item = label + _render(value, depth + 1, style)
        if not slots:
            pad = "" if "\n" in self.text[start:end] else f"{newline}{self._indent() * depth}"
            return [(start + 1, f"{newline}{self._indent() * (depth + 1)}{item}{pad}")]
        last = slots[-1].end
        comma = self.comma_after(last)
        if is_inline:
            behind = last if comma is None else comma + 1
            gap = " " if comma is None or self.text[comma + 1 : comma + 2] != " " else ""
            return [(behind, f"{',' if comma is None else ''}{gap}{item}")]
        behind = last if comma is None else comma + 1
        note = _REST_OF_LINE.match(self.text, behind)
        pieces = [(note.end() if note else behind, f"{newline}{self._lead(slots[-1].start, depth)}{item}")]
        return pieces if comma is not None else [(last, ","), *pieces] if note else [(last, f",{pieces[0][1]}")]

    def _lead(self, start: int, depth: int) -> str:
        """Return the blanks before a value that begins its line."""
        lead = self.text[self.text.rfind("\n", 0, start) + 1 : start]
        return lead if not lead.strip() else self._indent() * (depth + 1)

    def _indent(self) -> str:
        """Return the indent of the first member of the whole; two blanks where none tells."""
        first = next(iter(self.slots(self.root)), None)
        if first is None:
            return "  "
        lead = self.text[self.text.rfind("\n", 0, first.start) + 1 : first.start]
        return lead if lead and not lead.strip() else "  "


_DECODER = json.JSONDecoder()


def same(left: Any, right: Any) -> bool:
    """Tell whether two values are the same JSON.

    Example:
        >>> same({"a": [1, True]}, {"a": [1, 1]})
        False
    """
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def get(value: Any, path: Sequence[Key]) -> Any:
    """Return what stands at a path of a parsed document, or None.

    Example:
        >>> get({"a": [{"b": 1}]}, ("a", 0, "b")), get({}, ("a",))
        (1, None)
    """
    for key in path:
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and isinstance(key, int) and 0 <= key < len(value):
            value = value[key]
        else:
            return None
    return value
