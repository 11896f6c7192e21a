"""Why a hit stands where it stands, in sentences."""

from __future__ import annotations

from memory_kb.retrieval.candidates import Scored
from memory_kb.retrieval.crowding import FREE, Place
from memory_kb.retrieval.folding import Group
from memory_kb.retrieval.relevance import PASSAGE_WEIGHT, TextScore, WordShares


def explain(
    group: Group, text: TextScore | None, shares: WordShares | None, rank: int, place: tuple[int, Place] | None
) -> tuple[str, ...]:
    """Return a line for every factor of a hit's score.

    `place` is its rank before variety counted, with its place in its entry; None beyond the candidates.
    """
    best, candidate = group.best, group.best.candidate
    lines = [
        f"score {best.score:.4f} = relevance {best.relevance:.4f} x prominence {best.factor:.4f} x scope {best.scope:g} ({candidate.scope})"
    ]
    if best.share < 1:
        lines[0] += f" x {best.share:.2f} (a better passage of the same section is above)"
    if candidate.is_superseded:
        lines[0] += " x 0.5 (superseded by a newer entry)"
    if best.vector is not None and best.bm25 is not None:
        lines.append(f"relevance: nearness in meaning {best.vector:.4f} beside words {best.bm25:.4f}, of 1 each")
    if text and shares:
        name = "relevance" if best.vector is None else "words"
        lines.append(
            f"{name}: {1 - PASSAGE_WEIGHT:g} x section {shares.section:.4f} + {PASSAGE_WEIGHT:g} x passage {shares.passage:.4f}"
            f" = {shares.total:.4f}, relative to the best"
        )
        lines.append(
            f"section: BM25 ({text.own:.3g} + {text.pairs:.3g} for words side by side) x {1 + text.bonus:.2f} for title, headings and wording"
        )
    lines.append(explain_prominence(best))
    if place is None:
        lines.append("relevance: beyond the candidates that compete; by BM25 alone")
    else:
        before, own = place
        if own.share < 1:
            lines.append(
                f"crowd: passage {own.number} of the same entry; beyond {FREE} of them it competes with a score of {own.score:.4f}"
            )
        if before != rank:
            lines.append(
                f"variety: rank {rank} instead of {before}, since {'others say' if rank < before else 'hits above it say'} much the same"
            )
    if group.size > 1:
        lines.append(f"text: {group.size} neighbouring passages that match, shown as one")
    return tuple(lines)


def explain_prominence(scored: Scored) -> str:
    """Return what the prominence of a candidate is made of."""
    candidate = scored.candidate
    age = f"{scored.age_days:.0f} days old" if candidate.seen else "undated, so of age 0"
    return f"prominence: importance {candidate.importance:g}, {age}, reinforced {candidate.reinforcement_count} times, {candidate.status}"
