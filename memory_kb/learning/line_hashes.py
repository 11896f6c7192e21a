"""Hash the lines of a file, so that moved or changed lines can be found again."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import NamedTuple

from memory_kb.text import hash_of

#: Changed lines that are shown.
_MOST_SHOWN = 12


def split_lines(text: str) -> tuple[str, ...]:
    r"""Return the lines of a file, whatever their ends, without trailing blanks and blank last lines.

    Example:
        >>> split_lines("\ufeffa \r\n\tb\r\n\r\n")
        ('a', '\tb')
    """
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    lines = [line.rstrip() for line in plain.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return tuple(lines)


def hash_lines(lines: Sequence[str]) -> str:
    """Return the hash of some lines, as `cites` holds it.

    Eight digits are the sum of the lines' checksums, whatever their order; twelve are of the text.

    Example:
        >>> hash_lines(["a", "b"]) == hash_lines(["b", "a"]), hash_lines(["a", "b"])[:8] == hash_lines(["b", "a"])[:8]
        (False, True)
    """
    return f"{sum(zlib.crc32(_encode(line)) for line in lines) & 0xFFFFFFFF:08x}{_digest(_encode(chr(10).join(lines)))}"


def hash_bytes(data: bytes) -> str:
    """Return the hash of a file that is no text."""
    return f"{zlib.crc32(data):08x}{_digest(data)}"


def find_lines(lines: Sequence[str], wanted: str, length: int, near: int = 1) -> int | None:
    """Return the line, from 1, at which as many lines with a hash begin; the one nearest to a line.

    Example:
        >>> find_lines(["x", "a", "b"], hash_lines(["a", "b"]), 2)
        2
        >>> find_lines(["x", "a", "c"], hash_lines(["a", "b"]), 2) is None
        True
    """
    starts = range(len(lines) - length + 1) if length > 0 else ()
    fitting = (first for first in starts if _digest(_encode("\n".join(lines[first : first + length]))) == wanted[8:])
    return min((first + 1 for first in fitting), key=lambda first: abs(first - near), default=None)


class LineChanges(NamedTuple):
    """What became of some lines: a text each, `- ` for what went and `+ ` for what came, and where they are now."""

    shown: tuple[str, ...]
    lines: tuple[int, int] | None


def compare_lines(before: Sequence[str], after: Sequence[str], span: tuple[int, int]) -> LineChanges:
    """Return what became of some lines of a file.

    Args:
        before: the file as it was.
        after: the file as it is.
        span: the first and last of the lines as it was, from 1.

    Example:
        >>> compare_lines(["a", "b", "c"], ["new", "a", "B", "c"], (1, 3))
        LineChanges(shown=('- b', '+ B'), lines=(2, 4))
    """
    import difflib

    first, last = span[0] - 1, span[1]
    shown: list[str] = []
    places: list[int] = []
    for tag, i1, i2, j1, j2 in difflib.SequenceMatcher(None, before, after).get_opcodes():
        low, high = max(i1, first), min(i2, last)
        if tag == "equal":
            places += range(j1 + low - i1, j1 + high - i1)
        elif low < high or first < i1 == i2 < last:
            shown += (*(f"- {line}" for line in before[low:high]), *(f"+ {line}" for line in after[j1:j2]))
            places += range(j1, j2)
    shown = [*shown[:_MOST_SHOWN], "…"] if len(shown) > _MOST_SHOWN else shown
    return LineChanges(tuple(shown), (min(places) + 1, max(places) + 1) if places else None)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _digest(data: bytes) -> str:
    return hash_of(data)[:12]
