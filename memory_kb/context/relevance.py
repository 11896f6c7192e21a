"""Decide which entries bear on a task or a prompt, by the rare words that they share.

Words that many sections have are those of orders and of the trade, and prove nothing: they are counted and no more.
The sections of the others are few, so that only entries which bear on a prompt are read.
"""

import heapq
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.globs import fits_any
from memory_kb.memory import Memory
from memory_kb.model import EVERYTHING, LIVE_STATUSES, SCOPES, Filters
from memory_kb.search.query import TextQuery, parse_words
from memory_kb.settings import ScopeWeights
from memory_kb.terms import has_cjk

if TYPE_CHECKING:
    from memory_kb.index.port import Candidate, Index
    from memory_kb.index.sqlite import SqliteIndex

#: Words that a section must have in common with a prompt that it bears on.
_LEAST_WORDS = 3
#: A prompt is about its rarest words; so many are looked at.
_RAREST = 12
#: A word is rare from this share of the worth of one that is in a single section, or where 7 sections in 100 have it.
_RARE, _RARE_WORTH = 0.5, 2.65
#: What comes beside the best of all says this share of what that does.
_NEXT = 0.65
#: Words of a prompt that are looked at, and sections that compete.
_WORDS, _SECTIONS = 40, 30
#: Characters of a section that is its own passage.
_SHORT = 600
#: Entries of this kind repeat the words of prompts, which says nothing of how rare those are.
ECHO = "episode"
#: The same knowledge counts more, the nearer it is kept.
_SCOPE_WEIGHTS = ScopeWeights()
_HERE = Filters(statuses=tuple(sorted(LIVE_STATUSES)), learning_types=("task",))


class Topic(NamedTuple):
    """What a task or prompt is about: what each of its words is worth, and how much of that a text must say.

    A word is the full-text expression that finds it, such as `"deploy"`, or `"einstell" *` for one that begins so.
    """

    worth: Mapping[str, float]
    needed: float


def rarity(count: int, texts: int) -> float:
    """Return the weight of a word that `count` of some texts have; a word of a single text weighs most.

    Example:
        >>> round(rarity(1, 100), 2), round(rarity(50, 100), 2)
        (4.22, 0.7)
    """
    return math.log((texts + 2) / (count + 0.5))


def weigh_topic(counts: Mapping[str, int | None], texts: int, share: float, most: int, least: float = 0.0) -> Topic:
    """Return the weight of each word of a task: the fewer texts say it, the more. None stands for too many texts.

    A text must say a `share` of what the `most` rarest words are worth. One that no text says counts half of the rarest
    in that: the task is about it, too. Words that weigh less than `least` are left out.

    Example:
        >>> topic = weigh_topic({"quokka": 1, "test": 50, "lisbon": 0, "the": None}, 100, 0.3, 12, 2.1)
        >>> {word: round(worth, 2) for word, worth in topic.worth.items()}, round(topic.needed, 2)
        ({'quokka': 4.22}, 1.9)
    """
    weighed = {word: rarity(count, texts) for word, count in counts.items() if count}
    worth = {word: one for word, one in weighed.items() if one >= least}
    unknown = [rarity(1, texts) / 2 for count in counts.values() if count == 0]
    return Topic(worth, share * sum(heapq.nlargest(most, (*worth.values(), *unknown))))


def without_other_forms(index: "Index", terms: Iterable[str]) -> list[str]:
    """Return the first terms of a query, without those that are another form of an earlier one."""
    bare = {term: term.strip('" *') for term in terms}
    stems = index.stems(word for word in bare.values() if word.isalnum())
    firsts: dict[str, str] = {}
    for term, word in bare.items():
        firsts.setdefault(stems.get(word, term), term)
    return list(firsts.values())[:_WORDS]


def may_be_given(memory: Memory, today: date) -> bool:
    """Return whether an entry may be given to an agent: nothing supersedes it, and it waits for no person."""
    from memory_kb.learning.playbook import is_doubted

    return not (memory.is_superseded or memory.is_quarantined or is_doubted(memory, today))


def fits_files(memory: Memory, files: Sequence[str]) -> bool:
    """Return whether an entry holds for one of some files; one that names none holds everywhere.

    Example:
        >>> from memory_kb.model import Location
        >>> memory = Memory("x", "a.md", "", Location(), "T", "", applies_to=("src/**/*.py",))
        >>> fits_files(memory, ["src/api/x.py"]), fits_files(memory, ["docs/x.md"]), fits_files(memory, [])
        (True, False, True)
    """
    return not files or not memory.applies_to or any(fits_any(file, memory.applies_to) for file in files)


class Bearing(NamedTuple):
    """How much a section says of a prompt: the rare words it shares, what they are worth, and what it needs of both."""

    shared: tuple[str, ...]
    worth: float
    least: int
    needed: float

    @property
    def is_enough(self) -> bool:
        """Whether the section bears on the prompt."""
        return len(self.shared) >= self.least and self.worth >= self.needed


class PromptMatch(NamedTuple):
    """An entry that bears on a prompt, with the passage that does."""

    memory: Memory
    passage: str


def _least_worth(sections: int) -> float:
    """Return what a word is worth that is just rare enough."""
    return min(_RARE * rarity(1, sections), _RARE_WORTH)


def _find_sections(index: "SqliteIndex", query: TextQuery, most: int) -> dict[str, frozenset[int] | None]:
    """Return the sections that say each word of a query; None for more than `most`.

    A word that none says is looked for in its other forms, and named by the beginning that they share.
    """
    forms = query.other_forms()
    found: dict[str, frozenset[int] | None] = {}
    for term in without_other_forms(index, query.whole_words):
        keys, said = index.keys_saying(term, most), term
        if keys == frozenset() and term in forms:
            keys = index.keys_saying(forms[term], most)
            said = forms[term] if forms[term].endswith("*") else term
        found[said] = keys
    return found


class PromptMatches:
    """The words of a prompt, and the sections of the index that say them."""

    def __init__(self, index: "SqliteIndex", prompt: str, floor: float, today: date, near: Collection[int]) -> None:
        """Look up the words of a prompt, within a snapshot of the index.

        What the sections `near` to it in meaning say counts twice; `floor` is the share of its words that a section must say.
        """
        self._index, self._today, self._near = index, today, frozenset(near)
        # In scripts without spaces a word is several overlapping pairs of letters.
        self._least = 2 * _LEAST_WORDS if has_cjk(prompt) else _LEAST_WORDS
        self._echoes = index.keys_of_kind(ECHO)
        sections = index.count_chunks()
        self._query = parse_words(prompt)
        most_rare = math.ceil((sections + 2) / math.exp(_least_worth(sections)))
        found = _find_sections(index, self._query, most_rare + len(self._echoes))
        self._keys = {word: keys or frozenset[int]() for word, keys in found.items()}
        counts = {word: None if keys is None else len(keys) for word, keys in found.items()}
        self._beside_all = weigh_topic(counts, sections, floor, _RAREST, _least_worth(sections))
        # A word that only sessions say is as rare in the notes as one can be.
        own = {word: count and (len(self._keys[word] - self._echoes) or 1) for word, count in counts.items()}
        notes = sections - len(self._echoes)
        self._beside_notes = weigh_topic(own, notes, floor, _RAREST, _least_worth(notes))

    def weigh(self, key: int) -> Bearing:
        """Return how much a section says of the prompt."""
        topic = self._topic_of(key)
        shared = [word for word in topic.worth if key in self._keys[word]]
        worth, is_near = sum(topic.worth[word] for word in shared), key in self._near
        words = tuple(word.replace('"', "").replace(" *", "*") for word in shared)
        return Bearing(words, worth * 2 if is_near else worth, self._least - is_near, topic.needed)

    def find(self) -> Iterator[PromptMatch]:
        """Yield the entries that bear on the prompt and may be given, best first."""
        said = Counter(key for keys in self._keys.values() for key in keys)
        bearings = {key: self.weigh(key) for key in self._near | {key for key, n in said.items() if n >= self._least}}
        fitting = [key for key, bearing in bearings.items() if bearing.is_enough]
        # A session that began with the same words says more of them than any note, and answers nothing.
        of_notes = max((bearings[key].worth for key in fitting if key not in self._echoes), default=0.0)
        of_all = max((bearings[key].worth for key in fitting), default=0.0)
        best = heapq.nsmallest(_SECTIONS, fitting, key=lambda key: (-bearings[key].worth, key))
        sections = self._index.chunks(
            key for key in best if bearings[key].worth >= _NEXT * (of_all if key in self._echoes else of_notes)
        )
        ordered = sorted(
            sections.values(),
            key=lambda one: (-bearings[one.key].worth * _SCOPE_WEIGHTS.of(one.scope), one.source, one.position),
        )
        # Many sessions may have begun like this: all but the best of them come behind the notes.
        session = next((one.entry_id for one in ordered if one.key in self._echoes), None)
        ordered.sort(key=lambda one: one.key in self._echoes and one.entry_id != session)
        firsts = {(one.source, one.entry_id): one for one in reversed(ordered)}
        scopes = self._index.scopes_of({one.entry_id for one in ordered}, EVERYTHING)
        for section in ordered:
            is_first = firsts[section.source, section.entry_id] is section
            narrower = SCOPES[: SCOPES.index(section.scope)]
            if is_first and scopes[section.entry_id].isdisjoint(narrower) and (memory := self._read(section)):
                yield PromptMatch(memory, self._choose_passage(section))

    def _topic_of(self, key: int) -> Topic:
        # What all sessions begin with proves nothing of one of them.
        return self._beside_all if key in self._echoes else self._beside_notes

    def _read(self, section: "Candidate") -> Memory | None:
        """Return the entry of a section, unless no agent is given it."""
        memories = self._index.memories(_HERE, section.source)
        memory = next((one for one in memories if one.id == section.entry_id), None)
        return memory if memory and may_be_given(memory, self._today) else None

    def _choose_passage(self, section: "Candidate") -> str:
        """Return the passage of a section that says most of the prompt."""
        text = section.content
        if len(text) <= _SHORT:
            return text
        from memory_kb.search.passages import WordFinder, find_passages

        finder = WordFinder(self._index, self._query.without_endings(), self._topic_of(section.key).worth)
        best = max(find_passages(finder, {section.key: section}), key=lambda passage: passage.words)
        return text[best.start : best.end]
