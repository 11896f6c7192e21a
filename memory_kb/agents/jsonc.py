"""Change JSON files of other programs by splices: comments, order, indents and line ends are kept.

Comments and commas before a closing bracket are blanked first: what is left is strict JSON with the offsets of the text.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from memory_kb.errors import CannotSplice

Key = str | int
Path = tuple[Key, ...]

_STRING = r'"(?:[^"\\]|\\.)*"'
_COMMENT = re.compile(_STRING + r"|//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_LAST_COMMA = re.compile(_STRING + r"|,(?=[ \t\r\n]*[}\]])", re.DOTALL)
_BLANK = re.compile(r"[ \t\r\n]*")
_NOTE = re.compile(r"[ \t]*(?://[^\r\n]*|(?:/\*[^\r\n]*?\*/[ \t]*)+(?=[\r\n]|$))")
_INDENT = re.compile(r'\s*\{\s*\n([ \t]+)"')
_DECODER = json.JSONDecoder()


class _Slot(NamedTuple):
    """A member of an object, or an item of an array, and where it is in the text."""

    key: Key
    start: int
    value: int
    end: int
    comma: int | None


def _blank(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda one: one[0] if one[0][0] == '"' else re.sub(r"[^\r\n]", " ", one[0]), text)


def mask(text: str) -> str:
    """Return strict JSON of the same length."""
    return _blank(_LAST_COMMA, _blank(_COMMENT, text.replace("\ufeff", " ", text.startswith("\ufeff"))))


def parse(name: str, text: str) -> Any:
    """Return what a text says, comments aside; an empty one says `{}`. Raise CannotSplice with the line if it is no object."""
    plain = mask(text)
    try:
        value = json.loads(plain) if plain.strip() else {}
    except json.JSONDecodeError as exc:
        raise CannotSplice(f"{name}:{exc.lineno}: this is not JSON: {exc.msg}") from exc
    except RecursionError as exc:
        raise CannotSplice(f"{name}: this is nested too deeply to be read") from exc
    if not isinstance(value, dict):
        raise CannotSplice(f"{name}:1: this is JSON but no object")
    return value


def insert(name: str, text: str, path: Path, value: Any) -> str:
    """Put a value at a path: a new member of an object, or behind the last item where the path ends in -1.

    Objects and the array on the way are made where they are missing; CannotSplice where something else is on the way.

    Example:
        >>> insert("x.json", '{\\n  "a": 1 // one\\n}\\n', ("b",), {"c": [2]})
        '{\\n  "a": 1, // one\\n  "b": {\\n    "c": [\\n      2\\n    ]\\n  }\\n}\\n'
    """
    parse(name, text)
    plain, depth = mask(text), 1
    if not plain.strip():
        return f"{text}{insert(name, '{}', path, value)}\n"
    start = _skip(plain, 0)
    while path[1:] and (inner := [slot for slot in _slots(text, start) if slot.key == path[0]]):
        start, path, depth = inner[-1].value, path[1:], depth + 1
    wanted, kind = ("[", "a list") if path[0] == -1 else ("{", "an object")
    if plain[start] != wanted:
        line = text.count("\n", 0, start) + 1
        raise CannotSplice(f"{name}:{line}: {kind} was expected here")
    for at, piece in reversed(_place(text, start, depth, path, value)):
        text = text[:at] + piece + text[at:]
    return text


def _place(text: str, start: int, depth: int, path: Path, value: Any) -> list[tuple[int, str]]:
    """Return what to put where so that an object or array ends in a new value, in the style around it."""
    for key in reversed(path[1:]):
        value = [value] if key == -1 else {key: value}
    slots, plain = _slots(text, start), mask(text)
    label = "" if path[0] == -1 else f"{json.dumps(path[0], ensure_ascii=False)}: "
    is_inline = "\n" not in text[start : _DECODER.raw_decode(plain, start)[1]]
    found = _INDENT.match(plain)
    indent, newline = found[1] if found else "  ", "\r\n" if "\r\n" in text else "\n"
    lines = json.dumps(value, ensure_ascii=False, indent=None if is_inline and slots else indent)
    item = label + lines.replace("\n", newline + indent * depth)
    if not slots:
        end = newline + indent * (depth - 1) if is_inline else ""
        return [(start + 1, f"{newline}{indent * depth}{item}{end}")]
    last, comma = slots[-1].end, slots[-1].comma
    behind = last if comma is None else comma + 1
    note = None if is_inline else _NOTE.match(text, behind)
    lead = " " if is_inline else newline + indent * depth
    return [*([(last, ",")] if comma is None else []), (note.end() if note else behind, lead + item)]


def remove(name: str, text: str, path: Path) -> str:
    """Remove a member or an item, with its comma and its line.

    Example:
        >>> remove("x.json", '{\\n  "a": 1,\\n  "b": 2\\n}\\n', ("b",))
        '{\\n  "a": 1\\n}\\n'
    """
    parse(name, text)
    start, slots, number = _skip(mask(text), 0), list[_Slot](), 0
    for key in path:
        slots = _slots(text, start)
        number = max(place for place, slot in enumerate(slots) if slot.key == key)
        start = slots[number].value
    slot = slots[number]
    before, after = text[: slot.start], text[slot.end :]
    if slot.comma is not None:
        after = text[slot.end : slot.comma] + text[slot.comma + 1 :]
    elif number:
        comma = slots[number - 1].comma or 0
        before = text[:comma] + text[comma + 1 : slot.start]
    line = before.rstrip(" \t")
    if line.endswith("\n") and re.match(r"[ \t]*(?:[\r\n]|$)", after):
        return line.removesuffix("\n").removesuffix("\r") + after
    return before + after.lstrip(" \t") if number + 1 < len(slots) else line + after


def _skip(plain: str, offset: int) -> int:
    found = _BLANK.match(plain, offset)
    return found.end() if found else offset


def _slots(text: str, start: int) -> list[_Slot]:
    """Return what an object or array holds, with the commas behind it; of a scalar nothing."""
    plain, commas, found = mask(text), _blank(_COMMENT, text), list[_Slot]()
    offset = _skip(plain, start + 1)
    while plain[start] in "{[" and plain[offset] not in "}]":
        name, value = len(found), offset
        if plain[start] == "{":
            name, value = _DECODER.raw_decode(plain, offset)
            value = _skip(plain, _skip(plain, value) + 1)
        _, end = _DECODER.raw_decode(plain, value)
        behind = _skip(commas, end)
        comma = behind if commas[behind] == "," else None
        found.append(_Slot(name, offset, value, end, comma))
        offset = _skip(plain, end if comma is None else comma + 1)
    return found
