"""Read the elements of a JSON array, up to where it is broken."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from memory_kb.text import read_integer

_BLANKS = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder(parse_constant=lambda _: None, parse_int=read_integer)


class Element(NamedTuple):
    """An element of an array, counted from 1; or `wrong`, after which nothing more is read."""

    number: int
    value: Any = None
    wrong: str | None = None


def iterate(text: str, keys: tuple[str, ...] = ()) -> Iterator[Element]:
    """Yield the elements of an array.

    Args:
        text: the array; what follows it is not read.
        keys: where the text is an object, those that may hold the array; without any of them the
            object itself is the one element.

    Example:
        >>> [one.value for one in iterate('[{"a": 1}, {"b": 2}]')]
        [{'a': 1}, {'b': 2}]
        >>> [one.value for one in iterate('{"count": 1, "results": [7, 8]}', ("results",))]
        [7, 8]
        >>> list(iterate("[1, oops]"))[-1].wrong
        'not valid JSON after element 1 (line 1)'
    """
    at = _skip(text, int(text.startswith("\ufeff")))
    if text.startswith("{", at):
        yield from _read_object(text, at, keys)
    elif not text.startswith("[", at):
        yield Element(0, wrong="not a JSON array" if at < len(text) else "it is empty")
    else:
        yield from _read_array(text, at + 1)


def _read_array(text: str, at: int) -> Iterator[Element]:
    number, is_next = 0, True
    while not text.startswith("]", at := _skip(text, at)):
        if at == len(text) or not is_next:
            yield Element(number, wrong="the array is not closed" if at == len(text) else _explain(text, at, number))
            return
        one, at = _decode(text, at, number + 1)
        yield one
        if one.wrong:
            return
        number, at = number + 1, _skip(text, at)
        is_next = text.startswith(",", at)
        at += is_next


def _read_object(text: str, at: int, keys: tuple[str, ...]) -> Iterator[Element]:
    whole, _ = _decode(text, at, 1)
    lists = [] if whole.wrong else [whole.value[key] for key in keys if isinstance(whole.value.get(key), list)]
    yield from itertools.starmap(Element, enumerate(lists[0], 1)) if lists else [whole]


def _skip(text: str, at: int) -> int:
    """Return the next place in a text without a blank."""
    found = _BLANKS.match(text, at)
    return found.end() if found else at


def _decode(text: str, at: int, number: int) -> tuple[Element, int]:
    try:
        value, end = _DECODER.raw_decode(text, at)
    except json.JSONDecodeError:
        return Element(number, wrong=_explain(text, at, number - 1)), at
    except RecursionError:
        return Element(number, wrong=f"element {number} is nested too deeply"), at
    return Element(number, value), end


def _explain(text: str, at: int, number: int) -> str:
    """Return that some JSON is not valid, behind which element and in which line."""
    behind = f" after element {number}" if number else ""
    return f"not valid JSON{behind} (line {text.count(chr(10), 0, at) + 1})"
