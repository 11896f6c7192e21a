"""Maximal marginal relevance: the best hit stays first, repetitions move back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_kb.search.groups import mmr_order
from memory_kb.terms import jaccard, word_tokens

TOKENS = st.frozensets(st.sampled_from("abcdefgh"), max_size=6)
POOL = st.lists(st.tuples(st.floats(0, 100), TOKENS), max_size=25)
LAMBDA = st.floats(0, 1)


def order_of(pool: list[tuple[float, frozenset[str]]], mmr_lambda: float) -> list[int]:
    return mmr_order([score for score, _ in pool], lambda place: pool[place][1], mmr_lambda, len(pool))


@given(POOL, LAMBDA, st.integers(0, 30))
def test_a_limit_only_cuts_the_order(pool: list[tuple[float, frozenset[str]]], mmr_lambda: float, limit: int) -> None:
    assert (
        mmr_order([score for score, _ in pool], lambda place: pool[place][1], mmr_lambda, limit)
        == order_of(pool, mmr_lambda)[:limit]
    )


@given(POOL, LAMBDA)
def test_nothing_is_lost_and_the_best_is_first(pool: list[tuple[float, frozenset[str]]], mmr_lambda: float) -> None:
    order = order_of(pool, mmr_lambda)
    assert sorted(order) == list(range(len(pool)))
    if pool:
        assert pool[order[0]][0] == max(score for score, _ in pool)


@given(POOL)
def test_lambda_1_is_the_order_of_scores(pool: list[tuple[float, frozenset[str]]]) -> None:
    assert [pool[place][0] for place in order_of(pool, 1.0)] == sorted((score for score, _ in pool), reverse=True)


@given(st.lists(st.floats(0, 100), max_size=20), LAMBDA.filter(lambda weight: weight > 0.01))
def test_texts_without_words_are_no_twins(scores: list[float], mmr_lambda: float) -> None:
    order = mmr_order(scores, lambda _: frozenset(), mmr_lambda, len(scores))
    best = max(scores, default=0)
    shown = [round(scores[place] / best, 9) if best else 0 for place in order]
    assert shown == sorted(shown, reverse=True)


@given(POOL, LAMBDA)
def test_each_place_goes_to_the_most_relevant_and_new(
    pool: list[tuple[float, frozenset[str]]], mmr_lambda: float
) -> None:
    order = order_of(pool, mmr_lambda)
    scores = [score for score, _ in pool]
    best = max(scores, default=0)

    def worth(place: int, shown: list[int]) -> float:
        relevance = scores[place] / best if best else 1.0
        return mmr_lambda * relevance - (1 - mmr_lambda) * max(
            jaccard(pool[place][1], pool[other][1]) for other in shown
        )

    for rank in range(1, len(order)):
        values = [worth(place, order[:rank]) for place in order[rank:]]
        assert values[0] == pytest.approx(max(values))


@pytest.mark.parametrize(
    ("scores", "texts", "mmr_lambda", "expected"),
    [
        ([1.0, 0.9, 0.8, 0.0], ["a b c", "a b c", "x y z", "q"], 0.5, [0, 2, 3, 1]),
        ([1.0, 0.9, 0.8, 0.0], ["a b c", "a b c", "x y z", "q"], 1.0, [0, 1, 2, 3]),
        ([0.2, 0.9], ["same", "same"], 0.7, [1, 0]),
        ([0.5, 0.5, 0.5], ["one", "one", "two"], 0.7, [0, 2, 1]),
        ([1.0, 0.5], ["", ""], 0.7, [0, 1]),
        ([1.0, 0.9, 0.0], ["日本語 の メモ", "日本語 の メモ", "別 の 話"], 0.5, [0, 1, 2]),
        ([], [], 0.7, []),
        ([3.0], ["alone"], 0.0, [0]),
    ],
    ids=[
        "twin moves back",
        "no diversity",
        "best first whatever its place",
        "ties",
        "empty texts",
        "other scripts",
        "empty pool",
        "one",
    ],
)
def test_orders_by_example(scores: list[float], texts: list[str], mmr_lambda: float, expected: list[int]) -> None:
    assert mmr_order(scores, lambda place: word_tokens(texts[place]), mmr_lambda, len(texts)) == expected
