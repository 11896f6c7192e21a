"""The verb context: what to put before an agent that begins a task, gathered from the index."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from memory_kb.context.entry_lines import ClaimChecks
from memory_kb.context.relevance import (
    ECHO,
    Topic,
    fits_files,
    may_be_given,
    weigh_topic,
    without_other_forms,
)
from memory_kb.context.sections import Context, ContextBuilder, FittingEntry, Material, order_institutional
from memory_kb.errors import UsageError
from memory_kb.index.sqlite import SqliteIndex
from memory_kb.index.vault_index import VaultIndex
from memory_kb.learning.playbook import RULE_KINDS, is_doubted, measure_relevance
from memory_kb.memory import Memory
from memory_kb.model import BASELINE_KINDS, EVERYTHING, LIVE_STATUSES, SCOPES, Filters, Hit, Location, make_place
from memory_kb.providers.models import Models
from memory_kb.search.pipeline import Search, retrieve
from memory_kb.search.query import Request, parse_words
from memory_kb.search.service import Searching
from memory_kb.stop_words import stop_words
from memory_kb.store.logs import log_shown
from memory_kb.terms import MARKED_NAME, needs_cutting
from memory_kb.vault import Vault
from memory_kb.working.continuity import Continuity

#: A rule fits a task without labels when the task says all of its tags, or so much and it is found by its words too.
_LEAST_SHARE = 0.5
_LIVE = tuple(sorted(LIVE_STATUSES))
#: Entries that one file brings in by its path alone, and skills or habits that compete.
_FOR_FILE, _FEW = 5, 10
#: What some section must say of a task: this share of what the task's rarest words are worth, of so many.
_SHARE, _RAREST = 0.3, 6
#: A passage this near in meaning fits without sharing a word.
_NEAR = 0.6
#: Beside one that does, others are given that say two thirds of that, and score at least this share of the best score.
_BESIDE, _LEAST_SCORE = 2 / 3, 0.4
#: Hits that compete for the sections; like a search's, they do not depend on the budgets.
_CANDIDATES = 40
#: What an agent remembers by itself: so many of its notes at most.
_MOST_OF_AGENTS = 3
#: How long git may take to find the cited files that are not where they were.
_GIT_SECONDS = 1.0


class ContextTask(NamedTuple):
    """The task that a context is for; `files` are relative to the project, `place` is the narrowest scope."""

    task: str
    labels: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    place: Location = Location()


@dataclass(frozen=True)
class MaterialReader:
    """One reading of the index for one task; `is_kept` says of an entry whether it may be given at all."""

    index: SqliteIndex
    task: ContextTask
    search: Search
    is_kept: Callable[[Memory], bool]
    _files: dict[str, dict[str, Memory]] = field(default_factory=dict)

    def read(self) -> Material:
        """Return all that the sections are made of."""
        place, files = self.task.place, self.task.files
        chain = tuple(scope for scope in SCOPES[SCOPES.index(place.scope) :] if scope != "job" or place.job)
        here = Filters(scopes=chain, statuses=_LIVE, job=place.job, task=place.task)
        topic = self._topic()
        tasks = self._search(topic, Filters(learning_types=("task",)))
        proxies = self._search(topic, Filters(learning_types=("proxy",)), _FEW)
        skills = self._search(topic, Filters(kinds=("skill",), learning_types=("task",)), _FEW)
        is_known = any(worth >= topic.needed for _, worth in (*tasks, *proxies, *skills))
        least = _BESIDE * topic.needed if is_known else math.inf
        found = _unique(*self._for_files(), *self._choose(tasks, least))
        labels, rules = self._rules(here, {one.memory.id for one in found})
        institutional = self.index.memories(here._replace(learning_types=("institutional",)))
        always = (one for one in self.index.memories(here._replace(kinds=BASELINE_KINDS)) if fits_files(one, files))
        return Material(
            institutional=order_institutional(filter(self.is_kept, institutional)),
            baseline=[one for one in always if one.place.learning_type == "task" and self.is_kept(one)],
            rules=rules,
            found=found,
            skills=_unique(*self._choose(skills, least)),
            proxy=[one for one in _unique(*self._choose(proxies, least)) if "proxy-tasks" in one.memory.path],
            look_up=self._look_up,
            labels=labels,
        )

    def _rules(self, here: Filters, found: Container[str]) -> tuple[tuple[str, ...], list[Memory]]:
        """Return the rules of the task's labels; without any, of the tags that the task says, and these.

        One that may not be given is retired: it still hides one of a wider scope.
        """
        chosen, files = self.task.labels, self.task.files
        wanted = here._replace(kinds=RULE_KINDS, statuses=(*_LIVE, "retired", "archived"), tags=chosen)
        rules = list(self.index.memories(wanted))
        labels = chosen or find_labels(self.task.task, rules, self.index.stems)
        if not chosen:
            shares = [(measure_relevance(rule.tags, labels), rule) for rule in rules]
            rules = [rule for share, rule in shares if share == 1.0 or (share >= _LEAST_SHARE and rule.id in found)]
        kept = [not one.is_live or (fits_files(one, files) and self.is_kept(one)) for one in rules]
        return labels, [
            one if is_kept else one._replace(status="retired") for one, is_kept in zip(rules, kept, strict=True)
        ]

    def _topic(self) -> Topic:
        """Return what the words of the task are worth; one that no entry says counts in its other forms."""
        query = parse_words(self.search.request.text)
        bare = [term.strip('" *').casefold() for term in query.terms]
        if stop_words(bare).issuperset(bare):  # "no", "do it"
            return Topic({}, 0.0)
        terms, forms = without_other_forms(self.index, query.whole_words), query.other_forms()
        others = [forms.get(term, "") for term in terms]
        counts, entries = self.index.count_entries([*terms, *others], ECHO)
        by_term, by_form = zip(terms, counts, strict=False), zip(others, counts[len(terms) :], strict=True)
        said = dict(own if own[1] or not other[1] else other for own, other in zip(by_term, by_form, strict=True))
        return weigh_topic(said, max(entries, 1), _SHARE, _RAREST)

    def _search(self, topic: Topic, filters: Filters, limit: int = 0) -> list[tuple[FittingEntry, float]]:
        """Return what a search finds, best first, with what the words are worth that its best section shares with the task."""
        if not topic.needed:
            return []
        place = self.task.place
        wanted = filters._replace(statuses=_LIVE, job=place.job, task=place.task)
        request = self.search.request._replace(filters=wanted, limit=limit or self.search.request.limit)
        hits, _ = retrieve(self.index, self.search._replace(request=request))
        found = list(self._entries_of(hits))
        keys = [self.index.keys_of(one.memory) for one in found]
        worths: Counter[int] = Counter()
        for term, saying in self.index.matching(topic.worth, list(itertools.chain(*keys))).items():
            worths.update(dict.fromkeys(saying, topic.worth[term]))
        return [(one, max((worths[key] for key in own), default=0.0)) for one, own in zip(found, keys, strict=True)]

    def _choose(self, weighed: Iterable[tuple[FittingEntry, float]], least: float) -> list[FittingEntry]:
        """Return what says enough of the task, or is near in meaning, and is for its files; nothing far below the best."""
        fitting = [
            one
            for one, worth in weighed
            if (worth >= least or (one.hit.parts.vector or 0.0) >= _NEAR)
            and fits_files(one.memory, self.task.files)
            and self.is_kept(one.memory)
        ]
        # A session that was about the same task says all its words, and answers nothing: notes are not held against it.
        compared = [one for one in fitting if one.memory.kind != ECHO] or fitting
        least_score = _LEAST_SCORE * max((one.hit.score for one in compared), default=0.0)
        return [one for one in fitting if one.hit.score >= least_score]

    def _for_files(self) -> Iterator[FittingEntry]:
        """Yield the entries whose globs name a file of the task."""
        place = self.task.place
        for file in self.task.files:
            filters = Filters(file=file, statuses=_LIVE, learning_types=("task",), job=place.job, task=place.task)
            by_file = self.search._replace(request=Request("", filters, limit=_FOR_FILE), cosines=None)
            hits, _ = retrieve(self.index, by_file)
            yield from (one for one in self._entries_of(hits) if one.memory.applies_to and self.is_kept(one.memory))

    def _entries_of(self, hits: Iterable[Hit]) -> Iterator[FittingEntry]:
        """Yield the entries of some hits that agents may be given."""
        for hit in hits:
            memory = self._read(hit.path).get(hit.id)
            if memory and may_be_given(memory, self.search.today):
                yield FittingEntry(memory, hit)

    def _read(self, path: str) -> dict[str, Memory]:
        """Return the entries of a file by their ids; a file is read once."""
        if path not in self._files:
            self._files[path] = {memory.id: memory for memory in self.index.memories(EVERYTHING, path)}
        return self._files[path]

    def _look_up(self, entry_id: str) -> Memory | None:
        entry = next((one for one in self.index.entries_with_id(entry_id) if one.id == entry_id), None)
        memory = self._read(entry.path).get(entry_id) if entry else None
        return memory if memory and not is_doubted(memory, self.search.today) and self.is_kept(memory) else None


def _unique(*found: FittingEntry) -> Sequence[FittingEntry]:
    """Return what was found, the first passage of each entry."""
    firsts: dict[str, FittingEntry] = {}
    for one in found:
        firsts.setdefault(one.memory.id, one)
    return list(firsts.values())


def find_labels(
    task: str, rules: Iterable[Memory], stems: Callable[[Iterable[str]], Mapping[str, str]]
) -> tuple[str, ...]:
    """Return the tags of some rules that a task says; `stems` returns words as the index holds them.

    Example:
        >>> from memory_kb.model import Location
        >>> rules = [Memory("x", "a.md", "", Location(), "T", "", tags=("Testing", "部署"))]
        >>> [find_labels(task, rules, lambda words: {word: word[:4] for word in words}) for task in ("Fix the tests", "检查部署脚本")]
        [('Testing',), ('部署',)]
    """
    text = task.casefold()
    tokens = MARKED_NAME.findall(text)
    tokens += [noun.strip('"') for noun in parse_words(text).nouns().values()]
    words_of = {tag: set(MARKED_NAME.findall(tag.casefold())) for rule in rules for tag in rule.tags}
    stem_of = stems({*tokens, *itertools.chain(*words_of.values())})
    said = {stem_of[token] for token in set(tokens).difference(stop_words(tokens))}

    def is_said(word: str) -> bool:
        return stem_of[word] in said or (needs_cutting(word) and word in text)

    return tuple(tag for tag, words in words_of.items() if words and all(map(is_said, words)))


@dataclass(frozen=True)
class Contexts:
    """The verb context."""

    _vault: Vault
    _index: VaultIndex
    _models: Models
    _continuity: Continuity
    _searching: Searching

    def context(
        self,
        task: str,
        *,
        labels: Sequence[str] = (),
        type: str | None = None,
        files: Sequence[str] = (),
        agent: str | None = None,
        job: str | None = None,
        task_id: str | None = None,
        session: str | None = None,
        without: Collection[str] = (),
    ) -> Context:
        """Return what to put before an agent that begins a task.

        Args:
            labels: what kind of task it is; rules are chosen by them.
            type: one more label, such as `bug`.
            agent: who gets it, for the outcome later.
            task_id: what the task is called, for the outcome later; with a job also the task of it.
            session: the session it happens in; where it is named and there is a CONTINUITY.md, the two
                sections of that are brought up to date as well.
            without: ids of entries that the agent has before it already.

        Raises:
            UsageError: there is nothing to go by, or a job or its task cannot be called so.
        """
        place = make_place("project", job, task_id if job else None)
        wanted = ContextTask(task.strip(), tuple(filter(None, (*labels, type))), self._locate(task, files), place)
        context = self._build(wanted, without)
        named = task_id or task
        log_shown(
            self._vault, "context", context.ids, query=task, session=session, agent=agent, task=named, injected=True
        )
        unwritten = self._continuity.keep_up(task, job) if session else ()
        return context._replace(degraded=(*context.degraded, *unwritten))

    def _build(self, wanted: ContextTask, without: Collection[str]) -> Context:
        """Return the context of a task, without some entries; `degraded` says what it lacks."""
        counter, claims = self._models.counter, ClaimChecks(self._vault, _GIT_SECONDS)

        def is_kept(memory: Memory) -> bool:
            return memory.id not in without and claims.is_kept(memory)

        material, degraded = self._index.use(lambda index: self._gather(index, wanted, is_kept))
        context = ContextBuilder(
            material=material,
            today=self._vault.today(),
            settings=self._vault.settings.context,
            claims=claims,
            agent_hits=self._search_agent_memory(wanted.task),
            counter=counter.count,
        ).build()
        notices = (*self._index.take_notices(), *degraded, *context.oversize, *claims.say_withheld())
        return context._replace(
            degraded=(*notices, counter.notice) if counter.notice else notices,
            stale=tuple(entry_id for entry_id in context.ids if entry_id in claims.marks),
        )

    def _gather(
        self, index: SqliteIndex, wanted: ContextTask, is_kept: Callable[[Memory], bool]
    ) -> tuple[Material, tuple[str, ...]]:
        """Return the entries for the sections of a context, from the updated index, and what was missing."""
        degraded = self._index.refresh().reasons
        query = Request(" ".join((wanted.task, *wanted.labels)), limit=_CANDIDATES, is_task=True)
        search, failed = self._searching.prepare(index, query)
        with index.snapshot():
            faults = index.faults(Filters(job=wanted.place.job, task=wanted.place.task))
            material = MaterialReader(index, wanted, search, is_kept).read()
        degraded = (*degraded, *failed)
        if faults:
            from memory_kb.index.note_chunks import describe_faults

            degraded += describe_faults(faults)
        return material, degraded

    def _locate(self, task: str, files: Sequence[str]) -> tuple[str, ...]:
        """Return the paths of files relative to the project; raise UsageError without a file and a task."""
        located = tuple(path for file in files if (path := self._index.place_file(file)))
        if task.strip() or located:
            return located
        if files:
            hint = "say in words what is to be done"
            raise UsageError("the files are outside the project, and there is no task", hint)
        raise UsageError("there is no task to give a context for", 'try: memory-kb context "fix the flaky upload test"')

    def _search_agent_memory(self, task: str) -> tuple[Hit, ...]:
        """Return hits in agents' own memories about a task, in files that the agent does not give its model anyway."""
        from memory_kb.search.agent_memory import bears_on

        hits = self._searching.search_agent_memory(Request(task, is_task=True), only_ungiven=True) if task else ()
        return tuple(hit for hit in hits if bears_on(task, hit, self._vault.settings.context.floor))[:_MOST_OF_AGENTS]
