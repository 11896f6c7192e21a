"""Add values to JSON and TOML files of other programs, and remove them again; every other byte is kept.

JSON with comments is never changed: the person is shown what to paste.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from memory_kb.errors import CannotSplice

Key = str | int
Path = tuple[Key, ...]

_BLANK = re.compile(r"\ufeff?[ \t\r\n]*")
_INDENT = re.compile(r'\s*\{\s*\n([ \t]+)"')
_DECODER = json.JSONDecoder()


class NotPlainJson(CannotSplice):
    """A file that is no JSON, or JSON with comments, which an edit could lose."""


def parse_json(name: str, text: str) -> dict[str, Any]:
    """Return what a text says; an empty one says `{}`. NotPlainJson for what is no JSON or has comments."""
    plain = text.removeprefix("\ufeff")
    try:
        value = json.loads(plain) if plain.strip() else {}
    except json.JSONDecodeError as exc:
        raise NotPlainJson(f"{name}:{exc.lineno}: this is not plain JSON: {exc.msg}") from exc
    except RecursionError as exc:
        raise NotPlainJson(f"{name}: this is nested too deeply to be read") from exc
    if not isinstance(value, dict):
        raise CannotSplice(f"{name}:1: this is JSON but no object")
    return value


def insert_json(name: str, text: str, path: Path, value: Any) -> str:
    """Put a value at a path: a new member of an object, or behind the last item where the path ends in -1.

    Objects and the list on the way are made where they are missing.

    Example:
        >>> insert_json("x.json", '{\\n  "a": 1\\n}\\n', ("b",), {"c": [2]})
        '{\\n  "a": 1,\\n  "b": {\\n    "c": [\\n      2\\n    ]\\n  }\\n}\\n'
    """
    if not text.removeprefix("\ufeff").strip():
        return f"{text}{insert_json(name, '{}', path, value)}\n"
    start, depth = _skip(text, 0), 1
    while path[1:] and (inner := [slot for slot in _slots(text, start) if slot.key == path[0]]):
        start, path, depth = inner[-1].value, path[1:], depth + 1
    wanted, kind = ("[", "a list") if path[0] == -1 else ("{", "an object")
    if text[start] != wanted:
        line = text.count("\n", 0, start) + 1
        raise CannotSplice(f"{name}:{line}: {kind} was expected here")
    for key in reversed(path[1:]):
        value = [value] if key == -1 else {key: value}
    slots, end = _slots(text, start), _DECODER.raw_decode(text, start)[1]
    is_inline = "\n" not in text[start:end]
    found = _INDENT.match(text)
    indent, newline = found[1] if found else "  ", "\r\n" if "\r\n" in text else "\n"
    lines = json.dumps(value, ensure_ascii=False, indent=None if is_inline and slots else indent)
    label = "" if path[0] == -1 else f"{json.dumps(path[0], ensure_ascii=False)}: "
    item = label + lines.replace("\n", newline + indent * depth)
    if slots:
        at = slots[-1].end
        return f"{text[:at]},{' ' if is_inline else newline + indent * depth}{item}{text[at:]}"
    last = newline + indent * (depth - 1) if is_inline else ""
    return f"{text[: start + 1]}{newline}{indent * depth}{item}{last}{text[start + 1 :]}"


def remove_json(text: str, path: Path) -> str:
    """Remove a member or an item, and the objects and lists around it that are empty then.

    Example:
        >>> remove_json('{\\n  "a": 1,\\n  "b": {"c": [2]}\\n}\\n', ("b", "c", 0))
        '{\\n  "a": 1\\n}\\n'
    """
    start, slots, number = _skip(text, 0), list[_Slot](), 0
    for key in path:
        outer, slots = start, _slots(text, start)
        number = max(place for place, slot in enumerate(slots) if slot.key == key)
        start = slots[number].value
    if number:
        return text[: slots[number - 1].end] + text[slots[number].end :]
    if len(slots) > 1:
        return text[: slots[0].start] + text[slots[1].start :]
    if len(path) > 1:
        return remove_json(text, path[:-1])
    return text[: outer + 1] + text[_skip(text, slots[0].end) :]


class _Slot(NamedTuple):
    """A member of an object, or an item of a list, and where it is in the text."""

    key: Key
    start: int
    value: int
    end: int


def _skip(text: str, offset: int) -> int:
    found = _BLANK.match(text, offset)
    return found.end() if found else offset


def _slots(text: str, start: int) -> list[_Slot]:
    """Return what the object or list at an offset holds; of anything else nothing."""
    found = list[_Slot]()
    offset = _skip(text, start + 1)
    while text[start] in "{[" and text[offset] not in "}]":
        key, value = len(found), offset
        if text[start] == "{":
            key, colon = _DECODER.raw_decode(text, offset)
            value = _skip(text, _skip(text, colon) + 1)
        end = _DECODER.raw_decode(text, value)[1]
        found.append(_Slot(key, offset, value, end))
        offset = _skip(text, end)
        offset = _skip(text, offset + 1) if text[offset] == "," else offset
    return found


#: A line that begins a TOML table.
_HEADER = re.compile(r"[ \t]*\[\[?([^\[\]\r\n]+)\]\]?[ \t]*(?:#[^\r\n]*)?$")


def parse_toml(name: str, text: str) -> dict[str, Any]:
    """Return what a text says."""
    import tomllib

    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except (tomllib.TOMLDecodeError, RecursionError) as exc:
        raise CannotSplice(f"{name}: this is not TOML: {exc}") from exc


def insert_toml(name: str, text: str, table: tuple[str, str], values: Mapping[str, Any]) -> str:
    """Put a table at the end.

    Example:
        >>> insert_toml("config.toml", 'model = "x"\\n', ("mcp_servers", "kb"), {"command": "kb", "args": ["mcp"]})
        'model = "x"\\n\\n[mcp_servers.kb]\\ncommand = "kb"\\nargs = ["mcp"]\\n'
    """
    before = parse_toml(name, text)
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text.strip("\ufeff") else newline if text.endswith("\n") else 2 * newline
    # What JSON escapes, TOML does too.
    rendered = {key: json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f") for key, value in values.items()}
    lines = [f"[{'.'.join(table)}]", *(f"{key} = {value}" for key, value in rendered.items()), ""]
    after = text + gap + newline.join(lines)
    group = before.get(table[0], {})
    if isinstance(group, dict) and _says(after, {**before, table[0]: {**group, table[1]: values}}):
        return after
    raise CannotSplice(
        f"{name}: {table[0]} is written in a way that no table can be added to; make it [{table[0]}.NAME] tables"
    )


def remove_toml(name: str, text: str, table: tuple[str, str]) -> str:
    """Remove a table and those below it, with the empty line before it.

    Example:
        >>> remove_toml("config.toml", '[a.b]\\nx = 1\\n\\n[a.c]\\ny = [\\n  [2],\\n]\\n\\n[d]\\n', ("a", "c"))
        '[a.b]\\nx = 1\\n\\n[d]\\n'
    """
    wanted = parse_toml(name, text)
    del wanted[table[0]][table[1]]
    kept: list[str] = []
    cut: list[str] | None = None
    for line in [*text.splitlines(keepends=True), ""]:
        header = _HEADER.match(line.rstrip("\r\n"))
        if header or not line:
            kept += _comments_at_end(cut or [])
            parts = header[1].split(".") if header else ()
            is_ours = tuple(part.strip(" \t\"'") for part in parts)[: len(table)] == table
            cut = [] if is_ours else None
            if is_ours and kept and not kept[-1].strip():
                kept.pop()
        (kept if cut is None else cut).append(line)
    after = "".join(kept)
    if _says(after, wanted) or (not wanted.pop(table[0]) and _says(after, wanted)):
        return after
    raise CannotSplice(f"{name}: [{'.'.join(table)}] is not written as a table of its own; take it out by hand")


def _says(text: str, wanted: Mapping[str, Any]) -> bool:
    try:
        return parse_toml("", text) == wanted
    except CannotSplice:
        return False


def _comments_at_end(lines: list[str]) -> list[str]:
    """Return the blank lines and comments behind a table, which belong to what follows."""
    end = len(lines)
    while end > 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
        end -= 1
    return lines[end:]
