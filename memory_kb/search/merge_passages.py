"""Join neighbouring passages, and show equal ones once."""

# Annotations are evaluated here: to parse them from text takes a named tuple twice as long to define.
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from memory_kb.index.port import StoredChunk
from memory_kb.search.passages import Passage
from memory_kb.search.scoring import Scored

#: Passages join as long as they stay as short as this together; characters.
FOLD_LIMIT = 1_000
#: A weaker passage joins its neighbour if it scores at least this share of it.
FOLD_SHARE = 0.85
#: In the place of a number: the last passage of a section.
_END = -1


class Group(NamedTuple):
    """Neighbouring passages as one text, and the score of the best of them.

    `copies` are the places of other entries with the same title and text.
    """

    best: Scored
    chunk: StoredChunk
    first: Passage
    last: Passage
    text: str
    line: int
    end_line: int
    size: int = 1
    copies: tuple[str, ...] = ()


def make_group(scored: Scored, chunk: StoredChunk) -> Group:
    """Return a passage as a group by itself."""
    passage = scored.passage
    text = chunk.content[passage.start : passage.end]
    line = chunk.line + chunk.content.count("\n", 0, passage.start)
    return Group(scored, chunk, passage, passage, text, line, line + text.count("\n"))


def fold(pool: Sequence[Scored], chunks: Mapping[int, StoredChunk]) -> list[Group]:
    """Join each passage to a better neighbour where both are good.

    This goes in the order of the pool. The pool does not depend on how many hits are asked for,
    so neither do the groups.
    """
    groups: list[Group] = []
    place_of: dict[tuple[int, int], int] = {}
    for scored in pool:
        key, number, is_last = scored.passage[:3]
        new = make_group(scored, chunks[key])
        before, after = (key, number - 1) if number else (key - 1, _END), (key + 1, 0) if is_last else (key, number + 1)
        place = len(groups)
        for neighbour in (before, after):
            other = place_of.get(neighbour)
            if other is None or scored.score < FOLD_SHARE * scored.share * groups[other].best.score:
                continue
            ordered = (groups[other], new) if neighbour == before else (new, groups[other])
            joined = _join(*ordered, chunks)
            if len(joined.text) <= FOLD_LIMIT:
                groups[other], place = joined, other
                break
        else:
            groups.append(new)
        place_of[key, number] = place
        if is_last:
            place_of[key, _END] = place
    return groups


def unite_copies(groups: Sequence[Group]) -> list[Group]:
    """Return groups without those that another, better one says the same as; it names their places."""
    united: dict[tuple[object, ...], Group] = {}
    for group in groups:
        same = _what_it_says(group)
        if first := united.get(same):
            united[same] = first._replace(copies=(*first.copies, f"{group.chunk.source}:{group.line}"))
        else:
            united[same] = group
    return list(united.values())


def without_copies(groups: Iterable[Group], shown: Iterable[Group]) -> list[Group]:
    """Return groups without those that one of the shown ones says the same as."""
    known = set(map(_what_it_says, shown))
    return [group for group in groups if _what_it_says(group) not in known]


def _what_it_says(group: Group) -> tuple[object, ...]:
    chunk = group.chunk
    return chunk.title, chunk.kind, chunk.scope, chunk.status, bool(group.best.candidate.is_superseded), group.text


def _join(one: Group, other: Group, chunks: Mapping[int, StoredChunk]) -> Group:
    """Return two groups as one, the text between them included."""
    if one.last.key == other.first.key:
        between = chunks[one.last.key].content[one.last.end : other.first.start]
    else:
        between = "\n" * (other.line - one.end_line) or " "
    best = max(one, other, key=lambda group: group.best.score)
    text, size = one.text + between + other.text, one.size + other.size
    return best._replace(first=one.first, last=other.last, text=text, line=one.line, end_line=other.end_line, size=size)
