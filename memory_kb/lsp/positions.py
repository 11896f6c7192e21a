"""Places in a text as editors count them: lines, and code units within a line."""

from __future__ import annotations

import re
from bisect import bisect_right

from lsprotocol.types import Position, Range

from memory_kb.entry import Span

_LINE_END = re.compile(r"\r\n|\n|\r")


class Ruler:
    """A text that places can be looked up in.

    Editors count in UTF-16 unless they agree on something else, so that an emoji is two.

    Example:
        >>> ruler = Ruler("a😀b\\r\\nc")
        >>> ruler.position(2), ruler.offset(Position(0, 3)), ruler.position(5)
        (0:3, 2, 1:0)
    """

    def __init__(self, text: str, encoding: str = "utf-16") -> None:
        self.text = text
        self._encoding = encoding
        self._starts = [0, *(found.end() for found in _LINE_END.finditer(text))]

    @property
    def end(self) -> Position:
        """The place behind the last character."""
        return self.position(len(self.text))

    def position(self, offset: int) -> Position:
        """Return the place of a character."""
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self._starts, offset) - 1
        return Position(line, self._units(self.text[self._starts[line] : offset]))

    def offset(self, position: Position) -> int:
        """Return the character at a place; behind the end of a line it is that end."""
        if position.line >= len(self._starts):
            return len(self.text)
        start, end = self._starts[position.line], self.line_end(position.line)
        line = self.text[start:end]
        if line.isascii() or self._encoding == "utf-32":
            return min(start + position.character, end)
        units = 0
        for place, sign in enumerate(line):
            if units >= position.character:
                return start + place
            units += self._units(sign)
        return end

    def line_end(self, line: int) -> int:
        """Return where a line ends, without its line end."""
        end = self._starts[line + 1] if line + 1 < len(self._starts) else len(self.text)
        while end > self._starts[line] and self.text[end - 1] in "\r\n" and line + 1 < len(self._starts):
            end -= 1
        return end

    def range(self, span: Span) -> Range:
        """Return a stretch of the text."""
        return Range(self.position(span.start), self.position(span.end))

    def _units(self, text: str) -> int:
        if text.isascii() or self._encoding == "utf-32":
            return len(text)
        if self._encoding == "utf-8":
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text) + sum(sign > "\uffff" for sign in text)
