"""Turn what recurs in episodes into rules, and their errors into pitfalls.

A second run over the same episodes changes nothing: an entry counts each source once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from memory_kb.episodes.diary import cut_sections, items_of
from memory_kb.episodes.error_pitfalls import Pitfall, find_pitfalls, tags_of, write_pitfall
from memory_kb.episodes.patterns import (
    LEAST_CONFIDENCE,
    SAME_PATTERN,
    EpisodeRecord,
    Pattern,
    as_rule,
    common_place,
    find_patterns,
    is_new,
    pattern_similarity,
    recent_episodes,
    with_stated,
)
from memory_kb.learning.duplicates import likeness, turning_words
from memory_kb.learning.ingest import Offer, Taken, plan_sighting
from memory_kb.learning.new_entry import TWIN_SIMILARITY, Draft, fingerprint, moment_of
from memory_kb.learning.review_gate import SessionCounts, judge_rule
from memory_kb.markdown.splice import Value
from memory_kb.reports import RunReport
from memory_kb.store.plan import Change, Memory
from memory_kb.text import jaccard

#: What a new source adds to a rule's confidence, and where that ends; a pitfall gains and ends otherwise.
RULE_STEP, RULE_CAP, PITFALL_STEP, PITFALL_CAP = 0.05, 0.99, 0.1, 0.8
_DIGITS = 6
#: Entries of these kinds report what happened, or are compared with patterns as rules.
_NO_STATEMENTS = ("episode", "pitfall", "rule", "skill")
#: Groups alike episodes.
Clusterer = Callable[[Sequence[EpisodeRecord]], Iterable[Sequence[EpisodeRecord]]]
#: How past sessions about the words of a rule ended, all but some of them.
Weigher = Callable[[str, Collection[str]], SessionCounts]


class Dropped(NamedTuple):
    """A pattern that was found and not kept, and why."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Consolidation:
    """What consolidating comes to: learnings to offer, entries to add sources to, and what was not kept."""

    offers: tuple[Offer, ...] = ()
    changes: tuple[Change, ...] = ()
    dropped: tuple[Dropped, ...] = ()


@dataclass(frozen=True, slots=True)
class Semantic:
    """What consolidating did.

    Attributes:
        taken: what became of the rules and pitfalls that were offered.
        extended: the entries that got more sources.
        dropped: patterns that were found and not kept, each with the reason.
    """

    taken: tuple[Taken, ...]
    extended: tuple[str, ...]
    dropped: tuple[Dropped, ...]
    run: RunReport


def plan_consolidation(
    memories: Sequence[Memory],
    now: datetime,
    cluster: Clusterer,
    *,
    was_made: Callable[[str], bool] = lambda _: False,
    weigh: Weigher = lambda *_: SessionCounts(),
    taken_in: frozenset[str] = frozenset(),
) -> Consolidation:
    """Plan the rules and pitfalls that the episodes of the last 30 days give.

    A cluster counts when one of its episodes is new: of the last 24 hours, or the source of
    nothing yet. So nothing is lost when a weekend passes without a run.

    Args:
        memories: all entries.
        now: the time.
        cluster: groups alike episodes, as `patterns.cluster_episodes` does.
        was_made: returns whether an entry of this id was ever made; one that is gone since was taken
            away by a person.
        weigh: returns how the sessions that a pattern does not come from ended.
        taken_in: the ids of the entries that were made within these days.
    """
    episodes = with_stated(recent_episodes(memories, now, taken_in), memories)
    sources = frozenset(source for memory in memories for source in memory.words("sources"))
    patterns = [
        pattern
        for group in cluster(episodes)
        if any(is_new(one, sources, now) for one in group)
        for pattern in find_patterns(group)
    ]
    rules = [memory for memory in memories if memory.kind == "rule" and memory.is_ours]
    others = [memory for memory in memories if memory.is_live and memory.kind not in _NO_STATEMENTS]
    done = [_settle_pattern(pattern, rules, others, now, was_made, weigh) for pattern in patterns]
    pitfalls = {memory.id: memory for memory in memories if memory.kind == "pitfall"}
    done += [_settle_pitfall(pitfall, pitfalls, now) for pitfall in find_pitfalls(episodes)]
    changes = {change.entry_id: change for change in reversed(done) if isinstance(change, Change)}
    return Consolidation(
        tuple(one for one in done if isinstance(one, Offer)),
        tuple(reversed(changes.values())),
        tuple(one for one in done if isinstance(one, Dropped)),
    )


def _settle_pattern(
    pattern: Pattern,
    rules: Sequence[Memory],
    others: Sequence[Memory],
    now: datetime,
    was_made: Callable[[str], bool],
    weigh: Weigher,
) -> Offer | Change | Dropped | None:
    known = _find_rule(pattern, rules)
    if known:
        return plan_more_sources(known, pattern.episodes, now, RULE_STEP, RULE_CAP)
    there = next(
        (one for one in others if any(likeness(one.text, said) > TWIN_SIMILARITY for said in pattern.said)), None
    )
    if there and len(pattern.said) == 1:
        return Dropped(pattern.text, f"{there.id} says it already")
    if pattern.confidence < LEAST_CONFIDENCE:
        return Dropped(pattern.text, f"its confidence is {pattern.confidence}, below {LEAST_CONFIDENCE}")
    offers = [_offer_rule(pattern, text, pattern.text) for text in pattern.said]
    if any(was_made(offer.entry_id) for offer in offers):
        return Dropped(pattern.text, "it was taken away before")
    others_good, others_bad = weigh(pattern.text, pattern.sessions)
    counts = SessionCounts(pattern.successes + others_good, pattern.failures + others_bad)
    verdict = judge_rule(pattern.text, counts)
    if verdict.decision == "reject":
        return Dropped(pattern.text, verdict.reason)
    return _unless_said(_offer_rule(pattern, pattern.said[0], pattern.text), rules)


def _unless_said(offer: Offer, entries: Iterable[Memory]) -> Offer | None:
    """Return an offer, unless it comes from no session and a live entry says the same already.

    Sightings are distinguished by their session; without one an entry would be reinforced every time.
    """
    if offer.origin is None and any(
        likeness(entry.text, offer.draft.text) > TWIN_SIMILARITY for entry in entries if entry.is_live
    ):
        return None
    return offer


def _offer_rule(pattern: Pattern, said: str, text: str) -> Offer:
    conditions = "\n".join(f"- {one}" for one in pattern.conditions)
    body = f"{text}\n\n## Conditions\n\n{conditions}" if conditions else text
    fields: dict[str, Value] = {"category": pattern.category, "confidence": pattern.confidence}
    reason = f"It was said in {len(pattern.episodes)} episodes, {pattern.successes} of them successes."
    return _offer(Draft(body, "rule"), fields, pattern.episodes, f"pattern/{fingerprint(as_rule(said))}", reason)


def _offer(
    draft: Draft, fields: Mapping[str, Value], episodes: Sequence[EpisodeRecord], key: str, reason: str
) -> Offer:
    """Return the offer of what some episodes give, the newest of which is its origin."""
    newest, sources = episodes[-1].diary, [one.memory.id for one in episodes]
    own = (*fields.items(), ("sources", sources))
    draft = replace(draft, tags=tags_of(episodes), source="consolidated", fields=own)
    place = common_place(one.memory.place for one in episodes)
    return Offer(draft, place, key, reason, newest.session_id, said=newest.timestamp or None)


def _find_rule(pattern: Pattern, rules: Sequence[Memory]) -> Memory | None:
    """Return the rule that says a pattern already, whatever its status.

    It is the one made of it before, else the most similar one.
    """
    ids = {_offer_rule(pattern, said, pattern.text).entry_id for said in pattern.said}
    own = next((rule for rule in rules if rule.id in ids), None)
    if own:
        return own
    texts = [as_rule(said) for said in pattern.said]
    category, conditions = pattern.category, frozenset(one.casefold() for one in pattern.conditions)

    def similarity(rule: Memory) -> float:
        text, sections = cut_sections(rule.text)
        known = frozenset(one.casefold() for one in items_of(sections.get("Conditions", "")))
        shared, is_same = jaccard(conditions, known), rule.word("category") == category
        alike = (one for one in texts if turning_words(one) == turning_words(text))
        scores = (pattern_similarity(one, text, same_category=is_same, conditions=shared) for one in alike)
        return max(scores, default=0.0)

    best = max(((similarity(rule), rule.is_live, rule) for rule in rules), key=lambda one: one[:2], default=None)
    return best[2] if best and best[0] >= SAME_PATTERN else None


def _settle_pitfall(pitfall: Pitfall, known: dict[str, Memory], now: datetime) -> Offer | Change | None:
    reason = f"It was met in {len(pitfall.episodes)} episode{'s' if len(pitfall.episodes) > 1 else ''}."
    draft = Draft(write_pitfall(pitfall), "pitfall", pitfall.title)
    offer = _offer(draft, {"confidence": pitfall.confidence}, pitfall.episodes, pitfall.key, reason)
    stated = (memory for memory in known.values() if pitfall.is_stated_by(memory))
    there = known.get(offer.entry_id) or next(stated, None)
    if there:
        return plan_more_sources(there, pitfall.episodes, now, PITFALL_STEP, PITFALL_CAP, each=True)
    return _unless_said(offer, known.values())


def plan_more_sources(
    memory: Memory, episodes: Sequence[EpisodeRecord], now: datetime, step: float, cap: float, *, each: bool = False
) -> Change | None:
    """Plan to add episodes to the sources of an entry, or return None where it has them all.

    An episode counts as had when its session is. The entry's confidence rises by a step, once or
    for each new source, and never falls. What a person retired, rejected or wrote into MEMORY.md
    stays as it is, and so does what holds for all projects.
    """
    counted = {*memory.words("sources"), memory.word("session_id")}
    more = [
        one
        for one in episodes
        if one.memory.id not in counted and (one.diary.session_id or one.memory.id) not in counted
    ]
    new = [one.memory.id for one in more]
    if (
        not new
        or not memory.is_live
        or memory.is_superseded
        or memory.is_in_people_file
        or memory.place.scope == "global"
    ):
        return None
    before = memory.share("confidence", 0.5)
    added = {
        "confidence": round(max(before, min(cap, before + step * (len(new) if each else 1))), _DIGITS),
        "usage_count": memory.count("usage_count") + 1,
    }
    at = max(moment_of(one.diary.timestamp, now) for one in more)
    return plan_sighting(memory, new, at, f"{len(new)} more episode{'s say' if len(new) > 1 else ' says'} so.", added)
