"""Turn what recurs in episodes into rules, and the errors of sessions into pitfalls.

A second run over the same episodes changes nothing: an entry counts each source once.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from memory_kb.episodes.diary_text import (
    DiaryEntry,
    EpisodeRecord,
    ErrorLine,
    cut_sections,
    read_diary,
)
from memory_kb.episodes.session_facts import Trace, same_words
from memory_kb.learning.ingest import Ingested, Learning, plan_sighting
from memory_kb.learning.memories import EntryVectors
from memory_kb.learning.render_entry import Draft, moment_of
from memory_kb.learning.text_comparison import TWIN_SIMILARITY, fingerprint, likeness, nearness, turning_words
from memory_kb.learning.trust import SessionCounts, judge_rule
from memory_kb.markdown.splice import Value
from memory_kb.memory import Memory
from memory_kb.model import Location
from memory_kb.reports import RunReport
from memory_kb.similarity import near_pairs, seeded_clusters, word_set
from memory_kb.store.changes import Change
from memory_kb.terms import jaccard
from memory_kb.text import parse_date, pluralize, shorten

#: Episodes are one cluster from these on, sentences one statement.
CLUSTER_COSINE, CLUSTER_LEXICAL, SAME_STATEMENT = 0.7, 0.4, 0.5
#: A pattern is kept from this confidence on, and is that of an existing rule.
LEAST_CONFIDENCE, SAME_PATTERN = 0.8, 0.8
#: Older episodes are in the archive, or are there because something refers to them.
WINDOW_DAYS = 30
_DIGITS = 6
_FEWEST, _EVENT_CHARS = 4, 300
_TITLE = 80
#: Where a learning that somebody stated comes from, and what kinds it is of.
_STATED = ("user_explicit", "observed", "extracted")
_STATEMENTS = ("fact", "preference", "policy", "decision", "architecture")


class Pattern(NamedTuple):
    """A statement that recurs, as a rule says it; `said` are all its wordings, the one nearest to the others first."""

    text: str
    said: tuple[str, ...]
    episodes: tuple[EpisodeRecord, ...]

    def ended(self, outcome: str) -> int:
        """Return how many of the episodes had an outcome."""
        return sum(one.diary.status == outcome for one in self.episodes)

    @property
    def confidence(self) -> float:
        """How far it is trusted."""
        return pattern_confidence(len(self.episodes), self.ended("success"))


def pattern_confidence(episodes: int, successes: int) -> float:
    """Return the confidence of a pattern: min(0.95, 0.5 + 0.1 n + 0.1 share of successes)."""
    return round(min(0.95, 0.5 + 0.1 * episodes + 0.1 * successes / episodes), _DIGITS)


def recent_episodes(
    memories: Iterable[Memory], now: datetime, made_since: frozenset[str] = frozenset()
) -> tuple[EpisodeRecord, ...]:
    """Return the live episodes of the last 30 days, oldest first; those without a date count as new.

    What counts is when it happened. Those whose ids are in `made_since` count too: nobody could learn from them before.
    """
    first = (now.astimezone(UTC) - timedelta(days=WINDOW_DAYS)).date()
    found = [
        EpisodeRecord(memory, read_diary(memory))
        for memory in memories
        if memory.kind == "episode" and memory.is_live and memory.is_ours and not memory.is_superseded
        if memory.id in made_since or (parse_date(memory.created_at) or memory.seen or first) >= first
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
        return one._replace(diary=one.diary._replace(key_learnings=tuple(learnings)))

    return tuple(map(add_stated, episodes))


def cluster_episodes(
    episodes: Sequence[EpisodeRecord], vectors: EntryVectors | None = None
) -> list[tuple[EpisodeRecord, ...]]:
    """Return the clusters of at least two alike episodes, the oldest of each as its seed.

    Two are alike from a cosine of 0.7 on where both have a vector. Else their words decide: what they
    state, or their goals where they state nothing, share at least 0.4 of them.
    """
    memories, row_of = [one.memory for one in episodes], vectors.row_of if vectors else {}
    have = {place for place, one in enumerate(memories) if (one.path, one.line) in row_of}
    said = ["\n".join(_statements(one.diary)) or one.diary.goal or one.diary.title for one in episodes]
    by_words = near_pairs([word_set(text) for text in said], CLUSTER_LEXICAL)
    pairs = [pair for pair in by_words if not {pair.one, pair.other} <= have]
    pairs += vectors.near_pairs(memories, CLUSTER_COSINE) if vectors else ()
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
    """Return a sentence as a rule says it: with a capital and a full stop."""
    text = " ".join(sentence.split())
    text = text[:1].upper() + text[1:]
    return text if not text or text[-1] in ".!?…。" else f"{text}."


def common_place(places: Iterable[Location]) -> Location:
    """Return the narrowest place that holds all of some places."""
    found = {(place.scope, place.job, place.task) for place in places}
    if len(found) == 1:
        scope, job, task = found.pop()
        return Location(scope, job, task)
    jobs = {job for scope, job, _ in found if scope != "global"}
    job = jobs.pop() if len(jobs) == 1 and not any(scope == "global" for scope, _, _ in found) else None
    return Location("job", job) if job else Location()


class Pitfall(NamedTuple):
    """One error that at least one episode has; `seen` are the episodes and their wording of it."""

    type: str
    message: str
    seen: tuple[tuple[EpisodeRecord, ErrorLine], ...]

    @property
    def episodes(self) -> tuple[EpisodeRecord, ...]:
        """The episodes it was seen in, oldest first."""
        return tuple({one.memory.id: one for one, _ in self.seen}.values())

    @property
    def solutions(self) -> list[str]:
        """What helped each time that something did."""
        return [error.resolution for _, error in self.seen if error.resolution]


def pitfall_confidence(episodes: int) -> float:
    """Return the confidence of a pitfall: min(0.4 + 0.1 n, 0.8)."""
    return round(min(0.4 + 0.1 * episodes, 0.8), _DIGITS)


def find_pitfalls(episodes: Iterable[EpisodeRecord]) -> tuple[Pitfall, ...]:
    """Return the errors that people reported in two episodes, or with what helped, one for each type and message.

    Errors in episodes that were built from a log are none: what a log proves is proposed for review.
    """
    found: dict[tuple[str, str], list[tuple[EpisodeRecord, ErrorLine]]] = {}
    for one in episodes:
        is_built = one.memory.metadata.get("built_from") is not None
        for error in () if is_built else one.diary.errors:
            if error.type:
                found.setdefault((error.type.casefold(), same_words(error.message)), []).append((one, error))
    pitfalls = (Pitfall(seen[0][1].type, seen[0][1].message, tuple(seen)) for seen in found.values())
    return tuple(one for one in pitfalls if len(one.episodes) > 1 or one.solutions)


def write_pitfall(pitfall: Pitfall) -> str:
    """Return the text of a pitfall, with the most frequent resolution, the newest of those."""
    solved = pitfall.solutions
    counts = Counter(solved)
    best = max(reversed(solved), key=lambda one: counts[one], default="None is known yet")
    parts = (
        _sentence(f"Avoid: {pitfall.type}: {pitfall.message}"),
        "## What fails",
        _sentence(pitfall.type),
        "## Why",
        _sentence(pitfall.message),
        "## Prevention",
        _sentence(best[:1].upper() + best[1:]),
    )
    return "\n\n".join(parts)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


#: What a new source adds to a rule's confidence, and where that ends; a pitfall gains and ends otherwise.
RULE_STEP, RULE_CAP, PITFALL_STEP, PITFALL_CAP = 0.05, 0.99, 0.1, 0.8
#: Entries of these kinds report what happened, or are compared with patterns as rules.
_NO_STATEMENTS = ("episode", "pitfall", "rule", "skill")


class PatternReport(NamedTuple):
    """What was decided about the rules and pitfalls found, and the entries that got more sources."""

    taken: tuple[Ingested, ...]
    extended: tuple[str, ...]
    run: RunReport


@dataclass(frozen=True)
class Consolidation:
    """Plans the rules and pitfalls that the episodes of the last 30 days give.

    `made_ids` are those of all entries that were ever made; one that is gone since was deleted by a person. `weigh`
    returns how the sessions that a pattern does not come from ended. `made_since` are the ids of the entries that were
    made within these days.
    """

    memories: Sequence[Memory]
    now: datetime
    vectors: EntryVectors | None
    made_ids: Collection[str]
    weigh: Callable[[str, Collection[str]], SessionCounts]
    made_since: frozenset[str]

    def plan(self) -> tuple[list[Learning], list[Change]]:
        """Return new learnings, and the changes that add sources, one for each entry."""
        episodes = with_stated(recent_episodes(self.memories, self.now, self.made_since), self.memories)
        done: list[Learning | Change | None] = []
        for group in cluster_episodes(episodes, self.vectors):
            done += map(self._settle_pattern, find_patterns(group))
        done += map(self._settle_pitfall, find_pitfalls(episodes))
        changes: dict[str | None, Change] = {}
        for one in done:
            if isinstance(one, Change):
                changes.setdefault(one.entry_id, one)
        learnings = [one for one in done if isinstance(one, Learning)]
        return learnings, list(changes.values())

    @functools.cached_property
    def _rules(self) -> list[Memory]:
        return [memory for memory in self.memories if memory.kind == "rule" and memory.is_ours]

    @functools.cached_property
    def _others(self) -> list[Memory]:
        return [memory for memory in self.memories if memory.is_live and memory.kind not in _NO_STATEMENTS]

    def _settle_pattern(self, pattern: Pattern) -> Learning | Change | None:
        known = _find_rule(pattern, self._rules)
        if known:
            return plan_more_sources(known, pattern.episodes, self.now, RULE_STEP, RULE_CAP)
        is_said = len(pattern.said) == 1 and any(
            likeness(one.text, pattern.said[0]) > TWIN_SIMILARITY for one in self._others
        )
        was_made = any(_make_rule(pattern, said).entry_id in self.made_ids for said in pattern.said)
        if is_said or was_made or pattern.confidence < LEAST_CONFIDENCE:
            return None
        own = {one.diary.session_id for one in pattern.episodes if one.diary.session_id}
        good, bad = self.weigh(pattern.text, own)
        counts = SessionCounts(pattern.ended("success") + good, pattern.ended("failure") + bad)
        is_refuted = judge_rule(pattern.text, counts).decision == "reject"
        return None if is_refuted else _make_rule(pattern, pattern.said[0])

    def _settle_pitfall(self, pitfall: Pitfall) -> Learning | Change | None:
        title = shorten(f"{pitfall.type}: {pitfall.message}", _TITLE)
        draft = Draft(write_pitfall(pitfall), "pitfall", title)
        reason = f"It was met in {pluralize(len(pitfall.episodes), 'episode')}."
        fields: dict[str, Value] = {"confidence": pitfall_confidence(len(pitfall.episodes))}
        key = f"pitfall/{pitfall.type.casefold()}/{same_words(pitfall.message)}"
        learning = _make_learning(draft, fields, pitfall.episodes, key, reason)
        there = next((one for one in self.memories if one.id == learning.entry_id), None)
        if there:
            return plan_more_sources(there, pitfall.episodes, self.now, PITFALL_STEP, PITFALL_CAP, each=True)
        return learning


def _make_rule(pattern: Pattern, said: str) -> Learning:
    files = Counter(file for one in pattern.episodes for file in one.memory.words("files"))
    conditions = [f"- working on {file}" for file, count in sorted(files.items()) if count > 1][:5]
    body = "\n\n".join((pattern.text, *(("## Conditions", "\n".join(conditions)) if conditions else ())))
    fields: dict[str, Value] = {"confidence": pattern.confidence}
    reason = f"It was said in {len(pattern.episodes)} episodes, {pattern.ended('success')} of them successes."
    return _make_learning(
        Draft(body, "rule"), fields, pattern.episodes, f"pattern/{fingerprint(as_rule(said))}", reason
    )


def _make_learning(
    draft: Draft, fields: Mapping[str, Value], episodes: Sequence[EpisodeRecord], key: str, reason: str
) -> Learning:
    """Return a learning drawn from some episodes; the newest is its origin."""
    newest, sources = episodes[-1].diary, [one.memory.id for one in episodes]
    counts = Counter(tag for one in episodes for tag in one.memory.tags)
    tags = tuple(tag for tag, count in counts.items() if count >= min(2, len(episodes)))
    draft = replace(draft, tags=tags, source="consolidated", fields={**fields, "sources": sources})
    place = common_place(one.memory.place for one in episodes)
    return Learning(draft, place, key, reason, newest.session_id, said=newest.timestamp or None)


def _find_rule(pattern: Pattern, rules: Sequence[Memory]) -> Memory | None:
    """Return the rule of any status that says the same as a pattern: the one made of it, else the most similar."""
    ids = {_make_rule(pattern, said).entry_id for said in pattern.said}
    own = next((rule for rule in rules if rule.id in ids), None)
    if own:
        return own
    texts = [as_rule(said) for said in pattern.said]

    def alike(rule: Memory) -> float:
        text = cut_sections(rule.text)[""]
        return max(nearness(said, text) for said in texts)

    best = max(((alike(rule), rule.is_live, rule) for rule in rules), key=lambda one: one[:2], default=None)
    return best[2] if best and best[0] >= SAME_PATTERN else None


def plan_more_sources(
    memory: Memory, episodes: Sequence[EpisodeRecord], now: datetime, step: float, cap: float, *, each: bool = False
) -> Change | None:
    """Plan to add episodes to an entry's sources; None where it has all of them, or their sessions.

    The entry's confidence rises by a step, once or for each new source, and never falls. What a person retired,
    rejected or wrote into MEMORY.md stays as it is, and so does what holds for all projects.
    """
    known = {*memory.words("sources"), memory.word("session_id")}
    more = [one for one in episodes if known.isdisjoint((one.memory.id, one.diary.session_id or one.memory.id))]
    is_fixed = memory.is_superseded or memory.is_in_people_file or memory.place.scope == "global"
    if not more or is_fixed or not memory.is_live:
        return None
    before = memory.share("confidence", 0.5)
    raised = min(cap, before + step * (len(more) if each else 1))
    added = {"confidence": round(max(before, raised), _DIGITS), "usage_count": memory.count("usage_count") + 1}
    at = max(moment_of(one.diary.timestamp, now) for one in more)
    said = f"{pluralize(len(more), 'more episode')} {'says' if len(more) == 1 else 'say'} so."
    return plan_sighting(memory, [one.memory.id for one in more], at, said, added)


def find_hard_events(traces: Iterable[Trace]) -> list[Learning]:
    """Return the hard events of a session as proposals, one for each cause.

    A cause that was seen before has the same key or text.
    """
    found = []
    for trace in traces:
        for retry in trace.retries:
            failed, worked, error = (text.replace("`", "'") for text in (retry.failed, retry.worked, retry.error))
            text = f"**Error Pattern:** `{failed}` fails with `{error}`\n**Prevention:** Run `{worked}`."
            key = f"retry/{failed}/{worked}/{same_words(error)}"
            found.append(_make_proposal(f"`{failed}` fails, `{worked}` works", text, key, retry.seq, trace))
        for reverted in trace.reverted:
            title = f"A change to {', '.join(f'`{file}`' for file in reverted.files)} was reverted"
            text, key = f"{title} on request: “{reverted.request}”", f"reverted/{trace.session}/{reverted.seq}"
            found.append(_make_proposal(title, text, key, reverted.seq, trace))
    return list({learning.key: learning for learning in reversed(found)}.values())[::-1]


def _make_proposal(title: str, text: str, key: str, seq: int, trace: Trace) -> Learning:
    fields: dict[str, Value] = {"status": "proposed", "session_id": trace.session, "source_events": [str(seq)]}
    draft = Draft(text, "pitfall", shorten(title, _TITLE), source="observed", fields=fields)
    return Learning(draft, Location(), key, f"Seen in session {trace.session}, event {seq}.", trace.session)
