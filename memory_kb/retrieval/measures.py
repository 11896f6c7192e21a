"""How well questions find what they should, and how a plain search for their words does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from memory_kb.notes.queries import StandingQuery

#: The numbers of hits that a table tells the recall for.
CUTS = (1, 5, 10)
#: An expected id may be cut to no less than this.
_SHORTEST = 8
_WORDS = re.compile(r"\w+")


class Shown(Protocol):
    """A hit, as far as it is measured."""

    @property
    def id(self) -> str:
        """The entry."""

    @property
    def path(self) -> str:
        """Its file."""


class File(NamedTuple):
    """A file as grep sees it, with the ids that stand in it."""

    path: str
    text: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where a question found what it should.

    Attributes:
        ranks: the place of each expected entry among the hits, from 1; None where it is not.
        top: the ids of the hits, best first.
    """

    query: StandingQuery
    ranks: Mapping[str, int | None]
    top: tuple[str, ...] = ()

    @property
    def rank(self) -> int | None:
        """The place of the first expected entry."""
        return min((rank for rank in self.ranks.values() if rank is not None), default=None)

    @property
    def is_found(self) -> bool:
        """Whether an expected entry is among the hits that count."""
        return self.rank is not None and self.rank <= self.query.k


@dataclass(frozen=True, slots=True)
class Row:
    """One way to search, measured over all questions that expect something.

    Attributes:
        recall: the share of the questions that found an expected entry among the first hits, by how many.
        mrr: the mean of 1 / rank of the first.
    """

    name: str
    questions: int
    recall: Mapping[int, float]
    mrr: float


def measure(query: StandingQuery, hits: Sequence[Shown]) -> Outcome:
    """Return where a question found what it should.

    Example:
        >>> measure(StandingQuery("q", ("b", "c")), []).ranks
        {'b': None, 'c': None}
    """
    top = tuple(dict.fromkeys(hit.id for hit in hits))
    ranks = {wanted: next((place for place, hit in enumerate(hits, 1) if names(wanted, hit.id, hit.path)), None) for wanted in query.expect}
    return Outcome(query, ranks, top)


def names(wanted: str, entry_id: str, path: str) -> bool:
    """Tell whether an expected id, a beginning of one, or a path names an entry.

    Example:
        >>> names("69712e00", "69712e00-2428", "a.md"), names("697", "69712e00-2428", "a.md"), names("a.md", "x", "a.md")
        (True, False, True)
    """
    return wanted in (entry_id, path) or (len(wanted) >= _SHORTEST and entry_id.startswith(wanted))


def summarize(name: str, outcomes: Iterable[Outcome]) -> Row:
    """Return the means over some questions.

    Example:
        >>> outcomes = [Outcome(StandingQuery("a", ("x",)), {"x": 2}), Outcome(StandingQuery("b", ("y",)), {"y": None})]
        >>> summarize("search", outcomes)
        Row(name='search', questions=2, recall={1: 0.0, 5: 0.5, 10: 0.5}, mrr=0.25)
    """
    ranks = [outcome.rank for outcome in outcomes if outcome.query.expect]
    count = max(1, len(ranks))
    recall = {cut: round(sum(rank is not None and rank <= cut for rank in ranks) / count, 4) for cut in CUTS}
    return Row(name, len(ranks), recall, round(sum(1 / rank for rank in ranks if rank) / count, 4))


def grep(query: StandingQuery, files: Sequence[File]) -> Outcome:
    """Return where a question would find what it should by its words alone: `grep -i -e word ...`, file by file.

    Files with more of its words come first, then those with more matches, then by name. A file
    counts for every entry in it, which is in grep's favour.

    Example:
        >>> files = [File("a.md", "Tests run.", ("a",)), File("b.md", "Flaky tests run.", ("b",))]
        >>> grep(StandingQuery("flaky tests", ("b",)), files).rank
        1
    """
    words = list(dict.fromkeys(word.casefold() for word in _WORDS.findall(query.question)))
    counted = []
    for file in files:
        text = file.text.casefold()
        counts = [text.count(word) for word in words]
        if any(counts):
            counted.append((-sum(map(bool, counts)), -sum(counts), file.path, file))
    found = [one[3] for one in sorted(counted, key=lambda one: one[:3])]
    ranks = {
        wanted: next(
            (place for place, file in enumerate(found, 1) if file.path == wanted or any(names(wanted, one, file.path) for one in file.ids)), None
        )
        for wanted in query.expect
    }
    return Outcome(query, ranks, tuple(file.path for file in found[: query.k]))
