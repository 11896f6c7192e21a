"""Read the elements of a JSON array one at a time, in the memory of the largest of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from json import JSONDecodeError
from typing import Any, NamedTuple

from memory_kb.text import read_integer

#: Characters of one object that are held at once.
MAX_OBJECT = 64_000_000
#: Characters to look through for the array in an object.
_MAX_HEAD = 1_000_000
_BLANK = " \t\r\n"
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[{}\[\]]')


class Element(NamedTuple):
    """An object of an array, counted from 1; or `wrong`, after which nothing more is read."""

    number: int
    value: Any = None
    wrong: str | None = None


class _Window:
    """The part of a text that is being read."""

    def __init__(self, pieces: Iterable[str]) -> None:
        self._pieces = iter(pieces)
        self.text = ""
        self.at = 0
        self.is_over = False

    def more(self, least: int = 1) -> bool:
        """Read on by `least` characters, forgetting what is done; return whether there was anything."""
        fresh, size = [], 0
        for piece in self._pieces:
            fresh.append(piece)
            size += len(piece)
            if size >= least:
                break
        else:
            self.is_over = True
        if fresh:
            self.text = "".join((self.text[self.at :], *fresh))
            self.at = 0
        return size > 0

    def sign(self) -> str:
        """Return the next character that is no blank, or "" at the end."""
        while True:
            while self.at < len(self.text):
                if self.text[self.at] not in _BLANK:
                    return self.text[self.at]
                self.at += 1
            if not self.more():
                return ""


def iterate(pieces: Iterable[str], keys: tuple[str, ...] = (), most: int = MAX_OBJECT) -> Iterator[Element]:
    """Yield the elements of an array that comes in pieces, in memory that its largest element needs.

    Args:
        pieces: the text.
        keys: where the text is an object, those that may hold the array; without any of them the
            object itself is the one element.
        most: characters of one element.

    Example:
        >>> [one.value for one in iterate(['[{"a": 1}, {"b', '": 2}]'])]
        [{'a': 1}, {'b': 2}]
        >>> [one.value for one in iterate(['{"count": 1, "results": [7, 8]}'], ("results",))]
        [7, 8]
        >>> list(iterate(["[1, oops]"]))[-1].wrong
        'not valid JSON after element 1'
    """
    window = _Window(pieces)
    if window.sign() == "\ufeff":
        window.at += 1
    opening = window.sign()
    if opening == "{" and not _enter(window, keys):
        yield _decode(window, 1, most)
        return
    if opening not in ("[", "{"):
        yield Element(0, wrong="not a JSON array" if opening else "it is empty")
        return
    window.at += opening == "["
    number = 0
    while (sign := window.sign()) != "]":
        if number and sign == ",":
            window.at += 1
            sign = window.sign()
        elif number:
            yield Element(
                number, wrong="the array is not closed" if not sign else f"not valid JSON after element {number}"
            )
            return
        if sign == "]":
            return
        found = _decode(window, number + 1, most)
        yield found
        if found.wrong:
            return
        number += 1


def _enter(window: _Window, keys: tuple[str, ...]) -> bool:
    """Move to behind the opening bracket of the first of some arrays in an object."""
    if not keys:
        return False
    opening = re.compile(rf'"(?:{"|".join(map(re.escape, keys))})"\s*:\s*\[')
    while True:
        for found in opening.finditer(window.text, window.at):
            if _depth(window.text[window.at : found.start()]) == 1:
                window.at = found.end()
                return True
        if len(window.text) - window.at > _MAX_HEAD or not window.more():
            return False


def _depth(text: str) -> int:
    """Return how many brackets are open at the end of some JSON."""
    signs = [found[0] for found in _TOKEN.finditer(text)]
    return sum(sign in "{[" for sign in signs) - sum(sign in "}]" for sign in signs)


def _decode(window: _Window, number: int, most: int) -> Element:
    decoder = json.JSONDecoder(parse_constant=lambda _: None)
    size = 65_536
    while True:
        try:
            value, end = decoder.raw_decode(window.text, window.at)
        except JSONDecodeError:
            held = len(window.text) - window.at
            if held > most:
                return Element(number, wrong=f"element {number} is longer than {most:,} characters")
            if not window.more(max(size, held)):
                return Element(
                    number, wrong=f"not valid JSON after element {number - 1}" if number > 1 else "not valid JSON"
                )
        except ValueError:
            decoder = json.JSONDecoder(parse_constant=lambda _: None, parse_int=read_integer)
        except RecursionError:
            return Element(number, wrong=f"element {number} is nested too deeply")
        else:
            if end == len(window.text) and not window.is_over and window.more():
                continue
            window.at = end
            return Element(number, value)
