"""Chunks that lie side by side in one entry, joined into one hit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from memory_kb.ports import StoredChunk
from memory_kb.retrieval.candidates import Scored

#: Chunks join as long as they stay as short as one chunk may be; characters.
FOLD_LIMIT = 1_200


class Folding(NamedTuple):
    """When a weaker chunk joins its neighbour.

    It scores at least `share` of the neighbour, and `least` of the best chunk of all.
    """

    share: float
    least: float


#: By words alone; and by words and meaning, where neighbours score closer together.
BY_WORDS, BY_BOTH = Folding(0.85, 0.0), Folding(0.80, 0.5)


class Group(NamedTuple):
    """Neighbouring chunks in file order, and the score of the best of them."""

    best: Scored
    chunks: tuple[StoredChunk, ...]

    @property
    def text(self) -> str:
        """The text of the chunks with the line breaks between them."""
        text = self.chunks[0].content
        for before, after in zip(self.chunks, self.chunks[1:], strict=False):
            text += "\n" * (after.line - before.end_line) or " "
            text += after.content
        return text


def fold(pool: Sequence[Scored], chunks: Mapping[int, StoredChunk], folding: Folding = BY_WORDS) -> list[Group]:
    """Join each chunk to a better neighbour where both are good.

    This goes in the order of the pool. The pool does not depend on how many hits are asked for,
    so neither do the groups.
    """
    groups: list[Group] = []
    place_of: dict[int, int] = {}
    least = folding.least * max([scored.score for scored in pool], default=0.0)
    for scored in pool:
        key = scored.candidate.key
        chunk = chunks[key]
        for neighbour in (key - 1, key + 1):
            place = place_of.get(neighbour)
            if (
                place is not None
                and scored.score >= max(least, folding.share * groups[place].best.score)
                and _fits(chunk, groups[place])
            ):
                group = groups[place]
                joined = (chunk, *group.chunks) if key < group.chunks[0].key else (*group.chunks, chunk)
                groups[place] = Group(group.best, joined)
                place_of[key] = place
                break
        else:
            place_of[key] = len(groups)
            groups.append(Group(scored, (chunk,)))
    return groups


def _fits(chunk: StoredChunk, group: Group) -> bool:
    length = chunk.char_offset + len(chunk.content) - group.chunks[0].char_offset
    if chunk.key < group.chunks[0].key:
        last = group.chunks[-1]
        length = last.char_offset + len(last.content) - chunk.char_offset
    return length <= FOLD_LIMIT
