"""Read the elements of a JSON array, up to where it is broken."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from memory_kb.text import json_decoder

_BLANKS = re.compile(r"[ \t\r\n]*")


class Element(NamedTuple):
    """An element of an array, counted from 1; or `wrong`, after which nothing more is read."""

    number: int
    value: Any = None
    wrong: str | None = None


def iterate(text: str, keys: tuple[str, ...] = ()) -> Iterator[Element]:
    """Yield the elements of an array.

    Of an object, any of `keys` may hold the array; without them the object itself is the one element.

    Example:
        >>> [one.value for one in iterate('{"count": 1, "results": [7, 8]}', ("results",))]
        [7, 8]
        >>> list(iterate("[1, oops]"))[-1].wrong
        'not valid JSON after element 1 (line 1)'
    """
    at = _skip(text, int(text.startswith("\ufeff")))
    if text.startswith("{", at):
        whole, _ = _decode(text, at, 1)
        found = [] if whole.wrong else [whole.value[key] for key in keys if isinstance(whole.value.get(key), list)]
        yield from itertools.starmap(Element, enumerate(found[0], 1)) if found else [whole]
    elif text.startswith("[", at):
        yield from _read_array(text, _skip(text, at + 1))
    else:
        yield Element(0, wrong="not a JSON array" if at < len(text) else "it is empty")


def _read_array(text: str, at: int) -> Iterator[Element]:
    number = 0
    while not text.startswith("]", at):
        number += 1
        one, at = _decode(text, at, number)
        yield one
        if one.wrong:
            return
        at = _skip(text, at)
        if text.startswith(",", at):
            at = _skip(text, at + 1)
        elif not text.startswith("]", at):
            yield _broken(text, at, number + 1)
            return


def _skip(text: str, at: int) -> int:
    """Return the next place in a text without a blank."""
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def _decode(text: str, at: int, number: int) -> tuple[Element, int]:
    try:
        value, end = json_decoder().raw_decode(text, at)
    except (ValueError, RecursionError):
        return _broken(text, at, number), at
    return Element(number, value), end


def _broken(text: str, at: int, number: int) -> Element:
    behind = f" after element {number - 1}" if number > 1 else ""
    return Element(number, wrong=f"not valid JSON{behind} (line {text.count(chr(10), 0, at) + 1})")
