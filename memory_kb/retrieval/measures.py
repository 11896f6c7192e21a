"""How well questions find what they should, and how a plain search for their words does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from memory_kb.notes.queries import StandingQuery, names

#: The numbers of hits that a table tells the recall for.
CUTS = (1, 5, 10)
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

    def count(self, most: int) -> int:
        """Return how many of the expected entries are among the first hits."""
        return sum(rank is not None and rank <= most for rank in self.ranks.values())


@dataclass(frozen=True, slots=True)
class Row:
    """One way to search, measured over all questions that expect something.

    Attributes:
        recall: the mean share of the expected entries that are among the first hits, by how many.
        hits: the share of the questions that found at least one there, which is what they ask for.
        mrr: the mean of 1 / rank of the first.
    """

    name: str
    questions: int
    recall: Mapping[int, float]
    hits: Mapping[int, float]
    mrr: float


def measure(query: StandingQuery, hits: Sequence[Shown]) -> Outcome:
    """Return where a question found what it should.

    Example:
        >>> measure(StandingQuery("q", ("b", "c")), []).ranks
        {'b': None, 'c': None}
    """
    top = tuple(dict.fromkeys(hit.id for hit in hits))
    ranks = {
        wanted: next((place for place, hit in enumerate(hits, 1) if names(wanted, hit.id, hit.path)), None)
        for wanted in query.expect
    }
    return Outcome(query, ranks, top)


def summarize(name: str, outcomes: Iterable[Outcome]) -> Row:
    """Return the means over some questions.

    Example:
        >>> outcomes = [Outcome(StandingQuery("a", ("x", "z")), {"x": 2, "z": None}), Outcome(StandingQuery("b", ("y",)), {"y": None})]
        >>> summarize("search", outcomes)
        Row(name='search', questions=2, recall={1: 0.0, 5: 0.25, 10: 0.25}, hits={1: 0.0, 5: 0.5, 10: 0.5}, mrr=0.25)
    """
    asked = [outcome for outcome in outcomes if outcome.query.expect]
    count = max(1, len(asked))
    counted = {cut: [one.count(cut) for one in asked] for cut in CUTS}
    recall = {
        cut: round(sum(found / len(one.ranks) for found, one in zip(counted[cut], asked, strict=True)) / count, 4)
        for cut in CUTS
    }
    hits = {cut: round(sum(map(bool, counted[cut])) / count, 4) for cut in CUTS}
    return Row(name, len(asked), recall, hits, round(sum(1 / one.rank for one in asked if one.rank) / count, 4))


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
            (
                place
                for place, file in enumerate(found, 1)
                if file.path == wanted or any(names(wanted, one, file.path) for one in file.ids)
            ),
            None,
        )
        for wanted in query.expect
    }
    return Outcome(query, ranks, tuple(file.path for file in found[: query.k]))
