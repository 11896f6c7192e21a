"""Which standing queries two revisions are asked, when they do not have the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory_kb.model import Problem
from memory_kb.notes.queries import Queries, StandingQuery


@dataclass(frozen=True, slots=True)
class Asking:
    """What is asked of two revisions.

    Attributes:
        told: the queries that count: those of the later revision, and those that it lost by accident.
        unasked: those that were taken out while the others stayed; what becomes of them is told, and fails nothing.
        known: the questions that the earlier revision has.
        problems: what is to be mended before anything is asked.
        notices: what else should be known.
    """

    told: tuple[StandingQuery, ...] = ()
    unasked: tuple[StandingQuery, ...] = ()
    known: frozenset[str] = frozenset()
    problems: tuple[Problem, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def of_head(self) -> Sequence[StandingQuery]:
        """What the later revision is asked."""
        return (*self.told, *self.unasked)

    @property
    def of_base(self) -> Sequence[StandingQuery]:
        """What the earlier one is asked."""
        return [one for one in self.of_head if one.question in self.known]


def arrange(old: Queries, new: Queries, path: str, max_tokens: int | None = None) -> Asking:
    """Return what to ask, so that no query gets lost with its file, or with a line of it that cannot be read.

    Example:
        >>> old = Queries((StandingQuery("a"), StandingQuery("b")))
        >>> [one.question for one in arrange(old, Queries((StandingQuery("a"),)), "q.yaml").told]
        ['a']
        >>> emptied = arrange(old, Queries(()), "q.yaml")
        >>> [one.question for one in emptied.told], emptied.problems[0].message
        (['a', 'b'], 'the standing queries are gone; the 2 that were asked before are asked still')
    """
    asked = {one.question for one in new.queries}
    gone = [one for one in old.queries if one.question not in asked]
    were_there = {one.message for one in old.problems}
    problems = tuple(one for one in new.problems if one.message not in were_there)
    is_emptied = bool(old.queries) and not new.queries
    kept = gone if problems or is_emptied else []
    if is_emptied and not problems:
        count = len(old.queries)
        said = f"the {count} that were asked before are" if count > 1 else "the one that was asked before is"
        problems = (Problem(path, 1, f"the standing queries are gone; {said} asked still"),)
    told = tuple(replace(one, max_tokens=one.max_tokens or max_tokens) for one in (*new.queries, *kept))
    notices = () if told or new.problems else (f"{path} has no queries; recall is not measured",)
    return Asking(told, () if kept else tuple(gone), frozenset(one.question for one in old.queries), problems, notices)
