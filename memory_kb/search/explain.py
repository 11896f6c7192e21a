"""Explain the score of a hit, factor by factor."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from memory_kb.search.groups import Group
from memory_kb.search.passages import WordFinder
from memory_kb.search.scoring import (
    ENTRY_WEIGHT,
    PASSAGE_WEIGHT,
    SIMILARITY_WEIGHT,
    SUPERSEDED_FACTOR,
    ScoredPassage,
    ScoredSection,
)


def explain_hit(group: Group, rank: int, groups: Sequence[Group], finder: WordFinder | None) -> tuple[str, ...]:
    """Return a line for every factor of a hit's score; `groups` are all that compete, in the order of their scores."""
    best, candidate = group.best, group.best.section.candidate
    score = f"score {best.score:.4f} = {multiply(best)}"
    if best.share < 1:
        score += f" x {best.share:.2f} (a better passage of the same section is above)"
    if candidate.is_superseded:
        score += f" x {SUPERSEDED_FACTOR:g} (superseded by a newer entry)"
    lines = [score, *_explain_relevance(best), *_explain_words(finder, candidate.key), explain_prominence(best.section)]
    before = next((number for number, one in enumerate(groups, 1) if one is group), None)
    if before is None:
        lines.append("relevance: beyond the candidates that compete; by BM25 alone")
    elif before != rank:
        others = "others say" if rank < before else "hits above it say"
        lines.append(f"variety: rank {rank} instead of {before}, since {others} much the same")
    if group.size > 1:
        lines.append(f"text: {group.size} neighbouring passages that match, shown as one")
    return tuple(lines)


def multiply(scored: ScoredPassage) -> str:
    """Return the factors of the score of a passage."""
    weight, scope = scored.section.weight, scored.section.candidate.scope
    return f"relevance {scored.relevance:.4f} x prominence {weight.factor:.4f} x scope {weight.scope:g} ({scope})"


def _explain_relevance(scored: ScoredPassage) -> Iterator[str]:
    """Yield what the relevance of a passage is made of: its words, and its nearness in meaning."""
    text, shares = scored.section.text, scored.shares
    if scored.vector is not None and scored.bm25 is not None:
        near, words, weight = scored.vector, scored.bm25, scored.vector_weight
        is_sum = math.isclose(scored.relevance, weight * near + (1 - weight) * words)
        sides = f"{weight:.4f} x nearness in meaning {near:.4f} + {1 - weight:.4f} x words {words:.4f}"
        yield f"relevance: {sides}{'' if is_sum else ', by their ranks'} = {scored.relevance:.4f}"
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


def _explain_words(finder: WordFinder | None, key: int) -> Iterator[str]:
    """Yield the query's words that a section says or has above it, those that it lacks, and those that were left out."""
    if finder and key in finder.occurrences:
        said, lacking = finder.name_terms(key)
        ignored = [term for term in finder.query.ignored if term not in finder.query.terms]
        parts = {"words": said, "lacks": lacking, "ignored": ignored}
        yield "; ".join(f"{name} {join_terms(terms)}" for name, terms in parts.items() if terms)


def join_terms(terms: Sequence[str]) -> str:
    """Return terms as a person reads them."""
    return ", ".join(term.strip('" *') for term in terms)


def explain_prominence(section: ScoredSection) -> str:
    """Return what the prominence of a section is made of."""
    one = section.candidate
    age = f"{section.weight.age_days:.0f} days old" if one.seen else "undated, so of age 0"
    return f"prominence: importance {one.importance:g}, {age}, reinforced {one.reinforcement_count} times, {one.status}"
