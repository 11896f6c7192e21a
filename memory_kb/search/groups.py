"""Turn scored passages into the texts to show: neighbours joined, equal ones once, repetitions further down."""

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from memory_kb.index.port import Candidate
from memory_kb.search.candidates import split_by_entry
from memory_kb.search.passages import Passage
from memory_kb.search.scoring import ScoredPassage
from memory_kb.terms import jaccard, word_tokens

#: Passages join as long as they stay as short as this together; characters.
JOIN_LIMIT = 1_000
#: A weaker passage joins its neighbour if it scores at least this share of it.
JOIN_SHARE = 0.85
#: In the place of a number: the last passage of a section.
_END = -1
#: Groups that compete for variety; what comes after them follows by score.
DIVERSE = 30


class Group(NamedTuple):
    """Neighbouring passages as one text; `copies` are the places of other entries with the same title and text."""

    best: ScoredPassage
    first: Passage
    last: Passage
    text: str
    line: int
    end_line: int
    size: int = 1
    copies: tuple[str, ...] = ()

    @property
    def chunk(self) -> Candidate:
        """The section of the best passage."""
        return self.best.section.candidate


def make_group(scored: ScoredPassage) -> Group:
    """Return a group of one passage."""
    passage, chunk = scored.passage, scored.section.candidate
    text = chunk.content[passage.start : passage.end]
    line = chunk.line + chunk.content.count("\n", 0, passage.start)
    return Group(scored, passage, passage, text, line, line + text.count("\n"))


def join_neighbours(pool: Sequence[ScoredPassage]) -> list[Group]:
    """Join each passage to a better neighbour where both are good, in the order of the pool.

    The pool does not depend on how many hits are asked for, so neither do the groups.
    """
    groups: list[Group] = []
    place_of: dict[tuple[int, int], int] = {}
    for scored in pool:
        key, number, is_last = scored.passage[:3]
        new = make_group(scored)
        before, after = (key, number - 1) if number else (key - 1, _END), (key + 1, 0) if is_last else (key, number + 1)
        place = len(groups)
        for neighbour in (before, after):
            other = place_of.get(neighbour)
            if other is None or scored.score < JOIN_SHARE * scored.share * groups[other].best.score:
                continue
            ordered = (groups[other], new) if neighbour == before else (new, groups[other])
            joined = _join(*ordered, new.chunk.content)
            if len(joined.text) <= JOIN_LIMIT:
                groups[other], place = joined, other
                break
        else:
            groups.append(new)
        place_of[key, number] = place
        if is_last:
            place_of[key, _END] = place
    return groups


def _join(one: Group, other: Group, content: str) -> Group:
    """Return two groups as one, the text between them included; `content` is that of the section they meet in, if in one."""
    if one.last.key == other.first.key:
        between = content[one.last.end : other.first.start]
    else:
        between = "\n" * (other.line - one.end_line) or " "
    best = max(one, other, key=lambda group: group.best.score)
    text, size = one.text + between + other.text, one.size + other.size
    return best._replace(first=one.first, last=other.last, text=text, line=one.line, end_line=other.end_line, size=size)


def unite_copies(groups: Sequence[Group]) -> list[Group]:
    """Return groups without those that another, better one says the same as; it names their places."""
    united: dict[tuple[object, ...], Group] = {}
    for group in groups:
        same = _content_key(group)
        if first := united.get(same):
            united[same] = first._replace(copies=(*first.copies, f"{group.chunk.source}:{group.line}"))
        else:
            united[same] = group
    return list(united.values())


def without_copies(groups: Sequence[Group], shown: Iterable[Group]) -> list[Group]:
    """Return groups, each text once, without those that one of the shown ones says the same as."""
    known = set(map(_content_key, shown))
    return [group for group in unite_copies(groups) if _content_key(group) not in known]


def _content_key(group: Group) -> tuple[object, ...]:
    chunk = group.chunk
    return chunk.title, chunk.kind, chunk.scope, chunk.status, bool(chunk.is_superseded), group.text


def diversify(groups: Sequence[Group], mmr_lambda: float, limit: int) -> list[Group]:
    """Return at least `limit` groups, if there are, with near repetitions among the first `DIVERSE` moved back."""
    head, tail = groups[:DIVERSE], groups[DIVERSE:]
    scores = [group.best.score for group in head]
    if not any(scores):  # retired entries, say: what is left is how well they fit
        scores = [group.best.relevance for group in head]
    words_of = functools.cache(lambda place: word_tokens(head[place].text))
    order = mmr_order(scores, words_of, mmr_lambda, limit)
    return [head[number] for number in order] + list(tail)


def mmr_order(
    scores: Sequence[float], words_of: Callable[[int], frozenset[str]], mmr_lambda: float, limit: int
) -> list[int]:
    """Return the first `limit` hits to show.

    The best score comes first. Each next one maximises `lambda * relevance - (1 - lambda) * similarity`, where relevance
    is the score's share of the best and similarity the largest Jaccard to those before it. The first k of the order do
    not depend on what comes after them.

    Example:
        >>> texts = ["a b c", "a b c", "x y z", "x y z"]
        >>> mmr_order([1.0, 0.9, 0.8, 0.0], lambda place: frozenset(texts[place].split()), 0.5, limit=3)
        [0, 2, 1]
    """
    best_score = max(scores, default=0.0)
    relevance = [mmr_lambda * (score / best_score if best_score else 1.0) for score in scores]
    left = sorted(range(len(scores)), key=lambda place: (-scores[place], place))
    nearest, compared = [0.0] * len(scores), [0] * len(scores)
    order: list[int] = []

    def value(place: int) -> float:
        for other in order[compared[place] :]:
            nearest[place] = max(nearest[place], jaccard(words_of(other), words_of(place)))
        compared[place] = len(order)
        return relevance[place] - (1 - mmr_lambda) * nearest[place]

    while left and len(order) < limit:
        best, most = left[0], value(left[0])
        for place in left[1:]:
            if relevance[place] <= most:
                break  # what follows is no better even if it is like nothing before it
            if (worth := value(place)) > most:
                best, most = place, worth
        left.remove(best)
        order.append(best)
    return order


def spread(groups: Sequence[Group], most: int) -> tuple[list[Group], list[Group]]:
    """Return the first few groups of every entry, and the others; 0 is no limit."""
    return split_by_entry(groups, most or len(groups), lambda one: (one.chunk.source, one.chunk.entry_id))


def count_fitting(groups: Sequence[Group], max_chars: int) -> int:
    """Return how many leading groups have texts that fit a budget together; 0 is no budget."""
    spent = 0
    for place, group in enumerate(groups if max_chars > 0 else ()):
        spent += len(group.text)
        if spent > max_chars:
            return place
    return len(groups)
