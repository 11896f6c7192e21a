"""Cut entries into sections, and sections into passages.

A section is what is indexed and scored, a passage is what is returned of it. Both are cut where
the text itself pauses.
"""

import functools
from collections.abc import Iterator
from typing import NamedTuple

from memory_kb.lazy_regex import lazy_regex
from memory_kb.markdown.blocks import Block, scan_blocks


class Sizes(NamedTuple):
    """How long pieces are, in characters.

    A text up to `whole` is one piece. In a longer one a heading closes a piece of at least
    `heading`, any block one of at least `target`, and none is longer than `limit`.
    """

    whole: int
    heading: int
    target: int
    limit: int


SECTION = Sizes(whole=1_600, heading=400, target=1_200, limit=2_400)
PASSAGE = Sizes(whole=400, heading=200, target=400, limit=600)
#: A piece shorter than this joins the one before it.
_RUNT = 120

_SENTENCE_END = lazy_regex(r"(?<=[.!?…؟])[\"')\]]*\s+|(?<=[。！？｡])|\n")


class Piece(NamedTuple):
    """A piece's place in the text and the headings it is under."""

    start: int
    end: int
    headings: tuple[str, ...]


def split_text(text: str, start: int, end: int, sizes: Sizes = SECTION) -> list[Piece]:
    """Cut the text between two places into pieces; blank text gives none.

    Example:
        >>> text = "# Guide\\n\\n" + "\\n\\n".join(f"## Part {n}\\n\\n" + "Some words. " * 60 for n in (1, 2, 3))
        >>> [(piece.headings, piece.end - piece.start) for piece in split_text(text, 0, len(text))]
        [(('Guide',), 739), (('Guide', 'Part 2'), 730), (('Guide', 'Part 3'), 730)]
    """
    end = _trim(text, start, end)
    if start < end and end - start <= sizes.whole:
        first = next(scan_blocks(text, start, end), None)
        if first is None:
            return []
        place, _, level, heading = first
        return [Piece(place, end, (heading,) if level > 0 else ())]
    return _merge_runts(_pack(text, scan_blocks(text, start, end), sizes), sizes.limit)


# The sections that answer one question answer others like it.
@functools.lru_cache(maxsize=2_000)
def cut_passages(text: str) -> tuple[Piece, ...]:
    """Return the passages of a section.

    Example:
        >>> [piece.end - piece.start for piece in cut_passages("Some words. " * 90)]
        [599, 479]
    """
    return tuple(split_text(text, 0, len(text), PASSAGE))


def _pack(text: str, blocks: Iterator[Block], sizes: Sizes) -> Iterator[Piece]:
    """Join neighbouring blocks up to the target size; a heading stays with the text below it."""
    path: list[tuple[int, str]] = []
    under: tuple[str, ...] = ()
    headings = under
    start = stop = -1
    is_headed = False  # the piece so far is headings alone
    run, run_headings = -1, under  # where the headings begin that the piece so far ends with
    for block_start, block_stop, level, heading in blocks:
        if level > 0:
            while path and path[-1][0] >= level:
                path.pop()
            path.append((level, heading))
            under = tuple(heading for _, heading in path)
        length = stop - start
        if start >= 0 and (
            (not is_headed and (length >= sizes.target or (level > 0 and length >= sizes.heading)))
            or block_stop - start > sizes.limit
        ):
            if start < run:
                yield Piece(start, _trim(text, start, run), headings)
                start, headings, is_headed = run, run_headings, True
            else:
                yield Piece(start, _trim(text, start, stop), headings)
                start = -1
        if start < 0:
            start, headings, is_headed = block_start, under, True
        is_headed = is_headed and level > 0
        if level <= 0:
            run = -1
        elif run < start:
            run, run_headings = block_start, under
        stop = block_stop
        if stop - start > sizes.limit:
            *complete, (start, _) = _cut_long(text, start, _trim(text, start, stop), sizes.limit)
            for piece_start, piece_stop in complete:
                yield Piece(piece_start, piece_stop, headings)
                headings = under
    if start >= 0:
        yield Piece(start, _trim(text, start, stop), headings)


def _trim(text: str, start: int, end: int) -> int:
    """Return `end` moved back over white space."""
    return start + len(text[start:end].rstrip(" \t\r\n"))


def _merge_runts(pieces: Iterator[Piece], limit: int) -> list[Piece]:
    merged: list[Piece] = []
    for piece in pieces:
        if merged and piece.end - piece.start < _RUNT and piece.end - merged[-1].start <= limit:
            merged[-1] = merged[-1]._replace(end=piece.end)
        else:
            merged.append(piece)
    return merged


def _cut_long(text: str, start: int, end: int, limit: int) -> Iterator[tuple[int, int]]:
    """Cut a unit that is too long at its lines or sentences, each cut as late as the limit allows."""
    while end - start > limit:
        cut = _last_break(text, start, start + limit)
        stop = _trim(text, start, cut)
        if stop > start:
            yield start, stop
        start = cut
        while start < end and text[start] in " \t\r\n":
            start += 1
    yield start, end


def _last_break(text: str, start: int, stop: int) -> int:
    """Return the last good place to cut before `stop`: after a sentence or line, else a word."""
    least = (stop - start) // 6
    for begin in (stop - (stop - start) // 3, start):
        best = max((found.end() for found in _SENTENCE_END.finditer(text, begin, stop)), default=-1)
        if best - start >= least:
            return best
    space = max(text.rfind(" ", start, stop), text.rfind("\n", start, stop), text.rfind("\t", start, stop))
    return space + 1 if space - start >= least else stop
