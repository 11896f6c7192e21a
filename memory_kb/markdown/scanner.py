"""Scan Markdown for code, headings, block ids and blocks."""

# Annotations are evaluated here: to parse them from text takes a named tuple twice as long to define.
import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from memory_kb.lazy_regex import lazy_regex
from memory_kb.model import Span
from memory_kb.terms import MARKED_WORD, MARKS, name_key

_QUOTES = lazy_regex(r"(?: {0,3}>[ \t]?)*")
_BLANKS = lazy_regex(r"[ \t]*")
_ITEM = lazy_regex(r"(?:[-*+]|\d{1,9}[.)])(?=[ \t\r\n]|\Z)")
_RULE = lazy_regex(r"([-*_])[ \t]*(?:\1[ \t]*){2,}\r?$", re.MULTILINE)
_HEADING = lazy_regex(r"#{1,6}[ \t\r\n]|=+[ \t]*\r?$", re.MULTILINE)
_FENCE = lazy_regex(r"`{3,}(?=[^`\n]*$)|~{3,}", re.MULTILINE)
_COMMENT = lazy_regex("<!--")
#: What may begin code or a comment within a paragraph; a backslash takes a sign its meaning.
_MARK = lazy_regex(r"\\[\\`<]|<!--|`+")
_TICKS = lazy_regex("`+")
#: How a line may begin that does not just go on with a paragraph or begin one.
_OPENERS = frozenset(" \t\r\n>#=`~<-*_+0123456789")
#: The rest of an anchor of Dendron, which embeds from one heading to another: `#steps,1:#milk`.
_RANGE = lazy_regex(r"(?:,\d+)?(?::#.*)?$")
#: Without one of these a text holds neither code nor comments.
_HIDING = ("`", "    ", "\t", "<!--", "~~~")
#: What begins a rule, what else is separate from a paragraph, and what marks an item of a list.
_RULES, _APART, _BULLETS = frozenset("-*_"), frozenset("#=`~<"), frozenset("-*+0123456789")
_TAB = 4
#: Items within items; nobody writes so many, and time grows with their square.
_DEEPEST = 100


def find_code(text: str) -> Iterator[Span]:
    """Yield the stretches of a text that are code or comments, in their order.

    Example:
        >>> text = "Use `a`.\\n\\n```sh\\nls\\n```\\n\\n    b\\n\\n<!-- c -->\\n"
        >>> [text[span.start : span.end].strip() for span in find_code(text)]
        ['`a`', '```sh\\nls\\n```', 'b', '<!-- c -->']
    """
    return _CodeFinder(text).find() if any(sign in text for sign in _HIDING) else iter(())


class _Line(NamedTuple):
    """A line behind the signs of the quotes and list items that it is in.

    `at` is where its text begins, `indent` the columns in front of that. `is_apart` says that it is no part of a
    paragraph, `is_opened` that a quote or an item begins with it.
    """

    at: int
    end: int
    indent: int
    is_blank: bool
    is_apart: bool
    is_opened: bool
    is_quoted: bool


class _CodeFinder:
    """One pass over the lines of a text, which finds code and comments."""

    def __init__(self, text: str) -> None:
        self._text = text
        #: Whether the next line may go on with a paragraph, and where that begins, or what is not searched yet.
        self._has_text, self._began = False, 0
        self._is_quoted = False
        #: The columns at which the open list items have their text.
        self._items: list[int] = []

    def find(self) -> Iterator[Span]:
        """Yield what is code or a comment."""
        text, place = self._text, 0
        while place < len(text):
            end = _end_of_line(text, place)
            # The most frequent lines first: one of a paragraph, and a blank one.
            if text[place] not in _OPENERS:
                if not self._has_text:
                    self._began, self._has_text, self._is_quoted = place, True, False
                    self._items.clear()
            elif text[place] == "\n":
                yield from self._search_until(place)
                self._is_quoted, self._has_text, self._began = self._is_quoted and self._has_text, False, end
            else:
                line = self._read_line(place, end)
                if line.is_opened:
                    yield from self._search_until(place)
                block = self._find_block(line) if line.is_apart or line.indent >= _TAB else None
                if block:
                    yield from self._search_until(place)
                    yield block
                    end = self._began = block.end
                    self._has_text = False
                elif line.is_blank or (line.is_apart and self._ends_paragraph(line)):
                    yield from self._search_until(place if line.is_blank else end)
                    self._began, self._has_text = end, False
                elif not self._has_text:
                    self._began, self._has_text = place, True
            place = end
        yield from self._search_until(len(text))

    def _search_until(self, end: int) -> Iterator[Span]:
        """Yield the code and comments within the paragraph that goes on to `end`."""
        began, self._began = self._began, end
        return _inline(self._text, began, end)

    def _read_line(self, place: int, end: int) -> _Line:
        """Read the signs in front of a line, and open or close the quote and the list items that it is in."""
        text, items = self._text, self._items
        quotes = _QUOTES.match(text, place, end) if text[place] in " >" else None
        left = at = quotes.end() if quotes else place
        is_opened = left > place and not self._is_quoted
        self._is_quoted = left > place or (self._is_quoted and self._has_text)
        if is_opened:
            self._has_text = False
            items.clear()
        while True:
            at = _past_blanks(text, at) if at < end and text[at] in " \t" else at
            column = _width(text[left:at]) if at > left else 0
            is_blank = at >= end or text[at] in "\r\n"
            sign = "" if is_blank else text[at]
            is_rule = sign in _RULES and _RULE.match(text, at, end) is not None
            is_apart = is_rule or (sign in _APART and _is_apart(text, at, end))
            item = _ITEM.match(text, at, end) if sign in _BULLETS and not is_rule else None
            if item or is_apart:
                self._is_quoted = left > place
            if not is_blank and (item or is_apart or not self._has_text):
                while items and items[-1] > column and not is_opened:
                    items.pop()
            indent = column - (items[-1] if items else 0)
            if item is None or indent >= _TAB or len(items) == _DEEPEST:
                return _Line(at, end, indent, is_blank, is_apart, is_opened, left > place)
            self._has_text, is_opened = False, True
            at = item.end()
            behind = _width(text[left : _past_blanks(text, at)]) - _width(text[left:at])
            items.append(_width(text[left:at]) + (behind if 0 < behind <= _TAB else 1))

    def _find_block(self, line: _Line) -> Span | None:
        """Return the indented code, the fence or the comment that a line begins with."""
        text, at, end = self._text, line.at, line.end
        if line.is_blank or line.indent >= _TAB:
            return None if line.is_blank or self._has_text else Span(at, end)
        if fence := _FENCE.match(text, at, end):
            column = self._items[-1] if self._items else 0
            return Span(at, _end_of_fence(text, end, fence[0], column, is_quoted=line.is_quoted))
        if _COMMENT.match(text, at, end) and (close := text.find("-->", at)) >= 0:
            return Span(at, close + 3)
        return None

    def _ends_paragraph(self, line: _Line) -> bool:
        """Return whether a line that is apart is a heading or a rule."""
        text, at, end = self._text, line.at, line.end
        return bool(_RULE.match(text, at, end) or _HEADING.match(text, at, end))


def _is_apart(text: str, at: int, end: int) -> bool:
    return bool(_HEADING.match(text, at, end) or _FENCE.match(text, at, end) or _COMMENT.match(text, at, end))


def _inline(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the code spans and comments within a paragraph."""
    if text.find("`", start, end) < 0 and text.find("<!--", start, end) < 0:
        return
    runs: dict[str, list[int]] = {}
    for run in _TICKS.finditer(text, start, end):
        runs.setdefault(run[0], []).append(run.start())
    place = start
    while found := _MARK.search(text, place, end):
        place = found.end()
        if found[0] == "<!--":
            inner = text.find("<!--", place, end)
            stop = text.find("-->", place, end if inner < 0 else inner) + 3
        else:
            # A backslash and a sign are no run.
            ends = runs.get(found[0], [])
            following = bisect_left(ends, place)
            stop = ends[following] + len(found[0]) if following < len(ends) else 0
        if stop > place:
            yield Span(found.start(), stop)
            place = stop


def _end_of_line(text: str, place: int) -> int:
    return text.find("\n", place) + 1 or len(text)


def _past_blanks(text: str, place: int) -> int:
    found = _BLANKS.match(text, place)
    return found.end() if found else place


def _width(lead: str) -> int:
    return len(lead.expandtabs(_TAB))


def _end_of_fence(text: str, place: int, mark: str, column: int, *, is_quoted: bool) -> int:
    """Return where a fence ends: behind its closing line, or where the quote or list item ends that it is in."""
    closing = rf"{re.escape(mark[0])}{{{len(mark)},}}[ \t]*\r?$\n?"
    if not column and not is_quoted:
        found = re.compile(f"^ {{0,3}}{closing}", re.MULTILINE).search(text, place)
        return found.end() if found else len(text)
    while place < len(text):
        end = _end_of_line(text, place)
        quotes = _QUOTES.match(text, place, end) if is_quoted else None
        left = quotes.end() if quotes else place
        if is_quoted and left == place:
            return place
        at = _past_blanks(text, left)
        indent = _width(text[left:at]) - column
        is_blank = at >= end or text[at] in "\r\n"
        if indent < 0 and not is_blank:
            return place
        if indent < _TAB and re.fullmatch(closing, text[at:end]):
            return end
        place = end
    return len(text)


def heading_text(line: str) -> str:
    """Return what a heading says, from the text behind its signs; closing signs are no part of it.

    Example:
        >>> heading_text("  Retry  twice ## "), heading_text(" C#")
        ('Retry twice', 'C#')
    """
    line = line.strip()
    bare = line.rstrip("#")
    return " ".join((bare if not bare or bare[-1] in " \t" else line).split())


class Heading(NamedTuple):
    """A heading: how deep it is, its words, and the place of its line."""

    level: int
    words: str
    span: Span


def find_headings(text: str) -> Iterator[Heading]:
    """Yield the headings of a text in their order; what looks like one in code is none.

    Example:
        >>> [(one.level, one.words) for one in find_headings("# Tea `x`\\n\\nGreen\\n-----\\n\\n```\\n# no\\n```\\n## Steps ##\\n")]
        [(1, 'Tea `x`'), (2, 'Green'), (2, 'Steps')]
    """
    for start, _, level, words in scan_blocks(text, 0, len(text)):
        if level <= 0 or not words:
            continue
        line = text[start : _end_of_line(text, start)].rstrip()
        # The last field of a block of frontmatter is no heading, though the rule that closes it underlines it.
        before = text[max(0, start - 4) : start].replace("\r", "")
        if level == 1 or line.lstrip()[0] == "#" or before in ("", "\n") or before.endswith("\n\n"):
            yield Heading(level, words, Span(start, start + len(line)))


def normal_heading(words: str) -> str:
    """Return a heading as links are compared with it: words alone, as links cannot hold all signs.

    Example:
        >>> normal_heading("Why **we** use: `uv`?") == normal_heading("why we use uv")
        True
    """
    return " ".join(MARKED_WORD.findall(name_key(words).replace("_", " "))) or words.strip()


def heading_address(words: str) -> str:
    """Return a heading as GitHub names it in addresses.

    Example:
        >>> heading_address("Why `uv`, not pip?")
        'why-uv-not-pip'
    """
    return re.sub(rf"[^\w{MARKS}\- ]", "", words.lower()).replace(" ", "-")


def heading_words_span(text: str, place: Span) -> Span:
    """Return where the words of a heading are in its line.

    Example:
        >>> heading_words_span("## Steps ##\\n", Span(0, 11))
        Span(start=3, end=8)
    """
    line = text[place.start : place.end]
    found = re.fullmatch(r"([ \t]*#{1,6}[ \t]+)(.*?)(?:[ \t]+#+)?[ \t]*", line)
    start = found.end(1) if found else len(line) - len(line.lstrip())
    return Span(place.start + start, place.start + (found.end(2) if found else len(line.rstrip())))


def say_missing(target: str, anchor: str, kind: str) -> str:
    """Return what is said of a link to a place that its note does not have."""
    what = f"block {anchor}" if anchor.startswith("^") else f"heading {anchor!r}"
    return f"the {kind} to '{target}#{anchor}' leads to a note without the {what}"


def find_anchor(text: str, anchor: str) -> Span | None:
    """Return the line of a heading, block or HTML anchor that a link names, or None.

    Example:
        >>> note = "# Tea\\n\\n## Steps\\n\\nBoil. ^b1\\n"
        >>> [note[one.start : one.end] for one in (find_anchor(note, "steps"), find_anchor(note, "^B1"), find_anchor(note, "Tea#Steps")) if one]
        ['## Steps', 'Boil. ^b1', '## Steps']
        >>> find_anchor('<a name="nope"></a>', "Nope"), find_anchor(note, "Nope")
        (Span(start=0, end=19), None)
    """
    anchor = anchor.strip()
    if anchor.startswith("^"):
        line = re.compile(
            rf"^[^\n]*?(?:^|[ \t\]])\^{re.escape(anchor[1:])}(?=[ \t]*\r?$)", re.MULTILINE | re.IGNORECASE
        )
        hidden = list(find_code(text)) if "^" in text else []
        places = (Span(*found.span()) for found in line.finditer(text))
        return next((one for one in places if not any(code.start < one.end <= code.end for code in hidden)), None)
    address = rf"\s(?:id|name)=[\"']?{re.escape(anchor)}[\"'\s/>]"
    named = re.compile(rf"^.*<\w[^<>\n]*{address}.*\S", re.IGNORECASE | re.MULTILINE).search(text)
    if named:
        return Span(*named.span())
    names = dict.fromkeys((anchor, _RANGE.sub("", anchor)))
    found = (_find_heading(text, name) or _find_address(text, name) for name in names)
    return next(filter(None, found), None)


def _find_heading(text: str, anchor: str) -> Span | None:
    """Return the heading that a link names by its words, perhaps behind those above it."""
    parts = [normal_heading(part) for part in anchor.split("#") if part.strip()]
    done = 0
    for heading in find_headings(text):
        if done < len(parts) and normal_heading(heading.words) == parts[done]:
            done += 1
            if done == len(parts):
                return heading.span
    return None


def _find_address(text: str, anchor: str) -> Span | None:
    """Return the heading that a link names as GitHub does, which numbers headings that say the same."""
    wanted, seen = anchor.lower(), dict[str, int]()
    for heading in find_headings(text):
        address = heading_address(heading.words)
        earlier = seen.get(address, 0)
        if wanted == (f"{address}-{earlier}" if earlier else address):
            return heading.span
        seen[address] = earlier + 1
    return None


def find_section(text: str, place: Span) -> Span:
    """Return the section that a heading opens, those below it included; of any other line that line.

    Example:
        >>> note = "# Tea\\n\\n## Steps\\n\\nBoil.\\n\\n## Milk\\n"
        >>> found = find_section(note, find_anchor(note, "steps"))
        >>> note[found.start : found.end]
        '## Steps\\n\\nBoil.\\n\\n'
    """
    return sections_by_heading(text).get(place, place)


def sections_by_heading(text: str) -> dict[Span, Span]:
    """Return the section that each heading opens, by the place of its line.

    Example:
        >>> found = sections_by_heading("# Tea\\n## Steps\\n### Boil\\n## Milk\\n")
        >>> [(section.start, section.end) for section in found.values()]
        [(0, 32), (6, 24), (15, 24), (24, 32)]
    """
    found: dict[Span, Span] = {}
    opened: list[Heading] = []
    for heading in find_headings(text):
        while opened and opened[-1].level >= heading.level:
            place = opened.pop().span
            found[place] = Span(place.start, heading.span.start)
        opened.append(heading)
        found[heading.span] = Span(heading.span.start, len(text))
    return found


_ATX = lazy_regex(r" {0,3}(#{1,6})(?=[ \t\r]|$)")
_BLOCKS_ITEM = lazy_regex(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|\r?$)")
_CONTAINERS = "`~<"
_SPECIAL = frozenset("#=|>_" + _CONTAINERS) | _BULLETS

#: The level of a block that should be left whole: a fence, a table, a list item.
WHOLE = -1
#: Where a block starts, where it ends with its line break, its heading level (1 to 6, 0 for
#: text, WHOLE), and its heading.
Block = tuple[int, int, int, str]


def scan_blocks(text: str, start: int, end: int) -> Iterator[Block]:
    """Yield the blocks between two places of a text, in order.

    The blank lines between them are left out. One loop over the lines with all its state in local
    variables: this is the innermost loop of indexing, and calls made it three times slower.

    Example:
        >>> text = "# One\\npara\\n\\n- item\\n  more\\n- next\\n"
        >>> [text[start:end].strip() for start, end, _, _ in scan_blocks(text, 0, len(text))]
        ['# One', 'para', '- item\\n  more', '- next']
    """
    opened = -1  # where the open block starts, or -1
    closed = 0  # where its last line ends, line break included
    level = 0  # of the open block: 0 or WHOLE
    is_item = is_text = after_blank = False
    closing = ""  # what ends the fence or comment we are in
    for line in text[start:end].split("\n"):
        place = start
        start += len(line) + 1
        bare = line.strip()
        if closing:
            closed = start
            if "-->" in bare if closing == "-->" else len(bare) >= len(closing) and not bare.strip(closing[0]):
                closing = ""
                if not is_item:
                    yield opened, closed, level, ""
                    opened = -1
            continue
        if not bare:
            after_blank = True
            if opened >= 0 and not is_item:
                yield opened, closed, level, ""
                opened = -1
            continue
        first = bare[0]
        if is_item and opened >= 0:
            if line[0] == "\t" or line[:2] == "  ":
                closed = start
                after_blank = False
                if first in _CONTAINERS:
                    closing = _closing_of(bare)
                continue
            if after_blank:
                yield opened, closed, level, ""
                opened = -1
        after_blank = False
        if first not in _SPECIAL or line[:4] == "    " or line[0] == "\t":
            if opened < 0:
                opened, level, is_item, is_text = place, 0, False, line[:4] != "    " and line[0] != "\t"
            closed = start
        elif first == "#" and (heading := _ATX.match(line)):
            if opened >= 0:
                yield opened, closed, level, ""
                opened = -1
            yield place, start, len(heading[1]), heading_text(line[heading.end() :])
        elif first in "=-" and opened >= 0 and is_text and not bare.strip(first):
            yield opened, start, 1 if first == "=" else 2, " ".join(text[opened:closed].split())
            opened = -1
        elif first in "-*_" and _RULE.match(bare):
            if opened >= 0:
                yield opened, closed, level, ""
                opened = -1
            yield place, start, 0, ""
        elif (
            first in _BULLETS
            and (opened < 0 or is_item or first in "-*+" or bare[:2] in ("1.", "1)"))
            and (marker := _BLOCKS_ITEM.match(line))
        ):
            if opened >= 0:
                yield opened, closed, level, ""
            opened, closed, level, is_item, is_text = place, start, WHOLE, True, False
            rest = line[marker.end() :].strip()
            closing = _closing_of(rest) if rest and rest[0] in _CONTAINERS else ""
        elif first in _CONTAINERS and ((first == "<" and bare.startswith("<!--")) or _FENCE.match(bare)):
            if opened >= 0:
                yield opened, closed, level, ""
            opened, closed, level, is_item, is_text = place, start, 0 if first == "<" else WHOLE, False, False
            closing = _closing_of(bare)
            if not closing:
                yield opened, closed, level, ""
                opened = -1
        else:
            if opened < 0:
                opened, level, is_item, is_text = place, WHOLE if first == "|" else 0, False, first not in "|>"
            closed = start
    if opened >= 0:
        yield opened, closed, level, ""


def _closing_of(bare: str) -> str:
    """Return what ends the fence or comment that a line opens, or no text."""
    if bare[0] == "<":
        return "-->" if bare.startswith("<!--") and "-->" not in bare[4:] else ""
    fence = _FENCE.match(bare)
    return fence[0] if fence else ""
