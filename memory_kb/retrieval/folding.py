"""Passages that lie side by side in one entry, joined into one hit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from memory_kb.ports import StoredChunk
from memory_kb.retrieval.candidates import Scored
from memory_kb.retrieval.passages import Passage

#: Passages join as long as they stay as short as this together; characters.
FOLD_LIMIT = 1_000
#: A weaker passage joins its neighbour if it scores at least this share of it.
FOLD_SHARE = 0.85


class Group(NamedTuple):
    """Neighbouring passages as one text, and the score of the best of them."""

    best: Scored
    chunk: StoredChunk
    first: Passage
    last: Passage
    text: str
    line: int
    end_line: int

    @property
    def count(self) -> int:
        """How many passages it is made of."""
        return 1 + self.last.number - self.first.number


def make_group(scored: Scored, chunk: StoredChunk) -> Group:
    """Return a passage as a group by itself."""
    passage = scored.passage
    return _cut(scored, chunk, passage, passage)


def fold(pool: Sequence[Scored], chunks: Mapping[int, StoredChunk]) -> list[Group]:
    """Join each passage to a better neighbour of its section where both are good.

    This goes in the order of the pool. The pool does not depend on how many hits are asked for,
    so neither do the groups.
    """
    groups: list[Group] = []
    place_of: dict[tuple[int, int], int] = {}
    for scored in pool:
        passage = scored.passage
        for neighbour in (passage.number - 1, passage.number + 1):
            place = place_of.get((passage.key, neighbour))
            if place is not None and scored.score >= FOLD_SHARE * scored.share * groups[place].best.score:
                group = groups[place]
                ends = (group.first, group.last, passage)
                first, last = min(ends, key=lambda end: end.start), max(ends, key=lambda end: end.end)
                if last.end - first.start <= FOLD_LIMIT:
                    groups[place] = _cut(group.best, group.chunk, first, last)
                    place_of[passage.key, passage.number] = place
                    break
        else:
            place_of[passage.key, passage.number] = len(groups)
            groups.append(make_group(scored, chunks[passage.key]))
    return groups


def _cut(best: Scored, chunk: StoredChunk, first: Passage, last: Passage) -> Group:
    text = chunk.content[first.start : last.end]
    line = chunk.line + chunk.content.count("\n", 0, first.start)
    return Group(best, chunk, first, last, text, line, line + text.count("\n"))
