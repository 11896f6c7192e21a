"""The formulas of the score, against their worked numbers and their laws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_kb.index.port import Candidate
from memory_kb.search.passages import Passage
from memory_kb.search.scoring import (
    RelevanceParts,
    ScoredPassage,
    ScoredSection,
    decay,
    normalise,
    prominence,
    score_passages,
    weigh,
)
from memory_kb.settings import Ranking

TODAY = date(2026, 11, 21)
SCORES = st.floats(0, 1e6, allow_subnormal=False)


def make_candidate(
    key: int,
    *,
    importance: float = 0.5,
    count: int = 0,
    seen: str | None = None,
    scope: str = "project",
    superseded: int = 0,
) -> Candidate:
    return Candidate(key, -1.0, importance, count, seen, "active", scope, superseded, "", "")


def score_wholes(
    candidates: Sequence[Candidate], sides: RelevanceParts, ranking: Ranking | None = None
) -> list[ScoredPassage]:
    """Score candidates that are one passage each."""
    return score([(one, Passage(one.key, 0, True, 0, 0, 0.0)) for one in candidates], sides, ranking or Ranking())


def score(
    passages: Sequence[tuple[Candidate, Passage]], sides: RelevanceParts, ranking: Ranking
) -> list[ScoredPassage]:
    sections = [(ScoredSection(one, weigh(one, ranking, TODAY), None, 1.0, 1.0), passage) for one, passage in passages]
    return score_passages(sections, sides, ranking)


@pytest.mark.parametrize(
    ("days", "floor", "expected"),
    [
        (0, 0.0, 1.0),
        (90, 0.0, 0.5),
        (180, 0.0, 0.25),
        (298.97, 0.0, 0.1),
        (298.97, 0.1, 0.1),
        (3_650, 0.1, 0.1),
        (-30, 0.0, 1.0),
    ],
    ids=["now", "half-life", "two half-lives", "where the floor is reached", "at the floor", "ten years", "the future"],
)
def test_decay(days: float, floor: float, expected: float) -> None:
    assert decay(days, floor=floor) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    ("importance", "days", "count", "status", "expected"),
    [
        (0.9, 3_650, 0, "active", 0.09),
        (0.2, 3_650, 0, "active", 0.02),
        (0.5, 90, 3, "active", 1.0),
        (0.9, 0, 5, "retired", 0.0),
        (0.5, 0, 0, "archived", 0.5),
        (0.5, 0, 0, "compacted", 0.5),
    ],
    ids=["old and important", "old and minor", "reinforced", "retired", "archived", "compacted"],
)
def test_prominence(importance: float, days: float, count: int, status: str, expected: float) -> None:
    assert prominence(importance, days, count, status, Ranking()) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("exponent", "expected"), [(1.0, 0.25), (0.5, 0.5), (0.0, 1.0)], ids=["as stated", "softened", "off"]
)
def test_the_exponent_softens_prominence(exponent: float, expected: float) -> None:
    one = make_candidate(1, importance=0.25)
    (scored,) = score_wholes([one], RelevanceParts(None), Ranking(prominence_exponent=exponent))
    assert [scored.section.weight.prominence, scored.section.weight.factor] == pytest.approx([0.25, expected])


@pytest.mark.parametrize("count", [0, 10, 100_000])
def test_however_prominent_what_fits_half_as_well_stays_below(count: int) -> None:
    popular = make_candidate(1, importance=1.0, count=count)
    forgotten = make_candidate(2, importance=0.01, seen="2001-01-01")
    first, second = score_wholes([popular, forgotten], RelevanceParts([0.45, 1.0]))
    assert (first.passage.key, second.passage.key) == (2, 1)
    assert second.section.weight.prominence == pytest.approx(1.0 + count)


@pytest.mark.parametrize(
    ("days", "count", "expected"),
    [(0, 0, 0.9), (142.6, 0, 0.3), (285.3, 0, 0.1), (375.3, 1, 0.1)],
    ids=["new", "not injected", "archived", "recalled once"],
)
def test_activation_of_a_fact(days: float, count: int, expected: float) -> None:
    ranking = Ranking(decay_floor=0.0)
    assert prominence(0.9, days, count, "active", ranking) == pytest.approx(expected, abs=2e-4)


@given(st.floats(0, 10_000), st.floats(0, 10_000), st.floats(1, 1_000), st.floats(0, 1))
def test_decay_never_rises_with_age_nor_leaves_its_bounds(
    days: float, more: float, half_life: float, floor: float
) -> None:
    assert floor <= decay(days + more, half_life, floor) <= decay(days, half_life, floor) <= 1.0


@given(
    st.floats(0, 1),
    st.floats(0, 1),
    st.floats(0, 5_000),
    st.floats(0, 5_000),
    st.integers(0, 1_000),
    st.integers(0, 1_000),
)
def test_prominence_grows_with_importance_and_reinforcement_and_falls_with_age(
    importance: float, extra: float, days: float, more: float, count: int, further: int
) -> None:
    ranking = Ranking()
    base = prominence(importance, days, count, "active", ranking)
    assert prominence(min(1.0, importance + extra), days, count, "active", ranking) >= base
    assert prominence(importance, days + more, count, "active", ranking) <= base
    assert prominence(importance, days, count + further, "active", ranking) >= base
    assert base >= importance * 0.1 * (1 - 1e-12)


@given(st.lists(SCORES, min_size=1, max_size=30))
def test_normalised_scores_keep_their_order_and_the_best_is_1(texts: list[float]) -> None:
    bm25 = normalise(texts)
    assert max(bm25) == (1.0 if any(texts) else 0.0)
    assert all(0.0 <= score <= 1.0 for score in bm25)
    assert normalise(sorted(texts)) == sorted(bm25)


@given(
    st.lists(st.floats(0.001, 1.0), min_size=1, max_size=30, unique=True),
    st.floats(0.05, 1.0),
    st.integers(0, 2_000),
    st.integers(0, 9),
    st.sampled_from(["task", "global"]),
)
def test_a_better_bm25_gives_a_higher_score_where_all_else_is_equal(
    bm25: list[float], importance: float, days: int, count: int, scope: str
) -> None:
    seen = (TODAY - timedelta(days=days)).isoformat()
    candidates = [
        make_candidate(key, importance=importance, count=count, seen=seen, scope=scope) for key in range(len(bm25))
    ]
    scored = score_wholes(candidates, RelevanceParts(bm25))
    assert [item.relevance for item in scored] == sorted(bm25, reverse=True)
    distinct = [
        pair for pair in pairwise(scored) if not math.isclose(pair[0].relevance, pair[1].relevance, rel_tol=1e-9)
    ]
    assert all(better.score > worse.score for better, worse in distinct)


def test_without_words_prominence_and_scope_alone_decide() -> None:
    candidates = [
        make_candidate(1, importance=0.3),
        make_candidate(2, importance=0.9),
        make_candidate(3, importance=0.9, scope="task"),
        make_candidate(4, superseded=1),
    ]
    scored = score_wholes(candidates, RelevanceParts(None))
    assert [item.passage.key for item in scored] == [3, 2, 1, 4]
    assert {item.bm25 for item in scored} == {None}


def test_a_further_passage_of_a_section_counts_less_and_of_a_short_note_half() -> None:
    for is_single, share in ((0, 0.9), (1, 0.5)):
        candidate = make_candidate(1)._replace(is_single=is_single)
        passages = [Passage(1, number, number == 1, 0, 0, 1.0) for number in (0, 1)]
        pairs = [(candidate, passage) for passage in passages]
        first, second = score(pairs, RelevanceParts([1.0, 1.0]), Ranking())
        assert second.score == pytest.approx(share * first.score)
