"""Parse the YAML block of an entry, broken ones included."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from memory_kb.model import LIVE_STATUSES, STATUSES, UNVERIFIED
from memory_kb.regex import regex
from memory_kb.yaml_loader import MAX_BROKEN, InvalidBlock, load_mapping

_ENTRY_FIELDS = ("id", "kind", "type", "status", "source")
_NAMED = regex(rf"(?:{'|'.join(_ENTRY_FIELDS)}|tags|title)[ \t]*:")
_KEY = regex(r"[\"']?\w[\w.-]*[\"']?[ \t]*:(?=\s|$)")
_LONG_KEY = regex(r"[\"']?\w[\w.-]*(?: [\w.-]+){0,2}[\"']?[ \t]*:(?=\s|$)")
_PART = regex(r"[ \t]|-(?:\s|$)|[\[\]{}\"'|>&*!]")
_HELD_BACK = regex(
    rf"^[ \t]*[\"']?(?:(status)[\"']?[ \t]*:[ \t\"'\[]*({'|'.join(word for word in STATUSES if word not in LIVE_STATUSES)})"
    rf"|(source)[\"']?[ \t]*:[ \t\"'\[]*({UNVERIFIED}))\b",
    re.IGNORECASE | re.MULTILINE,
)
#: Pieces of a block that are read by themselves.
_MAX_PIECES = 500


class Salvaged(NamedTuple):
    """What could be read of a broken block.

    Attributes:
        values: the fields that could be read by themselves.
        length: the characters that belong to the block; behind them text begins.
        line: the first line that could not be read, counted from 0 within the block; None where no line is to blame.
    """

    values: dict[str, Any]
    length: int
    line: int | None


def salvage(block: str, *, is_closed: bool = True) -> Salvaged | None:
    """Return what a block says that is not valid YAML as a whole, or None where it is no frontmatter.

    Without a `---` line behind it, it ends where its fields do.

    Example:
        >>> salvage("id: x\\nstatus: retired\\ntags: [a\\n")
        Salvaged(values={'id': 'x', 'status': 'retired'}, length=31, line=2)
        >>> salvage("Just [a sentence\\n") is None
        True
    """
    lines = (block if is_closed else block[:MAX_BROKEN]).split("\n")
    count = _count_lines(lines) if is_closed else _count_leading(lines)
    own = "\n".join(lines[:count])
    length = len(own) + (count < len(lines))
    values, line = _read_pieces(lines[:count])
    for found in _HELD_BACK.finditer(block if is_closed else own):
        values[(found[1] or found[3]).lower()] = (found[2] or found[4]).lower()
    first = next((line for line in lines if line.strip() and line[0] != "#"), "")
    is_named = not values.keys().isdisjoint(_ENTRY_FIELDS)
    is_meant = bool(values) and (is_named or (is_closed and _KEY.match(first) is not None))
    return Salvaged(values, length, line) if is_meant else None


def begins_as_fields(block: str) -> bool:
    """Return whether the first line of a block is a field.

    Example:
        >>> begins_as_fields("# mine\\nid: x [\\n"), begins_as_fields("As I said, type: x\\n")
        (True, False)
    """
    first = re.search(r"^(?!#)[^\n]*\S", block, re.MULTILINE)
    return first is not None and _is_field(first[0])


def _is_field(line: str) -> bool:
    return _LONG_KEY.match(line) is not None or _NAMED.match(line) is not None


def _count_lines(lines: list[str]) -> int:
    """Return how many lines come before a paragraph of text, which belongs to no block."""
    gap: int | None = None
    is_remark_last = False
    for number, line in enumerate(lines):
        if not line.strip():
            gap = number if gap is None else gap
        elif line.startswith("#"):
            is_remark_last = gap is not None
        elif gap is not None and not (_is_field(line) or _PART.match(line)):
            return gap
        else:
            gap, is_remark_last = None, False
    return gap if gap is not None and is_remark_last else len(lines)


def _count_leading(lines: list[str]) -> int:
    """Return how many lines from the first on are those of fields."""
    for number, line in enumerate(lines):
        if not line.strip() or not (_is_field(line) or _PART.match(line) or line.startswith("#")):
            return number
    return len(lines)


def _read_pieces(lines: list[str]) -> tuple[dict[str, Any], int | None]:
    """Return the fields that can be read, each with the lines below it or else alone, and the first line that cannot."""
    values: dict[str, Any] = {}
    broken: int | None = None
    left = MAX_BROKEN
    for count, (start, piece) in enumerate(_cut(lines)):
        left -= sum(map(len, piece))
        if count >= _MAX_PIECES or left < 0:
            break
        try:
            values |= load_mapping("\n".join(piece))
        except InvalidBlock as exc:
            inside = max((number for number, line in enumerate(piece) if line.strip()), default=0)
            broken = start + min(exc.line, inside) if broken is None else broken
            values |= _read_alone(piece[0])
    return values, broken


def _cut(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the fields of a block, each with the lines below it and the number of its first."""
    start: int | None = None
    for number, line in enumerate(lines):
        if _LONG_KEY.match(line):
            if start is not None:
                yield start, lines[start:number]
            start = number
        elif start is None and line.strip() and not line.startswith("#"):
            start = number
    if start is not None:
        yield start, lines[start:]


def _read_alone(line: str) -> dict[str, Any]:
    try:
        return load_mapping(line) if _LONG_KEY.match(line) else {}
    except InvalidBlock:
        return {}
