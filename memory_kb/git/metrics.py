"""Propose saved queries, and compute recall and rank metrics."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memory_kb.credentials import find_secret
from memory_kb.memory import Memory
from memory_kb.model import WORKING_KINDS, Hit
from memory_kb.store.logs import Retrieval
from memory_kb.store.saved_queries import SavedQuery, names_entry
from memory_kb.terms import has_cjk, word_tokens
from memory_kb.text import fold_case

#: The numbers of hits for which a table has the recall.
CUTS = (1, 5, 10)
_WORDS = re.compile(r"\w+")


class GrepFile(NamedTuple):
    """A file as grep sees it, with the ids that are in it."""

    path: str
    text: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """Where a question found what it should.

    `ranks` has the place of each expected entry among the hits, from 1, or None; `top` are the ids of the hits.
    """

    query: SavedQuery
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
class MethodScore:
    """One way to search, measured over all questions that expect something.

    `recall` is the mean share of the expected entries that are among the first hits, by how many; `hits` the share of
    the questions that found at least one there, which is what they ask for; `mrr` the mean of 1 / rank of the first.
    """

    name: str
    questions: int
    recall: Mapping[int, float]
    hits: Mapping[int, float]
    mrr: float


def measure_question(query: SavedQuery, hits: Sequence[Hit]) -> QuestionResult:
    """Return where a question found what it should.

    Example:
        >>> measure_question(SavedQuery("q", ("b", "c")), []).ranks
        {'b': None, 'c': None}
    """
    places = [(hit.path, (hit.id,)) for hit in hits]
    return QuestionResult(query, _rank(query, places), tuple(dict.fromkeys(hit.id for hit in hits)))


def _rank(query: SavedQuery, places: Sequence[tuple[str, Sequence[str]]]) -> dict[str, int | None]:
    """Return the place of each expected entry among files and the ids that are found in them."""
    ranks: dict[str, int | None] = dict.fromkeys(query.expect)
    for place, (path, ids) in enumerate(places, 1):
        for wanted, rank in ranks.items():
            if rank is None and any(names_entry(wanted, one, path) for one in ids):
                ranks[wanted] = place
    return ranks


def average_results(name: str, outcomes: Iterable[QuestionResult]) -> MethodScore:
    """Return the means over some questions.

    Example:
        >>> outcomes = [QuestionResult(SavedQuery("a", ("x", "z")), {"x": 2, "z": None}), QuestionResult(SavedQuery("b", ("y",)), {"y": None})]
        >>> average_results("search", outcomes)
        MethodScore(name='search', questions=2, recall={1: 0.0, 5: 0.25, 10: 0.25}, hits={1: 0.0, 5: 0.5, 10: 0.5}, mrr=0.25)
    """
    asked = [outcome for outcome in outcomes if outcome.query.expect]

    def mean(shares: Iterable[float]) -> float:
        return round(sum(shares) / max(1, len(asked)), 4)

    recall = {cut: mean(one.count(cut) / len(one.ranks) for one in asked) for cut in CUTS}
    hits = {cut: mean(one.count(cut) > 0 for one in asked) for cut in CUTS}
    return MethodScore(name, len(asked), recall, hits, mean(1 / one.rank for one in asked if one.rank))


def grep(query: SavedQuery, files: Sequence[GrepFile]) -> QuestionResult:
    """Return where a question would find what it should by its words alone: `grep -i -e word ...`, file by file.

    Files with more of its words come first, then those with more matches, then by name. A file
    counts for every entry in it, which is in grep's favour.

    Example:
        >>> files = [GrepFile("a.md", "Tests run.", ("a",)), GrepFile("b.md", "Flaky tests run.", ("b",))]
        >>> grep(SavedQuery("flaky tests", ("b",)), files).rank
        1
    """
    words = list(dict.fromkeys(word.casefold() for word in _WORDS.findall(query.question)))
    counted: list[tuple[int, int, GrepFile]] = []
    for file in files:
        text = file.text.casefold()
        counts = [text.count(word) for word in words]
        if any(counts):
            counted.append((-sum(map(bool, counts)), -sum(counts), file))
    found = [file for *_, file in sorted(counted)]
    ranks = _rank(query, [(file.path, file.ids or (file.path,)) for file in found])
    return QuestionResult(query, ranks, tuple(file.path for file in found[: query.k]))


#: Words and characters of a proposed question, how many of its words must be informative, and sentences looked at.
_QUESTION_WORDS, _QUESTION_LENGTH, _FEWEST, _SENTENCES = 10, 80, 3, 30
_LONGEST_ASKED = 200
_CODE = re.compile(r"```.*?```|`[^`\n]*`|https?://\S+|\[\[[^\]]*\]\]|^[ \t]*[#|>][^\n]*$", re.DOTALL | re.MULTILINE)
_TOKEN = re.compile(r"[^\W_](?:[\w'./-]*\w)?")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+|(?<=[。！？])")


def propose_queries(
    memories: Sequence[Memory],
    retrievals: Iterable[Retrieval],
    frequency: Callable[[str], int],
    known: Sequence[SavedQuery],
    most: int,
) -> tuple[SavedQuery, ...]:
    """Return questions that are not saved yet, each with the entry that it should find.

    Those that people asked come first, the most often asked before the others, each with what
    was first the last time. Then notes nobody has a question for, by
    their rarest words and never by their title: that would be found by anything.
    """
    # The queries are the team's, in the repository; a global home is one person's.
    ours = (one for one in memories if one.place.scope != "global")
    lasting = (one for one in ours if one.is_ours or (one.fault is None and "id" in one.metadata))
    here = {one.id: one for one in lasting if one.is_live and not one.is_superseded}
    asked = {fold_case(one.question) for one in known}
    covered = {
        entry_id for one in known for entry_id in here if any(entry_id.startswith(wanted) for wanted in one.expect)
    }
    found: list[SavedQuery] = []
    for query in (*_from_log(retrievals, here), *_from_notes(here, frequency)):
        is_new = fold_case(query.question) not in asked and not covered & set(query.expect)
        if is_new and len(found) < most and find_secret(query.question) is None:
            found.append(query)
            asked.add(fold_case(query.question))
            covered |= set(query.expect)
    return tuple(found)


def _from_log(retrievals: Iterable[Retrieval], here: Mapping[str, Memory]) -> Iterator[SavedQuery]:
    counts: Counter[str] = Counter()
    last: dict[str, tuple[str, str]] = {}
    for one in retrievals:
        first = next((entry_id for entry_id in one.ids if entry_id in here), None)
        if one.verb == "search" and not one.injected and one.query and len(one.query) <= _LONGEST_ASKED and first:
            counts[fold_case(one.query)] += 1
            last[fold_case(one.query)] = (" ".join(one.query.split()), first)
    for plain, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        question, entry_id = last[plain]
        if len(question.split()) > 1 or has_cjk(question):
            yield SavedQuery(question, (entry_id,))


def _from_notes(here: Mapping[str, Memory], frequency: Callable[[str], int]) -> Iterator[SavedQuery]:
    """Yield a question for each note that has enough words of its own, the most important first."""
    lasting = (one for one in here.values() if one.place.learning_type == "task" and one.kind not in WORKING_KINDS)
    for memory in sorted(lasting, key=lambda one: (-one.importance, one.path, one.line)):
        if question := propose_question(memory, frequency):
            yield SavedQuery(question, (memory.id,))


def propose_question(memory: Memory, frequency: Callable[[str], int]) -> str | None:
    """Return a note's most informative sentence, or its beginning, as people would ask for it.

    A sentence is more informative the rarer its words are; those of the title say nothing. None where no sentence has
    words enough.

    Example:
        >>> from memory_kb.model import Location
        >>> note = Memory("x", "a.md", "", Location(), "Uploads", "# Uploads\\n\\nThis is so. Uploads retry: *proxies* drop idle sockets.")
        >>> propose_question(note, lambda word: 1)
        'Uploads retry proxies drop idle sockets'
    """
    silent = word_tokens(memory.word("title") or memory.word("name") or "")
    best = (0.0, "")
    for sentence in _SENTENCE.split(_CODE.sub(" ", memory.text))[:_SENTENCES]:
        question = " ".join(_TOKEN.findall(sentence)[:_QUESTION_WORDS])[:_QUESTION_LENGTH]
        counts = list(filter(None, map(frequency, word_tokens(question) - silent)))
        if len(counts) >= _FEWEST:
            best = max(best, (sum(1 / count for count in counts), question), key=lambda one: one[0])
    return best[1] or None
