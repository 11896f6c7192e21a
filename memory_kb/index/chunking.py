"""Entries into chunks: pieces small enough to be an answer.

They are cut where the text itself pauses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memory_kb.index.blocks import WHOLE, Block, scan_blocks

#: Characters. An entry up to SHORT is one chunk; longer text is packed to about TARGET and never
#: beyond LIMIT, except for one fence, table or list item, which may reach SHORT (architecture §5).
SHORT = 1_600
TARGET = 400
LIMIT = 1_200
#: A last piece shorter than this joins the one before it.
_RUNT = 120

_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"')\]]*\s+|(?<=[。！？｡])|\n")


class Piece(NamedTuple):
    """A chunk's place in the text and the headings it stands under."""

    start: int
    end: int
    headings: tuple[str, ...]


def split_text(text: str, start: int, end: int) -> list[Piece]:
    """Cut the text between two places into chunks; blank text gives none.

    Example:
        >>> text = "# Guide\\n\\n" + "\\n\\n".join(f"## Part {n}\\n\\n" + "Some words. " * 40 for n in (1, 2, 3, 4))
        >>> [(piece.headings, piece.end - piece.start) for piece in split_text(text, 0, len(text))]
        [(('Guide',), 499), (('Guide', 'Part 2'), 490), (('Guide', 'Part 3'), 490), (('Guide', 'Part 4'), 490)]
    """
    while end > start and text[end - 1] in " \t\r\n":
        end -= 1
    if start < end and end - start <= SHORT:
        first = next(scan_blocks(text, start, end), None)
        if first is None:
            return []
        place, _, level, heading = first
        return [Piece(place, end, (heading,) if level > 0 else ())]
    return list(_merge_runt(_pack(text, scan_blocks(text, start, end))))


def _pack(text: str, blocks: Iterator[Block]) -> Iterator[Piece]:
    """Join neighbouring blocks up to the target size.

    A heading always goes with what follows it.
    """
    path: list[tuple[int, str]] = []
    under: tuple[str, ...] = ()
    start = stop = held = held_stop = -1
    headings = held_under = under
    for block_start, block_stop, level, heading in blocks:
        if level > 0:
            while path and path[-1][0] >= level:
                path.pop()
            path.append((level, heading))
            if held >= 0 and block_stop - held > LIMIT:
                if start >= 0:
                    yield from _emit(text, start, stop, headings)
                    start = -1
                yield from _emit(text, held, held_stop, held_under)
                held = -1
            under = tuple(heading for _, heading in path)
            if held < 0:
                held, held_under = block_start, under
            held_stop = block_stop
            continue
        unit = held if held >= 0 else block_start
        if start >= 0 and (stop - start >= TARGET or block_stop - start > LIMIT):
            yield Piece(start, _trim(text, stop), headings)
            start = -1
        if start < 0:
            start, headings = unit, held_under if held >= 0 else under
        stop, held = block_stop, -1
        if stop - start > LIMIT:
            *complete, (start, _) = cut_long(text, start, _trim(text, stop), is_whole=level == WHOLE)
            for piece_start, piece_stop in complete:
                yield Piece(piece_start, piece_stop, headings)
                headings = under
    if held >= 0 and start >= 0 and held_stop - start <= LIMIT:
        stop, held = held_stop, -1
    if start >= 0:
        yield Piece(start, _trim(text, stop), headings)
    if held >= 0:
        yield from _emit(text, held, held_stop, held_under)


def _emit(text: str, start: int, stop: int, headings: tuple[str, ...]) -> Iterator[Piece]:
    for piece_start, piece_stop in cut_long(text, start, _trim(text, stop), is_whole=False):
        yield Piece(piece_start, piece_stop, headings)


def _trim(text: str, place: int) -> int:
    """Return `place` moved back over white space."""
    place = min(place, len(text))
    while text[place - 1] in " \t\r\n":
        place -= 1
    return place


def _merge_runt(pieces: Iterator[Piece]) -> Iterator[Piece]:
    last: Piece | None = None
    for piece in pieces:
        if last is None:
            last = piece
        elif piece.end - piece.start < _RUNT and piece.end - last.start <= LIMIT:
            last = last._replace(end=piece.end)
        else:
            yield last
            last = piece
    if last:
        yield last


def cut_long(text: str, start: int, end: int, *, is_whole: bool) -> Iterator[tuple[int, int]]:
    """Cut a unit that is too long at its lines or sentences.

    Each cut is as late as the limit allows. A fence, table or list item (`is_whole`) of up to
    `SHORT` characters is left whole.

    Example:
        >>> [b - a for a, b in cut_long("word " * 500, 0, 2499, is_whole=False)]
        [1199, 1199, 99]
    """
    if is_whole and end - start <= SHORT:
        yield start, end
        return
    while end - start > LIMIT:
        cut = _last_break(text, start, start + LIMIT)
        stop = cut
        while stop > start and text[stop - 1] in " \t\r\n":
            stop -= 1
        if stop > start:
            yield start, stop
        start = cut
        while start < end and text[start] in " \t\r\n":
            start += 1
    yield start, end


def _last_break(text: str, start: int, limit: int) -> int:
    """Return the last good place to cut before `limit`.

    That is after a sentence or line, else a word.
    """
    best = -1
    for found in _SENTENCE_END.finditer(text, start, limit):
        best = found.end()
    if best - start >= TARGET // 2:
        return best
    space = max(text.rfind(" ", start, limit), text.rfind("\n", start, limit), text.rfind("\t", start, limit))
    return space + 1 if space - start >= TARGET // 2 else limit
