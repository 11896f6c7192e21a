"""What a context is made of, read from the index: no more of a large vault than the task asks for."""

from __future__ import annotations

import functools
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from memory_kb.context.fitting import Topic, fits_files, is_about, weigh_words
from memory_kb.context.labels import find_labels, keep_fitting, spell_tags
from memory_kb.context.layers import BASELINE_KINDS
from memory_kb.filters import EVERYTHING
from memory_kb.learning.memories import Memory, make_memory
from memory_kb.learning.rules.doubting import is_doubted
from memory_kb.learning.rules.inversion import targets_of
from memory_kb.learning.rules.playbook import RULE_KINDS
from memory_kb.model import Filters, Hit, Location
from memory_kb.ports import Index, Question
from memory_kb.retrieval.finding import Request
from memory_kb.retrieval.query import parse_query
from memory_kb.retrieval.retriever import retrieve
from memory_kb.settings import Ranking
from memory_kb.words import LIVE_STATUSES, SCOPES

_LIVE = tuple(sorted(LIVE_STATUSES))
#: Entries that one file brings in by its path alone (S1-39), and skills or habits that compete.
_FOR_FILE, _FEW = 5, 10
_WORDS = 40


@dataclass(frozen=True, slots=True)
class Wanted:
    """The task that a context is for.

    Attributes:
        labels: its labels and its type.
        files: paths relative to the project.
        place: the scope from which it looks up.
    """

    task: str
    labels: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    place: Location = field(default_factory=Location)


@dataclass(frozen=True, slots=True)
class Found:
    """An entry that fits the task, with the passage that does."""

    memory: Memory
    hit: Hit


@dataclass(frozen=True, slots=True)
class Material:
    """What a context is made of; all of it visible from where the task stands.

    Attributes:
        institutional: the entries of every `institutional.md`, the widest scope first.
        baseline: policies, architecture and preferences.
        rules: rules and pitfalls.
        found: what a search for the task found, best first.
        skills: the same among skills.
        proxy: the same among what is known of people's preferences.
        look_up: gives the entry that an id names.
        marks: what stands beside some entries in the text, by their ids.
        labels: the tags by which `rules` were found, where nobody named any.
    """

    institutional: Sequence[Memory] = ()
    baseline: Sequence[Memory] = ()
    rules: Sequence[Memory] = ()
    found: Sequence[Found] = ()
    skills: Sequence[Found] = ()
    proxy: Sequence[Found] = ()
    look_up: Callable[[str], Memory | None] = field(default=lambda _: None)
    marks: Mapping[str, str] = field(default_factory=dict)
    labels: tuple[str, ...] = ()


class Gathering:
    """One reading of the index for one task."""

    def __init__(
        self, index: Index, wanted: Wanted, request: Request, ranking: Ranking, today: date, question: Question | None
    ) -> None:
        self._index, self._wanted, self._request = index, wanted, request
        self._ranking, self._today, self._question = ranking, today, question
        self._read = functools.cache(self._read_file)

    def read(self) -> Material:
        """Return all that the sections are made of."""
        place = self._wanted.place
        chain = tuple(scope for scope in SCOPES[SCOPES.index(place.scope) :] if scope != "job" or place.job)
        here = Filters(scopes=chain, statuses=_LIVE, job=place.job, task=place.task)
        topic = self._topic()
        found = self._unique(self._for_files(), self._search(topic, Filters(learning_types=("task",))))
        labels, rules = self._rules(here, {one.memory.id for one in found})
        institutional = self._memories(here._replace(learning_types=("institutional",)))
        return Material(
            institutional=sorted(institutional, key=lambda one: (-SCOPES.index(one.place.scope), one.path, one.line)),
            baseline=[one for one in self._memories(here._replace(kinds=BASELINE_KINDS)) if self._is_for_all(one)],
            rules=rules,
            found=found,
            skills=self._unique(self._search(topic, Filters(kinds=("skill",), learning_types=("task",)), _FEW)),
            proxy=[
                one
                for one in self._unique(self._search(topic, Filters(learning_types=("proxy",)), _FEW))
                if "proxy-tasks" in one.memory.path
            ],
            look_up=self._look_up,
            labels=labels,
        )

    def _rules(self, here: Filters, found: Container[str]) -> tuple[tuple[str, ...], list[Memory]]:
        """Return the rules of the task's labels; without any, of the tags that the task says, and these."""
        chosen = self._wanted.labels
        spelled = chosen or spell_tags(self._wanted.task)
        if not spelled:
            return (), []
        wanted = here._replace(kinds=RULE_KINDS, statuses=(*_LIVE, "retired", "archived"), tags=spelled)
        rules = [
            replace(one, status="retired") if one.is_live and not self._holds(one) else one
            for one in self._memories(wanted)
        ]
        if chosen:
            return chosen, rules
        labels = find_labels(self._wanted.task, rules)
        return labels, keep_fitting(rules, labels, found)

    def _holds(self, memory: Memory) -> bool:
        return fits_files(memory, self._wanted.files) and not self._is_doubted(memory) and not memory.is_quarantined

    def _is_doubted(self, memory: Memory) -> bool:
        """Tell whether an entry is a rule that waits for a person's judgment."""
        return is_doubted(memory, self._today, self._inverted if memory.count("failure_count") else ())

    @functools.cached_property
    def _inverted(self) -> frozenset[tuple[str, Location]]:
        """The rules whose inversion is proposed."""
        place = self._wanted.place
        return targets_of(
            self._memories(
                EVERYTHING._replace(kinds=("pitfall",), statuses=("proposed",), job=place.job, task=place.task)
            )
        )

    def _is_for_all(self, memory: Memory) -> bool:
        return memory.place.learning_type == "task" and fits_files(memory, self._wanted.files)

    def _memories(self, filters: Filters) -> list[Memory]:
        return list(map(make_memory, self._index.memories(filters)))

    def _topic(self) -> Topic:
        terms = parse_query(self._request.text).terms[:_WORDS]
        counts = [
            self._index.count_entries(parse_query(term).expression) if not parse_query(term).is_empty else 0
            for term in terms
        ]
        return weigh_words(terms, counts, max(self._index.count_entries(), 1))

    def _search(self, topic: Topic, filters: Filters, limit: int = 0) -> Iterator[Found]:
        """Yield what a search finds, what is about the task and for its files alone."""
        place = self._wanted.place
        wanted = filters._replace(statuses=_LIVE, job=place.job, task=place.task)
        request = self._request._replace(filters=wanted, limit=limit or self._request.limit)
        if not topic.words:
            return
        hits, _ = retrieve(self._index, request, self._ranking, self._today, self._question)
        best = max((hit.parts.relevance for hit in hits), default=0.0)
        for hit in hits:
            memory = self._memory_of(hit)
            if (
                memory
                and self._may_be_given(memory)
                and fits_files(memory, self._wanted.files)
                and is_about(topic, memory, hit, best)
            ):
                yield Found(memory, hit)

    def _for_files(self) -> Iterator[Found]:
        """Yield the entries whose globs name a file of the task."""
        place = self._wanted.place
        for file in self._wanted.files:
            filters = Filters(file=file, statuses=_LIVE, learning_types=("task",), job=place.job, task=place.task)
            hits, _ = retrieve(self._index, Request("", filters, limit=_FOR_FILE), self._ranking, self._today)
            for hit in hits:
                memory = self._memory_of(hit)
                if memory and memory.applies_to and self._may_be_given(memory):
                    yield Found(memory, hit)

    def _may_be_given(self, memory: Memory) -> bool:
        return not memory.is_superseded and not memory.is_quarantined and not self._is_doubted(memory)

    def _unique(self, *found: Iterator[Found]) -> Sequence[Found]:
        """Return what was found, the first passage of each entry, as one list."""
        return list({one.memory.id: one for many in reversed(found) for one in reversed(list(many))}.values())[::-1]

    def _memory_of(self, hit: Hit) -> Memory | None:
        return self._read(hit.path).get(hit.id)

    def _read_file(self, path: str) -> dict[str, Memory]:
        return {memory.id: memory for memory in map(make_memory, self._index.memories(EVERYTHING, path))}

    def _look_up(self, entry_id: str) -> Memory | None:
        entry = next((one for one in self._index.entries_with_id(entry_id) if one.entry_id == entry_id), None)
        memory = self._read(entry.source).get(entry_id) if entry else None
        return None if memory is None or self._is_doubted(memory) else memory
