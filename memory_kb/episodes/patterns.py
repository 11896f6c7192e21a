"""Find patterns: sentences that recur in similar episodes, and their confidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from memory_kb.episodes.diary import DiaryEntry, infer_category, read_diary
from memory_kb.learning.duplicates import turning_words
from memory_kb.markdown.fields import parse_date
from memory_kb.model import Location
from memory_kb.similarity import Pair, cosine_pairs, near_pairs, seeded_clusters, word_set
from memory_kb.store.plan import Memory
from memory_kb.text import jaccard

if TYPE_CHECKING:
    from memory_kb.learning.entry_store import Meanings

#: Episodes are one cluster from these on, sentences one statement.
CLUSTER_COSINE, CLUSTER_LEXICAL, SAME_STATEMENT = 0.7, 0.4, 0.5
#: A pattern is kept from this confidence on, and is that of an existing rule.
LEAST_CONFIDENCE, SAME_PATTERN = 0.8, 0.8
#: Older episodes are in the archive, or are there because something refers to them.
WINDOW_DAYS = 30
_DIGITS = 6
_FEWEST, _EVENT_CHARS = 4, 300


#: Where a learning that somebody stated comes from, and what kinds it is of.
_STATED = ("user_explicit", "observed", "extracted")
_STATEMENTS = ("fact", "preference", "policy", "decision", "architecture")


class EpisodeRecord(NamedTuple):
    """An episode as an entry and as a diary entry."""

    memory: Memory
    diary: DiaryEntry


class Pattern(NamedTuple):
    """A statement that recurs.

    Attributes:
        text: the statement as a rule says it.
        said: all the sentences that say it, the one nearest to the others first.
        episodes: those it recurs in, oldest first.
    """

    text: str
    said: tuple[str, ...]
    episodes: tuple[EpisodeRecord, ...]

    @property
    def successes(self) -> int:
        """How many of the episodes ended well."""
        return sum(1 for one in self.episodes if one.diary.status == "success")

    @property
    def failures(self) -> int:
        """How many of the episodes failed."""
        return sum(1 for one in self.episodes if one.diary.status == "failure")

    @property
    def sessions(self) -> frozenset[str]:
        """The sessions that its episodes mention."""
        return frozenset(one.diary.session_id for one in self.episodes if one.diary.session_id)

    @property
    def confidence(self) -> float:
        """How far it is trusted."""
        return pattern_confidence(len(self.episodes), self.successes)

    @property
    def category(self) -> str:
        """What sort of work its episodes were."""
        words = Counter(infer_category(one.diary.goal or one.diary.title) for one in self.episodes)
        return max(sorted(words), key=lambda word: words[word])

    @property
    def conditions(self) -> tuple[str, ...]:
        """What its episodes have in common: files that two of them changed."""
        files = Counter(file for one in self.episodes for file in one.memory.words("files"))
        return tuple(f"working on {file}" for file, count in sorted(files.items()) if count > 1)[:5]


def pattern_confidence(episodes: int, successes: int) -> float:
    """Return the confidence of a pattern: min(0.95, 0.5 + 0.1 n + 0.1 share of successes).

    Example:
        >>> pattern_confidence(2, 2), pattern_confidence(2, 1), pattern_confidence(5, 5)
        (0.8, 0.75, 0.95)
    """
    return round(min(0.95, 0.5 + 0.1 * episodes + 0.1 * successes / episodes), _DIGITS)


def pattern_similarity(one: str, other: str, *, same_category: bool, conditions: float) -> float:
    """Return how much two patterns are one: half their words, then category and conditions.

    `conditions` is the Jaccard of their conditions.

    Example:
        >>> pattern_similarity("Use UTC.", "use UTC", same_category=True, conditions=0.0)
        0.8
    """
    return round(0.5 * jaccard(word_set(one), word_set(other)) + 0.3 * same_category + 0.2 * conditions, _DIGITS)


def recent_episodes(
    memories: Iterable[Memory], now: datetime, taken_in: frozenset[str] = frozenset()
) -> tuple[EpisodeRecord, ...]:
    """Return the live episodes of the last 30 days, oldest first; those without a date count as new.

    What counts is when it happened, not when it was last of use. Those that were taken in within
    these days count too, since nobody could learn from them before: `taken_in` are their ids.
    """
    first = (now.astimezone(UTC) - timedelta(days=WINDOW_DAYS)).date()
    found = [
        EpisodeRecord(memory, read_diary(memory))
        for memory in memories
        if memory.kind == "episode" and memory.is_live and memory.is_ours and not memory.is_superseded
        if memory.id in taken_in or (parse_date(memory.created_at) or memory.seen or first) >= first
    ]
    return tuple(sorted(found, key=lambda one: (one.diary.timestamp, one.memory.id)))


def with_stated(episodes: Iterable[EpisodeRecord], memories: Iterable[Memory]) -> tuple[EpisodeRecord, ...]:
    """Return episodes with what people and agents stated in their sessions among the key learnings."""
    stated: dict[str, dict[str, None]] = {}
    for memory in memories:
        is_stated = memory.word("source") in _STATED and memory.kind in _STATEMENTS
        if is_stated and memory.is_live and not memory.is_superseded:
            for session in (memory.word("session_id"), *memory.words("sources")):
                stated.setdefault(session or "", {})[memory.text.strip()] = None

    def add_stated(one: EpisodeRecord) -> EpisodeRecord:
        learnings = dict.fromkeys((*one.diary.key_learnings, *stated.get(one.diary.session_id or "-", ())))
        return one._replace(diary=replace(one.diary, key_learnings=tuple(learnings)))

    return tuple(map(add_stated, episodes))


def is_new(one: EpisodeRecord, sources: frozenset[str], now: datetime) -> bool:
    """Return whether an episode is still to be consolidated.

    It is one of the last 24 hours, or no entry names it as its source yet: what happened
    while no consolidation ran is not lost.
    """
    if one.memory.id not in sources:
        return True
    since = (now.astimezone(UTC) - timedelta(hours=24)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return one.diary.timestamp >= (since[:10] if len(one.diary.timestamp) == 10 else since)


def cluster_episodes(
    episodes: Sequence[EpisodeRecord], meanings: Meanings | None = None
) -> list[tuple[EpisodeRecord, ...]]:
    """Return the clusters of at least two alike episodes, the oldest of each as its seed.

    Two are alike from a cosine of 0.7 on where both have a vector. Else their words decide: what they
    state, or their goals where they state nothing, share at least 0.4 of them.
    """
    row_of = meanings.row_of if meanings else {}
    keys = [(one.memory.path, one.memory.line) for one in episodes]
    have = [place for place, key in enumerate(keys) if key in row_of]
    said = ["\n".join(_statements(one.diary)) or one.diary.goal or one.diary.title for one in episodes]
    pairs = set(near_pairs([word_set(text) for text in said], CLUSTER_LEXICAL))
    pairs = {pair for pair in pairs if not {pair.one, pair.other} <= set(have)}
    if meanings and have:
        for pair in cosine_pairs(meanings.rows[[row_of[keys[place]] for place in have]], CLUSTER_COSINE):
            pairs.add(Pair(have[pair.one], have[pair.other], pair.similarity))
    return [tuple(episodes[place] for place in cluster) for cluster in seeded_clusters(pairs)]


def find_patterns(cluster: Sequence[EpisodeRecord]) -> tuple[Pattern, ...]:
    """Return what recurs in at least two episodes of a cluster, at most three statements."""
    said = [
        (text, one)
        for one in cluster
        for text in _statements(one.diary)
        if len(word_set(as_rule(text))) >= _FEWEST and not text.rstrip().endswith("?")
    ]
    sets = [word_set(as_rule(text)) for text, _ in said]
    turns = [turning_words(as_rule(text)) for text, _ in said]
    pairs = [
        pair
        for pair in near_pairs(sets, SAME_STATEMENT)
        if said[pair.one][1] is not said[pair.other][1] and turns[pair.one] == turns[pair.other]
    ]
    patterns = []
    for alike in seeded_clusters(pairs):
        likeness = {place: sum(jaccard(sets[place], sets[other]) for other in alike) for place in alike}
        ranked = sorted(alike, key=lambda place: (-likeness[place], -len(said[place][0]), place))
        texts = tuple(dict.fromkeys(said[place][0] for place in ranked))
        episodes = {said[place][1].memory.id: said[place][1] for place in sorted(alike)}
        in_order = tuple(sorted(episodes.values(), key=lambda one: (one.diary.timestamp, one.memory.id)))
        patterns.append(Pattern(as_rule(texts[0]), texts, in_order))
    return tuple(sorted(patterns, key=lambda pattern: -len(pattern.episodes)))[:3]


def _statements(diary: DiaryEntry) -> tuple[str, ...]:
    """Return what an episode states: its key learnings and decisions, else the event that it reports in a sentence."""
    stated = (*diary.key_learnings, *diary.decisions)
    return stated or ((" ".join(diary.lead.split()),) if 0 < len(diary.lead) <= _EVENT_CHARS else ())


def as_rule(sentence: str) -> str:
    """Return a sentence as a rule says it.

    Example:
        >>> as_rule("publish after  the commit")
        'Publish after the commit.'
    """
    text = " ".join(sentence.split())
    text = text[:1].upper() + text[1:]
    return text if not text or text[-1] in ".!?…。" else f"{text}."


def common_place(places: Iterable[Location]) -> Location:
    """Return the narrowest place that holds all of some places.

    Example:
        >>> common_place([Location("task", "api", "a"), Location("task", "api", "b")])
        Location(scope='job', job='api', task=None, learning_type='task')
    """
    found = {(place.scope, place.job, place.task) for place in places}
    if len(found) == 1:
        scope, job, task = found.pop()
        return Location(scope, job, task)
    jobs = {job for scope, job, _ in found if scope != "global"}
    job = jobs.pop() if len(jobs) == 1 and not any(scope == "global" for scope, _, _ in found) else None
    return Location("job", job) if job else Location()
