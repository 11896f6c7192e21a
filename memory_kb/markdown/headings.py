"""Find the headings of Markdown, the sections that they open, the bullets below them, and the places that links name."""

import functools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from memory_kb.lazy_regex import lazy_regex
from memory_kb.markdown.blocks import scan_blocks
from memory_kb.markdown.code_spans import find_code
from memory_kb.markdown.lists_and_fences import find_items
from memory_kb.model import Span
from memory_kb.terms import MARKED_WORD, MARKS, name_key


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
        line = text[start : text.find("\n", start) + 1 or len(text)].rstrip()
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


def find_anchor(text: str, anchor: str) -> Span | None:
    """Return the line of a heading, block, HTML anchor or `{#anchor}` that a link names, or None.

    Example:
        >>> note = "# Tea\\n\\n## Steps\\n\\nBoil. ^b1\\n"
        >>> [note[one.start : one.end] for one in (find_anchor(note, "steps"), find_anchor(note, "^B1"), find_anchor(note, "Tea#Steps")) if one]
        ['## Steps', 'Boil. ^b1', '## Steps']
        >>> find_anchor('<a name="nope"></a>', "Nope"), find_anchor(note, "Nope")
        (Span(start=0, end=19), None)
    """
    anchor = anchor.strip()
    if anchor.startswith("^"):
        block = rf"^[^\n]*?(?:^|[ \t\]])(?P<prose>\^{re.escape(anchor[1:])})(?=[ \t]*\r?$)"
        return _find_outside_code(block, text)
    quoted = re.escape(anchor)
    element, braces = rf"<\w[^<>\n]*\s(?:id|name)=[\"']?{quoted}[\"'\s/>]", rf"\{{[^{{}}\n]*#{quoted}(?=[\s}}])"
    is_written = anchor.lower() in text.lower()
    if is_written and (found := _find_outside_code(rf"^.*(?:{element}|(?P<prose>{braces})).*\S", text)):
        return found
    headings = _all_headings(text)
    return _find_by_words(headings, anchor) or _find_by_address(headings, anchor)


# Many links lead to the parts of one note.
@functools.lru_cache(maxsize=1)
def _all_headings(text: str) -> tuple[Heading, ...]:
    return tuple(find_headings(text))


def _find_outside_code(line: str, text: str) -> Span | None:
    """Return the first line that matches an expression, without those where its group `prose` is in code."""
    found = list(re.compile(line, re.IGNORECASE | re.MULTILINE).finditer(text))
    hidden = list(find_code(text)) if any(one["prose"] for one in found) else []
    seen = (one for one in found if not any(code.start < one.end("prose") <= code.end for code in hidden))
    return next((Span(*one.span()) for one in seen), None)


def _find_by_words(headings: Sequence[Heading], anchor: str) -> Span | None:
    """Return the heading that a link names by its words, perhaps behind those above it."""
    parts = [normal_heading(part) for part in anchor.split("#") if part.strip()]
    for heading in headings if parts else ():
        if normal_heading(heading.words) == parts[0]:
            del parts[0]
            if not parts:
                return heading.span
    return None


def _find_by_address(headings: Sequence[Heading], anchor: str) -> Span | None:
    """Return the heading that a link names as GitHub does, which numbers headings that say the same.

    GitBook and MkDocs leave out accents.
    """
    wanted, seen = _without_accents(anchor.lower()), Counter[str]()
    for heading in headings:
        address = _without_accents(heading_address(heading.words))
        if wanted == (f"{address}-{seen[address]}" if seen[address] else address):
            return heading.span
        seen[address] += 1
    return None


def _without_accents(address: str) -> str:
    import unicodedata

    return re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFD", address))


def sections_by_heading(text: str) -> dict[Span, Span]:
    """Return the section that each heading opens, those below it included, by the place of its line.

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


_COMMENT = lazy_regex(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_FRONT = lazy_regex(r"\A\ufeff?---[ \t]*\r?\n.*?^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)
#: A block that memory-kb keeps in a file of other people.
OWN_BLOCK = lazy_regex(r"<!--\s*memory-kb:(?:begin|start)\b[^>]*-->.*?(?:<!--\s*memory-kb:end\s*-->|\Z)", re.DOTALL)


class Bullet(NamedTuple):
    """A bullet with all that belongs to it, or a paragraph; `headings` are those above it, the outermost first."""

    text: str
    line: int
    headings: tuple[str, ...]
    is_bullet: bool


def read_outline(text: str) -> Iterator[Bullet]:
    """Yield the outermost bullets and the paragraphs of a text.

    What is indented below a bullet is part of it. Frontmatter, comments and memory-kb's own blocks are left out.

    Example:
        >>> outline = read_outline("# A\\n## B\\n- one\\n  more\\n  - sub\\n- two\\n\\nPara.\\n")
        >>> [(item.text, item.headings[-1], item.line) for item in outline]
        [('one\\nmore\\n- sub', 'B', 3), ('two', 'B', 6), ('Para.', 'B', 8)]
    """
    text = _COMMENT.sub(_blank, OWN_BLOCK.sub(_blank, _FRONT.sub(_blank, text.replace("\r\n", "\n"))))
    above: list[tuple[int, str]] = []
    line, counted = 1, 0
    for start, end, level, words in scan_blocks(text, 0, len(text)):
        if level > 0:
            above = [*(one for one in above if one[0] < level), (level, words)]
            continue
        line, counted = line + text.count("\n", counted, start), start
        items = find_items(text, Span(start, end))
        said = items[0].text if items else text[start:end].strip()
        yield Bullet(said, line, tuple(words for _, words in above), bool(items))


def _blank(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")
