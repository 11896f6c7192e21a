"""A long note speaks, and lets others speak: its first passages compete in full, the rest for less and less."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memory_kb.ports import Candidate, StoredChunk
from memory_kb.retrieval.folding import Group

#: Passages of one entry that count in full; the next counts a half, the one after it a third.
FREE = 5
#: Passages of one entry that compete before others of it, where there are too many.
CROWD = 40
#: Passages that are looked through for others than those of the longest notes.
_FARTHEST = 20_000


@dataclass(frozen=True, slots=True)
class Place:
    """A group among the others of its entry, and what that leaves of its score."""

    group: Group
    number: int

    @property
    def share(self) -> float:
        """What the group counts, from 0 to 1.

        Example:
            >>> from typing import cast
            >>> [round(Place(cast("Group", None), number).share, 2) for number in (1, 5, 6, 7)]
            [1.0, 1.0, 0.5, 0.33]
        """
        return 1.0 / max(1, self.number - FREE + 1)

    @property
    def score(self) -> float:
        """The score that the group competes with."""
        return self.group.best.score * self.share


def thin(groups: Sequence[Group]) -> list[Place]:
    """Return groups in the order in which they compete, given their order by score."""
    counts = Counter[tuple[str, str]]()
    places: list[Place] = []
    for group in groups:
        entry = _entry_of(group.chunk)
        counts[entry] += 1
        places.append(Place(group, counts[entry]))
    return sorted(places, key=lambda place: -place.score)


def one_of_each(groups: Sequence[Group]) -> list[Group]:
    """Return the first group of every entry."""
    return list({_entry_of(group.chunk): group for group in reversed(groups)}.values())[::-1]


def _entry_of(chunk: StoredChunk) -> tuple[str, str]:
    return chunk.source, chunk.entry_id


def match_evenly(match: Callable[[int], list[Candidate]], limit: int, crowd: int = CROWD) -> list[Candidate]:
    """Return the best candidates, of no entry more than a crowd while there are others.

    Args:
        match: gives the best of all, as many as it is asked for.
        limit: the most to return; all are returned where there are no more.
        crowd: what one entry may have.
    """
    wanted = limit
    found = match(wanted)
    while True:
        first, rest = _part(found, crowd)
        if len(found) < wanted or len(first) >= limit or wanted >= _FARTHEST:
            return [*first, *rest][:limit]
        wanted = min(wanted * 10, _FARTHEST)
        found = match(wanted)


def _part(candidates: Sequence[Candidate], crowd: int) -> tuple[list[Candidate], list[Candidate]]:
    """Part candidates into the first few of every entry and the others, in their order."""
    counts = Counter[int]()
    parted: tuple[list[Candidate], list[Candidate]] = [], []
    for candidate in candidates:
        entry = candidate.key - candidate.part
        counts[entry] += 1
        parted[counts[entry] > crowd].append(candidate)
    return parted
