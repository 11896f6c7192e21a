"""Explain the score of a hit, and why a search did not return an entry: at which step it was dropped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from memory_kb.index.port import Index, VectorQuery
from memory_kb.model import LEARNING_TYPES, SEARCHED_STATUSES, WORKING_KINDS, Filters, StoredEntry
from memory_kb.search.candidates import CANDIDATES, Request
from memory_kb.search.groups import Group, count_fitting, diversify
from memory_kb.search.pipeline import MOST_SECTIONS, SearchTrace, trace_search
from memory_kb.search.query import TextQuery
from memory_kb.search.scoring import (
    ENTRY_WEIGHT,
    PASSAGE_WEIGHT,
    SIMILARITY_WEIGHT,
    SUPERSEDED_FACTOR,
    WEIGHTS,
    Scored,
    decay,
)
from memory_kb.search.vector_scores import NEAREST
from memory_kb.settings import Ranking

#: Words that are named at most.
_NAMED = 8


class Absence(NamedTuple):
    """Where a search lost an entry, in one word and in a sentence.

    `step` is hidden, filtered, phrase, excluded, no-shared-term, outside-pool, shadowed, copy, decayed,
    scope, score, variety or budget; found means that it was not lost. `score` is what it had
    at that step and `needed` what it would have needed, both on the scale of that step.
    """

    step: str
    reason: str
    rank: int | None = None
    score: float | None = None
    needed: float | None = None
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """An entry and a search that should perhaps have found it."""

    index: Index
    entry: StoredEntry
    keys: Sequence[int]
    request: Request
    ranking: Ranking
    today: date
    vector_query: VectorQuery | None


def explain_absence(case: Case) -> Absence:
    """Follow an entry through a search to the step at which it is lost."""
    hidden = next(_filtered(case), None)
    if hidden:
        return hidden
    trace = trace_search(case.index, case.request, case.ranking, case.today, case.vector_query)
    mine = [item for item in trace.scored if item.candidate.key in case.keys]
    if not mine:
        return _outside(case, trace)
    best = max(mine, key=lambda item: item.score)
    if not any(item.candidate.key in case.keys for item in trace.kept):
        scopes = ", ".join(sorted(case.index.scopes_of([case.entry.id], case.request.filters)[case.entry.id]))
        return Absence(
            "shadowed",
            f"the same id exists at a more specific scope, which is shown instead (scopes: {scopes})",
            score=best.score,
        )
    return _ranked(case, trace, best)


def _filtered(case: Case) -> Iterator[Absence]:
    """Yield which filter, or which rule of what a search sees, leaves the entry out."""
    entry, filters = case.entry, case.request.filters
    for name, word, chosen, is_seen in (
        ("status", entry.status, filters.statuses, entry.status in SEARCHED_STATUSES),
        ("kind", entry.kind, filters.kinds, entry.kind not in WORKING_KINDS),
    ):
        if chosen and word not in chosen:
            yield Absence("filtered", f"its {name} is {word}, and --{name} asks for {', '.join(chosen)}")
        elif not chosen and not is_seen:
            yield Absence("hidden", f"its {name} is {word}, which is found only with --{name} {word}")
    open_filters = Filters(statuses=(entry.status,), kinds=(entry.kind,), learning_types=LEARNING_TYPES)
    if not case.index.candidates(case.keys, open_filters._replace(learning_types=filters.learning_types)):
        step, asked = (
            ("filtered", "--learning-type leaves it out")
            if filters.learning_types
            else ("hidden", "only --learning-type proxy shows it")
        )
        yield Absence(step, f"it is a proxy learning, and {asked}" if step == "hidden" else asked)
    for flag, one in (
        ("--type", open_filters._replace(types=filters.types)),
        ("--scope", open_filters._replace(scopes=filters.scopes)),
        ("--tag", open_filters._replace(tags=filters.tags)),
        ("--since", open_filters._replace(since=filters.since)),
        ("--file", open_filters._replace(file=filters.file)),
        ("--job or --task", open_filters._replace(job=filters.job, task=filters.task)),
    ):
        if not case.index.candidates(case.keys, one):
            yield Absence("filtered", f"{flag} leaves it out")


def _outside(case: Case, trace: SearchTrace) -> Absence:
    """Explain why an entry is not among the candidates."""
    query, index, keys = trace.found.query, case.index, case.keys
    near = _describe_nearness(case, trace)
    if query is None:
        return Absence(
            "outside-pool",
            near or f"more than {CANDIDATES} entries fit the file, and it is not among the newest of them",
        )
    matching = index.matching((*query.phrases, *query.excluded, *query.terms), keys)
    for phrase in query.phrases:
        if not matching[phrase]:
            return Absence("phrase", f"it does not say {phrase}")
    for word in query.excluded:
        if matching[word]:
            return Absence("excluded", f"it says {word}, which the query excludes")
    if not any(matching[term] for term in query.terms):
        words = ", ".join(term.strip('" *') for term in query.terms[:_NAMED])
        return Absence("no-shared-term", f"it has none of the words {words}{near and f'; {near}'}")
    place = next((number for number, item in enumerate(trace.sections, 1) if item.candidate.key in keys), None)
    if place is not None:
        reason = f"{_describe_words(case, query)}; it is at place {place} of the sections found, and the {MOST_SECTIONS} best of them compete"
        least = trace.sections[MOST_SECTIONS - 1].score
        return Absence("outside-pool", reason, score=trace.sections[place - 1].score, needed=least)
    own = -min(index.ranks(query.expression, WEIGHTS, keys).values(), default=0.0)
    pool = [candidate for candidate in trace.found.candidates if candidate.rank < 0][:CANDIDATES]
    needed = -pool[-1].rank if pool else 0.0
    reason = f"{_describe_words(case, query)}; with a BM25 of {own:.2f} it is not among the {CANDIDATES} best; the last of them has {needed:.2f}"
    return Absence("outside-pool", f"{reason}{near and f'; {near}'}", score=own, needed=needed)


def _describe_words(case: Case, query: TextQuery) -> str:
    """Name the words of the query that the entry has, and those that it lacks, the rarest first."""
    by_rarity = sorted(query.terms, key=case.index.frequency)
    matching = case.index.matching(by_rarity, case.keys)
    there = [term for term in by_rarity if matching[term]]
    lacking = [term.strip('" *') for term in by_rarity if term not in there]
    shared = f"it shares {', '.join(there)}" if there else "it has no word of the query"
    return f"{shared} and lacks {', '.join(lacking[:_NAMED])}" if there and lacking else shared


def _describe_nearness(case: Case, trace: SearchTrace) -> str:
    """Return how near the entry is in meaning beside the nearest ones; "" for a text search."""
    if case.vector_query is None or trace.found.nearness is None:
        return ""
    from memory_kb.search.vector_scores import score_nearness, scores_of

    nearness = score_nearness(case.vector_query)
    mine = scores_of(nearness, case.keys)
    if not mine:
        return "it has no vector yet"
    best = max(map(max, mine.values()))
    before = int((nearness.scores > best).sum())
    return f"in meaning {before:,} passages are nearer, and the nearest {NEAREST} compete (nearness {best:.2f})"


def _ranked(case: Case, trace: SearchTrace, best: Scored) -> Absence:
    """Explain the place of an entry that competes."""
    limit, keys = case.request.limit, set(case.keys)
    missing = [] if trace.found.query is None else [_describe_words(case, trace.found.query)]
    if near := _describe_nearness(case, trace):
        missing.append(near)
    details = (
        f"relevance {best.relevance:.4f} x prominence {best.weight.factor:.4f} x scope {best.weight.scope:g} ({best.candidate.scope})",
        *missing,
        _explain_prominence(best),
    )
    place = next((number for number, group in enumerate(trace.groups, 1) if group.chunk.key in keys), None)
    if place is None:
        return Absence("copy", _explain_copy(case, trace), None, best.score, None, details)
    ordered = diversify(trace.groups, case.ranking.mmr_lambda, len(trace.groups))
    rank = next(rank for rank, group in enumerate(ordered, 1) if group.chunk.key in keys)
    shown = count_fitting(ordered[:limit], case.request.max_chars)
    if rank <= shown:
        return Absence("found", f"it is found, at rank {rank}", rank, best.score, None, details)
    if rank <= limit:
        reason = f"it is at rank {rank}, but the {shown} hits before it fill --max-chars {case.request.max_chars:,}"
        return Absence("budget", reason, rank, best.score, None, details)
    needed = trace.groups[limit - 1].best.score
    if place <= limit:
        reason = f"it is at place {place} by its score, but says much the same as hits above it, which moves it to rank {rank} of {limit} shown"
        return Absence("variety", reason, rank, best.score, needed, details)
    step, cause = _find_cause(best, [group.best for group in trace.groups[:limit]], case.ranking)
    reason = f"it is at place {place} by its score, and {limit} are shown{cause}"
    return Absence(step, reason, rank, best.score, needed, details)


def _explain_copy(case: Case, trace: SearchTrace) -> str:
    """Name the hit that is shown for an entry with the same title and text."""
    own = f"{case.entry.path}:"
    first = next((group for group in trace.groups if any(copy.startswith(own) for copy in group.copies)), None)
    shown = f" as {first.chunk.source}:{first.line}, which names it among its copies" if first else ""
    return f"the same title and text are shown once{shown}"


def _find_cause(item: Scored, shown: Sequence[Scored], ranking: Ranking) -> tuple[str, str]:
    """Return which single factor, worse than that of a shown hit, keeps an entry below the score it needs."""
    needed = shown[-1].score

    def freshness(one: Scored) -> float:
        left = decay(one.weight.age_days, ranking.half_life_days, ranking.decay_floor)
        return float(left**ranking.prominence_exponent)

    own, freshest = freshness(item), max(map(freshness, shown))
    if own < freshest and item.score / own * freshest >= needed:
        days = f"{item.weight.age_days:.0f} days are a factor of {own:.2f}"
        return "decayed", f"; as fresh as others above it ({days}) it would be among them"
    scope, widest = item.weight.scope, max(one.weight.scope for one in shown)
    if scope < widest and item.score / scope * widest >= needed:
        return (
            "scope",
            f"; at a scope that weighs {widest:g}, as others above it, instead of {scope:g} it would be among them",
        )
    return "score", ""


def explain_hit(group: Group, trace: SearchTrace, rank: int, before: int | None) -> tuple[str, ...]:
    """Return a line for every factor of a hit's score.

    `before` is its rank before variety counted; None beyond the candidates.
    """
    best, candidate = group.best, group.best.candidate
    lines = [
        f"score {best.score:.4f} = relevance {best.relevance:.4f} x prominence {best.weight.factor:.4f} x scope {best.weight.scope:g} ({candidate.scope})"
    ]
    if best.share < 1:
        lines[0] += f" x {best.share:.2f} (a better passage of the same section is above)"
    if candidate.is_superseded:
        lines[0] += f" x {SUPERSEDED_FACTOR:g} (superseded by a newer entry)"
    lines += _explain_relevance(best, trace)
    lines += _explain_words(trace, candidate.key)
    lines.append(_explain_prominence(best))
    if before is None:
        lines.append("relevance: beyond the candidates that compete; by BM25 alone")
    elif before != rank:
        lines.append(
            f"variety: rank {rank} instead of {before}, since {'others say' if rank < before else 'hits above it say'} much the same"
        )
    if group.size > 1:
        lines.append(f"text: {group.size} neighbouring passages that match, shown as one")
    return tuple(lines)


def _explain_relevance(scored: Scored, trace: SearchTrace) -> Iterator[str]:
    """Yield what the relevance of a passage is made of: its words, and its nearness in meaning."""
    text, shares = trace.texts.get(scored.candidate.key), trace.shares.get(scored.passage)
    if scored.vector is not None and scored.bm25 is not None:
        yield f"relevance: nearness in meaning {scored.vector:.4f} beside words {scored.bm25:.4f}, of 1 each"
    if text and shares:
        name = "relevance" if scored.vector is None else "words"
        terms = [
            f"{(1 - ENTRY_WEIGHT) * (1 - PASSAGE_WEIGHT):g} x section {shares.section:.4f}",
            f"{(1 - ENTRY_WEIGHT) * PASSAGE_WEIGHT:g} x passage {shares.passage:.4f}",
            f"{ENTRY_WEIGHT:g} x note {shares.entry:.4f}",
        ]
        if shares.similarity:
            terms.append(f"{SIMILARITY_WEIGHT:g} x similarity to the best {shares.similarity:.4f}")
        of_best = scored.relevance if scored.bm25 is None else scored.bm25
        yield f"{name}: {' + '.join(terms)} = {shares.total:.4f}, which is {of_best:.4f} of the best"
        bonus = f" x {1 + text.bonus:.3g} for title, headings, wording and speaker" if text.bonus else ""
        yield f"section: BM25 {text.own:.3g}{bonus}"


def _explain_words(trace: SearchTrace, key: int) -> list[str]:
    """Name the query's words that a section says or has above it, those that it lacks, and those that were left out."""
    query = trace.found.query
    if query is None or trace.finder is None or key not in trace.said:
        return []
    said, lacking = trace.finder.name_terms(trace.said[key])
    parts = {"words": said, "lacks": lacking, "ignored": [term for term in query.ignored if term not in query.terms]}
    named = {name: ", ".join(term.strip('" *') for term in terms) for name, terms in parts.items() if terms}
    return ["; ".join(f"{name} {terms}" for name, terms in named.items())]


def _explain_prominence(scored: Scored) -> str:
    """Return what the prominence of a candidate is made of."""
    candidate = scored.candidate
    age = f"{scored.weight.age_days:.0f} days old" if candidate.seen else "undated, so of age 0"
    return f"prominence: importance {candidate.importance:g}, {age}, reinforced {candidate.reinforcement_count} times, {candidate.status}"
