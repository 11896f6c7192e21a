"""Find the code and the comments in Markdown."""

from bisect import bisect_left
from collections.abc import Iterator

from memory_kb.lazy_regex import lazy_regex
from memory_kb.markdown.lists_and_fences import FenceState
from memory_kb.model import Span

_QUOTES = lazy_regex(r"(?: {0,3}>[ \t]?)+")
#: A line that ends a paragraph: a blank one, a rule, a heading or the item of a list.
_OPENING = lazy_regex(r"[ \t]*(?:\r?$|-{3,}[ \t]*\r?$|#{1,6}[ \t]|[-*+][ \t]|\d{1,9}[.)][ \t])")
#: What may begin code or a comment within a paragraph; a backslash takes a sign its meaning.
_MARK = lazy_regex(r"\\[\\`<]|<!--|`+")
_TICKS = lazy_regex("`+")
#: How a line may begin that does not just go on with a paragraph or begin one.
_OPENERS = frozenset(" \t\r\n>#`~<-*+0123456789")
#: Without one of these a text holds neither code nor comments.
_HIDING = ("`", "    ", "\t", "<!--", "~~~")


def find_code(text: str) -> Iterator[Span]:
    """Yield the stretches of a text that are code or comments, in their order.

    Example:
        >>> text = "Use `a`.\\n\\n```sh\\nls\\n```\\n\\n    b\\n\\n<!-- c -->\\n"
        >>> [text[span.start : span.end].strip() for span in find_code(text)]
        ['`a`', '```sh\\nls\\n```', 'b', '<!-- c -->']
    """
    if any(sign in text for sign in _HIDING):
        for start, end, is_code in _pieces(text):
            yield from (Span(start, end),) if is_code else _inline(text, start, end)


def _pieces(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield where each paragraph, and each stretch of code or comment, begins and ends, and whether it is code."""
    state, is_quoted, was_code = FenceState(), False, False
    place = began = 0  # where a line begins, and the piece that it may be part of
    while place < len(text):
        if state.mark and not state.column and not is_quoted:
            # Nothing ends a fence before its mark.
            marked = text.find(state.mark, place)
            place = text.rfind("\n", 0, marked) + 1 if marked >= 0 else len(text)
        end = text.find("\n", place) + 1 or len(text)
        sign = text[place : place + 1]
        if not was_code and (sign == "\n" or sign not in _OPENERS):
            state.is_after_blank = sign == "\n"
            if state.is_after_blank:
                yield began, place, False
                began = end
            place = end
            continue
        quotes = None if state.mark and not is_quoted else _QUOTES.match(text, place, end)
        is_turn = is_quoted != bool(quotes)
        if is_turn:
            state, is_quoted = FenceState(), not is_quoted
        line = text[quotes.end() if quotes else place : end]
        is_code = state.advance(line) or state.is_indented
        is_comment = not is_code and line.lstrip().startswith("<!--")
        if is_turn or is_code != was_code or is_comment or (not is_code and _OPENING.match(line)):
            yield began, place, was_code
            began = place
        was_code = is_code
        if is_comment and (close := text.find("-->", place)) >= 0:
            yield place, close + 3, True
            began = end = close + 3
        place = end
    yield began, len(text), was_code


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
