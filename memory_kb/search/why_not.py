"""Explain why a search did not return an entry: at which step it was dropped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from memory_kb.index.port import Index
from memory_kb.model import LEARNING_TYPES, SEARCHED_STATUSES, WORKING_KINDS, Filters, StoredEntry
from memory_kb.reports import WhyNot
from memory_kb.search.candidates import CANDIDATES
from memory_kb.search.explain import explain_prominence, join_terms, multiply
from memory_kb.search.groups import Group, count_fitting, diversify
from memory_kb.search.pipeline import MOST_SECTIONS, Search, SearchTrace, trace_search
from memory_kb.search.query import TextQuery
from memory_kb.search.scoring import WEIGHTS, ScoredPassage, decay
from memory_kb.search.vector_scores import NEAREST
from memory_kb.settings import Ranking

#: Words that are named at most.
_NAMED = 8
#: The filters that each option sets, but for those of status, kind and learning type.
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "--type": ("types",),
    "--scope": ("scopes",),
    "--tag": ("tags",),
    "--since": ("since",),
    "--file": ("file",),
    "--job or --task": ("job", "task"),
}


@dataclass(frozen=True, slots=True)
class _Case:
    """An entry, by the keys of its sections, and a search that should perhaps have found it, with its steps."""

    index: Index
    search: Search
    trace: SearchTrace
    entry: StoredEntry
    keys: Sequence[int]

    def lost(self, step: str, reason: str, score: float | None = None, needed: float | None = None) -> WhyNot:
        """Return that the entry is lost at a step, with what it had there and what it would have needed."""
        return WhyNot(self.search.request.text, self.entry.id, self.entry.path, step, reason, None, score, needed)


def explain_absence(index: Index, search: Search, entry: StoredEntry) -> WhyNot:
    """Follow an entry through a search to the step at which it is lost."""
    keys, request = index.keys_of(entry), search.request
    if hidden := next(_find_filters(index, request.filters, entry, keys), None):
        return WhyNot(request.text, entry.id, entry.path, *hidden)
    case = _Case(index, search, trace_search(index, search), entry, keys)
    mine = [item for item in case.trace.scored if item.passage.key in keys]
    if not mine:
        return _explain_outside(case)
    best = max(mine, key=lambda item: item.score)
    if not any(item.passage.key in keys for item in case.trace.kept):
        scopes = ", ".join(sorted(index.scopes_of([entry.id], request.filters)[entry.id]))
        reason = f"the same id exists at a more specific scope, which is shown instead (scopes: {scopes})"
        return case.lost("shadowed", reason, best.score)
    return _explain_rank(case, best)


def _find_filters(index: Index, filters: Filters, entry: StoredEntry, keys: Sequence[int]) -> Iterator[tuple[str, str]]:
    """Yield the step and the reason where a filter, or a rule of what a search sees, leaves an entry out."""
    for name, word, chosen, is_seen in (
        ("status", entry.status, filters.statuses, entry.status in SEARCHED_STATUSES),
        ("kind", entry.kind, filters.kinds, entry.kind not in WORKING_KINDS),
    ):
        if chosen and word not in chosen:
            yield "filtered", f"its {name} is {word}, and --{name} asks for {', '.join(chosen)}"
        elif not chosen and not is_seen:
            yield "hidden", f"its {name} is {word}, which is found only with --{name} {word}"
    own = Filters(statuses=(entry.status,), kinds=(entry.kind,), learning_types=LEARNING_TYPES)

    def passes(*names: str) -> bool:
        return bool(index.candidates(keys, own._replace(**{name: getattr(filters, name) for name in names})))

    if not passes("learning_types"):
        if filters.learning_types:
            yield "filtered", "--learning-type leaves it out"
        else:
            yield "hidden", "it is a proxy learning, and only --learning-type proxy shows it"
    for option, names in _OPTIONS.items():
        if not passes(*names):
            yield "filtered", f"{option} leaves it out"


def _explain_outside(case: _Case) -> WhyNot:
    """Explain why an entry is not among the sections that compete."""
    index, trace, keys = case.index, case.trace, case.keys
    query, near = trace.found.query, _describe_nearness(case)
    if query is None:
        many = f"more than {CANDIDATES} entries fit the file, and it is not among the newest of them"
        return case.lost("outside-pool", near or many)
    matching = index.matching((*query.phrases, *query.excluded, *query.terms), keys)
    for phrase in query.phrases:
        if not matching[phrase]:
            return case.lost("phrase", f"it does not say {phrase}")
    for word in query.excluded:
        if matching[word]:
            return case.lost("excluded", f"it says {word}, which the query excludes")
    also_near = near and f"; {near}"
    if not any(matching[term] for term in query.terms):
        return case.lost("no-shared-term", f"it has none of the words {join_terms(query.terms[:_NAMED])}{also_near}")
    words = _describe_words(case, query)
    place = next((number for number, item in enumerate(trace.sections, 1) if item.candidate.key in keys), None)
    if place is not None:
        reason = f"{words}; it is at place {place} of the sections found, and the {MOST_SECTIONS} best of them compete"
        least = trace.sections[MOST_SECTIONS - 1].score
        return case.lost("outside-pool", reason, trace.sections[place - 1].score, least)
    own = -min(index.ranks(query.expression, WEIGHTS, keys).values(), default=0.0)
    pool = [candidate for candidate in trace.found.candidates if candidate.rank < 0][:CANDIDATES]
    needed = -pool[-1].rank if pool else 0.0
    beside = f"it is not among the {CANDIDATES} best; the last of them has {needed:.2f}"
    reason = f"{words}; with a BM25 of {own:.2f} {beside}{also_near}"
    return case.lost("outside-pool", reason, own, needed)


def _describe_words(case: _Case, query: TextQuery) -> str:
    """Name the words of the query that the entry has, and those that it lacks, the rarest first."""
    by_rarity = sorted(query.terms, key=case.index.frequency)
    matching = case.index.matching(by_rarity, case.keys)
    there = [term for term in by_rarity if matching[term]]
    lacking = [term for term in by_rarity if not matching[term]]
    shared = f"it shares {', '.join(there)}" if there else "it has no word of the query"
    return f"{shared} and lacks {join_terms(lacking[:_NAMED])}" if there and lacking else shared


def _describe_nearness(case: _Case) -> str:
    """Return how near the entry is in meaning beside the nearest ones; "" for a text search."""
    if case.search.cosines is None or case.trace.found.nearness is None:
        return ""
    from memory_kb.search.vector_scores import score_nearness, scores_of

    nearness = score_nearness(case.search.cosines)
    mine = scores_of(nearness, case.keys)
    if not mine:
        return "it has no vector yet"
    best = max(map(max, mine.values()))
    before = int((nearness.scores > best).sum())
    return f"in meaning {before:,} passages are nearer, and the nearest {NEAREST} compete (nearness {best:.2f})"


def _explain_rank(case: _Case, best: ScoredPassage) -> WhyNot:
    """Explain the place of an entry that competes."""
    request, trace, keys = case.search.request, case.trace, case.keys
    limit, groups = request.limit, trace.groups
    missing = [] if trace.found.query is None else [_describe_words(case, trace.found.query)]
    if near := _describe_nearness(case):
        missing.append(near)
    details = (multiply(best), *missing, explain_prominence(best.section))
    place = next((number for number, group in enumerate(groups, 1) if group.chunk.key in keys), None)
    if place is None:
        return case.lost("copy", _explain_copy(case.entry, groups), best.score)._replace(details=details)
    ordered = diversify(groups, case.search.ranking.mmr_lambda, len(groups))
    rank = next(rank for rank, group in enumerate(ordered, 1) if group.chunk.key in keys)
    shown = count_fitting(ordered[:limit], request.max_chars)
    needed = None if rank <= limit else groups[limit - 1].best.score
    if rank <= shown:
        step, reason = "found", f"it is found, at rank {rank}"
    elif rank <= limit:
        most = request.max_chars
        step, reason = "budget", f"it is at rank {rank}, but the {shown} hits before it fill --max-chars {most:,}"
    elif place <= limit:
        moved = f"says much the same as hits above it, which moves it to rank {rank} of {limit} shown"
        step, reason = "variety", f"it is at place {place} by its score, but {moved}"
    else:
        step, cause = _find_cause(best, [group.best for group in groups[:limit]], case.search.ranking)
        reason = f"it is at place {place} by its score, and {limit} are shown{cause}"
    return case.lost(step, reason, best.score, needed)._replace(rank=rank, details=details)


def _explain_copy(entry: StoredEntry, groups: Sequence[Group]) -> str:
    """Name the hit that is shown for an entry with the same title and text."""
    own = f"{entry.path}:"
    first = next((group for group in groups if any(copy.startswith(own) for copy in group.copies)), None)
    shown = f" as {first.chunk.source}:{first.line}, which names it among its copies" if first else ""
    return f"the same title and text are shown once{shown}"


def _find_cause(item: ScoredPassage, shown: Sequence[ScoredPassage], ranking: Ranking) -> tuple[str, str]:
    """Return which single factor, worse than that of a shown hit, keeps an entry below the score it needs."""
    needed = shown[-1].score

    def freshness(one: ScoredPassage) -> float:
        left = decay(one.section.weight.age_days, ranking.half_life_days, ranking.decay_floor)
        return float(left**ranking.prominence_exponent)

    own, freshest = freshness(item), max(map(freshness, shown))
    if own < freshest and item.score / own * freshest >= needed:
        days = f"{item.section.weight.age_days:.0f} days are a factor of {own:.2f}"
        return "decayed", f"; as fresh as others above it ({days}) it would be among them"
    scope, widest = item.section.weight.scope, max(one.section.weight.scope for one in shown)
    if scope < widest and item.score / scope * widest >= needed:
        instead = f"at a scope that weighs {widest:g}, as others above it, instead of {scope:g}"
        return "scope", f"; {instead} it would be among them"
    return "score", ""
