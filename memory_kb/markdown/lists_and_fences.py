"""Find lists, code fences and `## ` sections in a text, and render lists and fences."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memory_kb.lazy_regex import lazy_regex
from memory_kb.markdown.blocks import heading_text
from memory_kb.model import Span

_HEADING = lazy_regex(r"\ufeff?(#{1,2})(?=[ \t]|$)(.*)")
# A fence may open behind the mark of a list's item, and be indented as deep as the item.
_FENCE = lazy_regex(r"((?:[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]+)*[ \t]*)(`{3,}(?=[^`]*$)|~{3,})")
_ITEM = lazy_regex(r"([ \t]*)([-*+]|\d{1,9}[.)])([ \t]+|$)(.*)")
_TICKS = lazy_regex(r"`+")


class Line(NamedTuple):
    """A line, where it is, and whether it belongs to a fence; `opens` is true for its first line."""

    span: Span
    text: str
    is_code: bool
    opens: bool


class Section(NamedTuple):
    """A part of a body under a heading of the first two levels; `content` is what follows that line."""

    level: int
    heading: str
    span: Span
    content: Span


class Item(NamedTuple):
    """An item of a list: what it says, its further lines moved out, and where it is."""

    text: str
    span: Span


def render_items(items: Sequence[str], *, is_numbered: bool = False) -> str:
    """Return items as a list; further lines of one are below it.

    Example:
        >>> print(render_items(["Tag it.", "Push:\\nboth remotes."], is_numbered=True))
        1. Tag it.
        2. Push:
           both remotes.
    """
    lines = []
    for number, item in enumerate(items, 1):
        mark = f"{number}. " if is_numbered else "- "
        lines.append(mark + re.sub(r"\n(?=[^\n])", "\n" + " " * len(mark), clean_item(item)))
    return "\n".join(lines)


def clean_item(item: str) -> str:
    """Return an item as it reads back: without blanks at the ends of its lines."""
    lines = [line.rstrip() for line in plain_lines(item).strip().split("\n")]
    return "\n".join(lines) or "-"


def fence(text: str) -> str:
    """Return a text in a code fence that is longer than any in it.

    Example:
        >>> print(fence("```sh\\nmake\\n```"))
        ````
        ```sh
        make
        ```
        ````
    """
    text = plain_lines(text)
    ticks = "`" * max(3, 1 + max(map(len, _TICKS.findall(text)), default=0))
    return f"{ticks}\n{text}\n{ticks}"


def plain_lines(text: str) -> str:
    """Return a text whose lines all end in a single line feed."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


class Fenced(NamedTuple):
    """The place of a code fence with its marks, and of the text between them."""

    outer: Span
    inner: Span


class FenceState:
    """Whether the lines of a text, given one after another, are inside a code fence, or indented as code is.

    A fence in an item of a list ends with the item, as Markdown has it, closed or not.
    """

    def __init__(self) -> None:
        self.mark = ""
        self.opens = self.is_indented = False
        self.is_after_blank = True
        #: The column at which the text of the item begins that the fence is in.
        self.column = 0
        self._items: list[int] = []

    def advance(self, line: str) -> bool:
        """Return whether a line belongs to a fence."""
        bare = line.lstrip(" \t")
        is_blank, column = not bare.strip(), _columns(line[: len(line) - len(bare)])
        was_blank, self.is_after_blank = self.is_after_blank, is_blank
        self.opens = False
        if self.mark and (is_blank or column >= self.column):
            end = bare.strip()
            if len(end) >= len(self.mark) and not end.strip(self.mark[0]):
                self.mark = ""
            return True
        self.mark = ""
        inside = max((one for one in self._items if one <= column), default=0)
        self.is_indented = not is_blank and (was_blank or self.is_indented) and column - inside >= _CODE
        if is_blank or self.is_indented:
            return False
        found, item = _FENCE.match(line), _ITEM.match(line)
        if item or found or was_blank or _HEADING.match(line):
            self._items = [one for one in self._items if one <= column]
        if item:
            self._items.append(
                _columns("".join(item.group(1, 2, 3)) if len(item[3]) <= _CODE else f"{item[1]}{item[2]} ")
            )
        if found:
            self.mark, self.opens = found[2], True
            self.column = _columns(found[1]) if found[1].strip() else inside
        return found is not None


#: Text that is indented by so many columns is code.
_CODE = 4


def _columns(text: str) -> int:
    return len(text.expandtabs(_CODE)) if text else 0


def _width_of(item: re.Match[str]) -> int:
    """Return how deep the text of an item is."""
    return len(item[1]) + len(item[2]) + (min(len(item[3]), 4) or 1)


def has_open_fence(text: str) -> bool:
    """Return whether a text ends inside a code fence, so that what is put behind it would be code.

    Example:
        >>> has_open_fence("```\\nmake\\n"), has_open_fence("```\\nmake\\n```\\n")
        (True, False)
    """
    state = FenceState()
    for line in text.split("\n"):
        state.advance(line.rstrip("\r"))
    return bool(state.mark)


def find_fence(text: str, place: Span) -> Fenced | None:
    """Return the first code fence of a place; one that nothing closes goes on to the end."""
    state = FenceState()
    start = inside = -1
    for line in scan_lines(text, place):
        if not state.advance(line.text):
            continue
        if start < 0:
            start, inside = line.span.start, line.span.end
        elif not state.mark:
            end = line.span.start - 1 if line.span.start > inside else inside
            return Fenced(Span(start, line.span.start + len(line.text)), Span(inside, end))
    return Fenced(Span(start, place.end), Span(inside, place.end)) if start >= 0 else None


def scan_lines(text: str, place: Span) -> Iterator[Line]:
    """Yield the lines of a place; each ends where the next begins."""
    start, state = place.start, FenceState()
    while start < place.end:
        end = text.find("\n", start, place.end) + 1 or place.end
        line = text[start:end].rstrip("\r\n")
        yield Line(Span(start, end), line, state.advance(line), state.opens)
        start = end


def find_sections(text: str) -> list[Section]:
    """Return the sections of a text in their order; headings in a fence are none.

    Example:
        >>> [(found.level, found.heading) for found in find_sections("# One #\\n```\\n# No\\n```\\n## C#\\n### Deeper\\n")]
        [(1, 'One'), (2, 'C#')]
    """
    lines = (line for line in scan_lines(text, Span(0, len(text))) if not line.is_code)
    heads = [(line.span, found) for line in lines if (found := _HEADING.match(line.text))]
    ends = [*(span.start for span, _ in heads[1:]), len(text)]
    return [
        Section(len(found[1]), heading_text(found[2]), Span(span.start, end), Span(span.end, end))
        for (span, found), end in zip(heads, ends, strict=False)
    ]


def read_list(text: str, place: Span) -> tuple[str, ...]:
    """Return the items of the lists in a place; where there is no list its paragraphs, each on one line.

    Example:
        >>> read_list("- a\\n- b\\n", Span(0, 8)), read_list("One\\ntwo.\\n\\nThree.", Span(0, 16))
        (('a', 'b'), ('One two.', 'Three.'))
    """
    blocks = text[place.start : place.end].split("\n\n")
    return tuple(item.text for item in find_items(text, place)) or tuple(
        " ".join(block.split()) for block in blocks if block.strip()
    )


def find_items(text: str, place: Span) -> list[Item]:
    """Return the items of the lists in a place; what is indented below one belongs to it."""
    texts: list[list[str]] = []
    spans: list[Span] = []
    width, is_after_blank = 0, False  # a width of 0: no item is open
    for line in scan_lines(text, place):
        blank = not line.text.strip()
        depth = len(line.text) - len(line.text.lstrip(" \t"))
        end = line.span.start + len(line.text)
        found = _ITEM.match(line.text) if line.opens or not line.is_code else None
        if found and depth < (width or 4):
            width = _width_of(found)
            texts.append([found[4].rstrip()])
            spans.append(Span(line.span.start, end))
        elif width and (blank or depth >= width or not (is_after_blank or line.is_code)):
            texts[-1].append("" if blank else line.text[min(depth, width) :].rstrip())
            if not blank:
                spans[-1] = Span(spans[-1].start, end)
        else:
            width = 0
        is_after_blank = blank
    items = (Item("\n".join(lines).strip("\n"), span) for lines, span in zip(texts, spans, strict=True))
    return [item for item in items if item.text]
