"""Parse links to notes (`[[wikilinks]]`, relative Markdown links) and tags."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple
from urllib.parse import quote, unquote

from memory_kb.lazy_regex import lazy_regex
from memory_kb.markdown.code_spans import find_code
from memory_kb.model import Span
from memory_kb.terms import MARKS

#: The target in the first group, none for the note itself, then heading or block, then what is shown.
WIKILINK = lazy_regex(r"\[\[([^\[\]|#\n\\]*)(#[^\[\]|\n\\]*)?(\\?\|[^\[\]\n]*)?\]\]")
_ATTACHMENT = lazy_regex(
    r"\.(?:avif|bmp|gif|jpe?g|png|svg|webp|tiff?|3gp|flac|m4a|mp3|ogg|opus|wav|mkv|mov|mp4|ogv|webm|pdf|canvas|base|csv|zip|docx?|xlsx?|pptx?)$",
    re.IGNORECASE,
)
_SIGN = lazy_regex(r"[^\n]")
#: Backslashes in a row that are counted.
_MOST_SIGNS = 16


#: A Markdown link from the end of what is shown, or the line that defines a reference: the note's path, none for the
#: note itself, perhaps in angle brackets, then a heading: both are two groups. Addresses have a colon before their first
#: slash, paths do not.
_PATH = (
    r"(?:<(?!//)([^<>:#\n]++(?<=\.md))?(#[^<>\n]*+)?>|"
    r"(?!//)((?:[^\s<>()#:?]++|\([^\s<>()#:?]*+\))+(?<=\.md))?(#[^\s()]*+)?)"
)
_TITLE = r"""(?:\s+(?:"[^"]*"|'[^']*'|\([^()]*\)))?"""
_INLINE_LINK = lazy_regex(rf"\]\(\s*+{_PATH}{_TITLE}\s*\)", re.IGNORECASE)
_REFERENCE = lazy_regex(
    rf"^ {{0,3}}\[(?!\^)[^\[\]\n]+\]:[ \t]*+{_PATH}{_TITLE}[ \t]*\r?$", re.IGNORECASE | re.MULTILINE
)
_BRACKET = lazy_regex(r"(?<!\\)[\[\]]|\n[ \t]*\r?\n")
#: What is shown of a link is no longer than this.
_MOST_SHOWN = 1_000


def is_attachment(name: str) -> bool:
    """Return whether a file is a picture, a recording or another that is no note, by its name.

    Example:
        >>> is_attachment("img/a.PNG"), is_attachment("a.md"), is_attachment("v1.2")
        (True, False, False)
    """
    return _ATTACHMENT.search(name) is not None


class TextLink(NamedTuple):
    """A link to a note as it is written in a text.

    `target` is the note it names, without the blanks around it: a name, or the path of a Markdown link; `span` is where
    that is written, and `whole` where all of it is, brackets included; for a reference, the line that defines it.
    `anchor` is the heading or `^block` within the note, or "". An embed is shown in its place.
    """

    target: str
    span: Span
    whole: Span
    anchor: str
    is_embed: bool
    is_wikilink: bool = True
    anchor_span: Span = Span(0, 0)

    @property
    def is_attachment(self) -> bool:
        """Whether it names a picture, a recording or another file that is no note."""
        return self.is_wikilink and is_attachment(self.target)


def find_links(text: str, start: int = 0, end: int | None = None, *, with_own: bool = False) -> Iterator[TextLink]:
    """Yield the links of a text to notes, or of a stretch of it, in their order; code and comments hold none.

    Example:
        >>> text = "[[A#Why|here]] [b](../my%20b.md#part 'Title') [c](https://c.org/c.md)\\n\\n[d]: d.md\\n"
        >>> [(link.target, link.anchor, link.is_wikilink) for link in find_links(text)]
        [('A', 'Why', True), ('../my b.md', 'part', False), ('d.md', '', False)]
    """
    stop = len(text) if end is None else end
    named = (*_wikilinks(text, start, stop), *_markdown_links(text, start, stop))
    found = [link for link in named if link.target or (with_own and link.anchor)]
    if not found:
        return
    hidden = find_code(text[start:stop])
    code = next(hidden, None)
    for link in sorted(found, key=lambda link: link.span):
        place = link.span.start - start
        while code and code.end <= place:
            code = next(hidden, None)
        if not (code and code.start <= place):
            yield link


_PERCENTS = lazy_regex("%%")


def find_percent_comments(text: str) -> tuple[Span, ...]:
    """Return the comments that Obsidian hides, whose links count in its graph; signs in code begin and end none.

    Example:
        >>> find_percent_comments("Tea. %% see [[Milk#Cold]] %% 5 %")
        (Span(start=5, end=28),)
    """
    if "%%" not in text:
        return ()
    code = list(find_code(text))
    signs = [found.start() for found in _PERCENTS.finditer(text) if not is_within(found.start(), code)]
    return tuple(Span(start, end + 2) for start, end in zip(signs[::2], signs[1::2], strict=False))


def is_within(place: int, spans: Sequence[Span]) -> bool:
    """Return whether a place is in one of some stretches, which are in their order.

    Example:
        >>> is_within(4, [Span(0, 2), Span(3, 5)]), is_within(2, [Span(0, 2), Span(3, 5)])
        (True, False)
    """
    before = bisect_right(spans, place, key=attrgetter("start"))
    return before > 0 and place < spans[before - 1].end


_PICTURE = lazy_regex(r"!\[[^\[\]\n]*\]\((?![a-zA-Z][\w+.-]*:|[/#])(?:<([^<>\n]+)>|([^\s()<>#?]+))[^()\n]*\)")


def find_pictures(text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[str, Span]]:
    """Yield the names or paths of pictures and other files that a text shows, each with where it does.

    Example:
        >>> [name for name, _ in find_pictures("![[a.png|300]] ![b](../my%20b.jpg) `![[c.png]]` ![](https://d.org/d.png)")]
        ['a.png', '../my b.jpg']
    """
    stop = len(text) if end is None else end
    for link in find_links(text, start, stop):
        if link.is_attachment:
            yield link.target, link.whole
    bare = without_code(text) if text.find("](", start, stop) >= 0 else ""
    for found in _PICTURE.finditer(bare, start, stop):
        name = unquote(found[1] or found[2])
        if is_attachment(name):
            yield name, Span(*found.span())


def _wikilinks(text: str, start: int, stop: int) -> Iterator[TextLink]:
    if text.find("[[", start, stop) < 0:
        return
    for found in WIKILINK.finditer(text, start, stop):
        named = found[1]
        if _is_escaped(text, found.start(), start):
            continue
        begin = found.start(1) + len(named) - len(named.lstrip())
        is_embed = found.start() > start and text[found.start() - 1] == "!"
        whole = Span(found.start() - is_embed, found.end())
        anchor = (found[2] or "")[1:]
        place = found.end(2) - len(anchor.lstrip()) if anchor else found.end(1)
        yield TextLink(
            named.strip(),
            Span(begin, begin + len(named.strip())),
            whole,
            anchor.strip(),
            is_embed,
            anchor_span=Span(place, place + len(anchor.strip())),
        )


def _markdown_links(text: str, start: int, stop: int) -> Iterator[TextLink]:
    if text.find("](", start, stop) >= 0:
        for found in _INLINE_LINK.finditer(text, start, stop):
            opening = _opening_bracket(text, found.start(), start)
            if opening is not None and not _is_escaped(text, found.start(), start):
                is_embed = opening > start and text[opening - 1] == "!"
                yield _markdown_link(found, opening - is_embed, is_embed=is_embed)
    if text.find("]:", start, stop) >= 0:
        for found in _REFERENCE.finditer(text, start, stop):
            yield _markdown_link(found, found.start(), is_embed=False)


def _markdown_link(found: re.Match[str], start: int, *, is_embed: bool) -> TextLink:
    group = 1 if found[1] or found[2] else 3
    name, part = found.group(group, group + 1)
    begin, end = found.span(group if name else group + 1)
    end = end if name else begin
    return TextLink(
        unquote(name or ""),
        Span(begin, end),
        Span(start, found.end()),
        unquote(part[1:]) if part else "",
        is_embed,
        is_wikilink=False,
        anchor_span=Span(found.start(group + 1) + 1, found.end(group + 1)) if part else Span(end, end),
    )


def _opening_bracket(text: str, closing: int, start: int) -> int | None:
    """Return where the bracket is that a closing one belongs to, within its paragraph."""
    depth, start = 1, max(start, closing - _MOST_SHOWN)
    nearest = text.rfind("[", start, closing)
    if nearest > start and not _BRACKET.search(text, nearest + 1, closing) and text[nearest - 1] != "\\":
        return nearest
    for sign in reversed(list(_BRACKET.finditer(text, start, closing))):
        if sign[0] not in ("[", "]"):
            return None
        depth += 1 if sign[0] == "]" else -1
        if depth == 0:
            return sign.start()
    return None


def _is_escaped(text: str, place: int, start: int) -> bool:
    before = text[max(start, place - _MOST_SIGNS) : place]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def rewrite_targets(text: str, new_name: Callable[[str], str | None]) -> str:
    """Return a text with the targets of its links exchanged; None leaves one as it is.

    Example:
        >>> rewrite_targets("[[Old|shown]] [[Other]]", lambda name: "New" if name == "Old" else None)
        '[[New|shown]] [[Other]]'
        >>> rewrite_targets("[x](old.md 'Title') [y](<old.md>)", lambda name: "my tea.md")
        "[x](my%20tea.md 'Title') [y](<my tea.md>)"
    """
    return _replace(text, ((link, link.span, new_name(link.target)) for link in find_links(text)))


def rewrite_anchors(text: str, new_anchor: Callable[[TextLink], str | None]) -> str:
    """Return a text with the headings that its links name exchanged; None leaves one as it is.

    Example:
        >>> rewrite_anchors("[[a#Old|x]] [[#Old]] [y](a.md#old)", lambda link: "New" if link.is_wikilink else "new")
        '[[a#New|x]] [[#New]] [y](a.md#new)'
    """
    links = (link for link in find_links(text, with_own=True) if link.anchor)
    return _replace(text, ((link, link.anchor_span, new_anchor(link)) for link in links))


def _replace(text: str, news: Iterable[tuple[TextLink, Span, str | None]]) -> str:
    pieces, done = [], 0
    for link, span, words in news:
        if words is not None:
            is_quoted = link.is_wikilink or text[link.span.start - 1] == "<"
            pieces += [text[done : span.start], words if is_quoted else escape_address(words)]
            done = span.end
    return "".join((*pieces, text[done:]))


def escape_address(words: str) -> str:
    """Return words as they can stand in the round brackets of a Markdown link.

    Example:
        >>> escape_address("grüner Tee (neu).md")
        'grüner%20Tee%20%28neu%29.md'
    """
    return re.sub(r"[\s()<>#?%]", lambda sign: quote(sign[0], ""), words)


def without_code(text: str) -> str:
    """Return a text in which code and comments are replaced by as many blanks.

    Example:
        >>> without_code("See `#no` #yes")
        'See       #yes'
    """
    pieces, done = [], 0
    for span in find_code(text):
        pieces += [text[done : span.start], _SIGN.sub(" ", text[span.start : span.end])]
        done = span.end
    return "".join((*pieces, text[done:]))


#: A tag begins a line, or is behind a blank, an opening bracket or a mark of emphasis.
_TAG = lazy_regex(rf"#(?<![^\s(*>,;、。，（「]#)(?<!\]\(#)([^\W_][\w{MARKS}/-]*+)(?![.+=@:\[{{]\w|[+(])", re.MULTILINE)
#: What names other things: links and their targets, addresses, HTML.
_ELSEWHERE = lazy_regex(r"\[\[[^\]\n]*\]\]|\]\([^)\n]*\)|\b[a-z][a-z0-9+.-]*://\S+|<[^<>\n]*>|&#\w+;", re.IGNORECASE)


def find_tags(text: str) -> tuple[str, ...]:
    """Return the `#tags` in a text, each once, as Obsidian knows them: none in headings, numbers of issues, links or code.

    Example:
        >>> find_tags("# Head\\nUses #sqlite and (#db/index), issue #12, `#no`, [x](#y).")
        ('sqlite', 'db/index')
    """
    if not _TAG.search(text):
        return ()
    tags = (
        found[1].rstrip("/-")
        for found in _TAG.finditer(_ELSEWHERE.sub(lambda other: " " * len(other[0]), without_code(text)))
    )
    return tuple(dict.fromkeys(tag for tag in tags if any(sign.isalpha() for sign in tag)))
