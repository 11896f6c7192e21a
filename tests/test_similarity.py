"""Pairs that are exact, found without comparing everything, and clusters in a fixed order."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_kb import similarity
from memory_kb.similarity import (
    Pair,
    cosine_pairs,
    linked_clusters,
    near_pairs,
    seeded_clusters,
    stemmed_set,
    word_set,
)
from memory_kb.terms import jaccard

sets_of_words = st.lists(st.frozensets(st.sampled_from("abcdefghijkl"), max_size=9), max_size=30)
thresholds = st.sampled_from([0.1, 0.25, 0.3, 1 / 3, 0.4, 0.5, 2 / 3, 0.75, 0.8, 0.9, 1.0])


def brute_force(sets: list[frozenset[str]], threshold: float) -> list[Pair]:
    found = (
        Pair(one, other, jaccard(sets[one], sets[other])) for one, other in itertools.combinations(range(len(sets)), 2)
    )
    return [pair for pair in found if pair.similarity >= threshold]


@given(sets=sets_of_words, threshold=thresholds)
def test_pairs_are_those_of_comparing_everything(sets: list[frozenset[str]], threshold: float) -> None:
    assert sorted(near_pairs(sets, threshold)) == brute_force(sets, threshold)


@given(sets_of_words, thresholds, st.sets(st.integers(0, 12)))
def test_pairs_of_some_places_are_those_of_all_that_have_one_of_them(
    sets: list[frozenset[str]], threshold: float, places: set[int]
) -> None:
    chosen = {place for place in places if place < len(sets)}
    expected = [pair for pair in brute_force(sets, threshold) if chosen & {pair.one, pair.other}]
    assert sorted(near_pairs(sets, threshold, places=chosen)) == expected


@pytest.mark.parametrize("threshold", [0.8, 0.3])
def test_pairs_among_texts_with_natural_frequencies(threshold: float) -> None:
    rng = random.Random(3)
    words = [f"w{number}" for number in range(400)]
    weights = [1 / (rank + 3) for rank in range(400)]
    sets = [frozenset(rng.choices(words, weights, k=rng.randint(1, 60))) for _ in range(250)]
    sets += [one ^ {rng.choice(words)} for one in sets[:80]]
    expected = brute_force(sets, threshold)
    assert len(expected) > 60
    assert sorted(near_pairs(sets, threshold)) == expected


def test_four_fifths_are_at_the_threshold() -> None:
    sets = [frozenset("abcd"), frozenset("abcde")]
    assert list(near_pairs(sets, 0.8)) == [Pair(0, 1, 0.8)]


def test_empty_sets_are_like_nothing() -> None:
    assert list(near_pairs([frozenset(), frozenset(), frozenset("a")], 0.1)) == []
    assert list(near_pairs([], 0.5)) == []


def test_cosine_pairs_are_those_of_one_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similarity, "_ROWS", 7)
    monkeypatch.setattr(similarity, "_COLUMNS", 11)
    rows = np.random.default_rng(5).standard_normal((60, 4), dtype=np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows[40] = rows[3]
    expected = [tuple(pair) for pair in np.argwhere(np.triu(rows @ rows.T, 1) >= 0.9).tolist()]
    found = list(cosine_pairs(rows, 0.9))
    assert sorted((pair.one, pair.other) for pair in found) == expected
    assert (3, 40) in expected
    assert all(0.9 <= pair.similarity <= 1.0 for pair in found)


def test_what_is_like_a_member_but_not_like_the_seed_stays_out() -> None:
    chain = [Pair(0, 1, 0.9), Pair(1, 2, 0.9), Pair(2, 3, 0.9), Pair(5, 6, 0.9)]
    assert seeded_clusters(chain) == [(0, 1), (2, 3), (5, 6)]
    assert linked_clusters(chain) == [(0, 1, 2, 3), (5, 6)]


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=30), st.randoms())
def test_clusters_do_not_depend_on_the_order_of_pairs(edges: list[tuple[int, int]], rng: random.Random) -> None:
    pairs = [Pair(min(edge), max(edge), 0.9) for edge in edges if edge[0] != edge[1]]
    shuffled = rng.sample(pairs, len(pairs))
    for cluster in (seeded_clusters, linked_clusters):
        assert cluster(pairs) == cluster(shuffled)
        members = [place for group in cluster(pairs) for place in group]
        assert len(members) == len(set(members))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Set retry_count=3, now!", {"set", "retry", "count", "3", "now"}),
        ("Привет, мир", {"привет", "мир"}),
        ("日本語", {"日本", "本語", "語"}),
        ("--- !!!", set()),
    ],
)
def test_words_of_any_script(text: str, words: set[str]) -> None:
    assert word_set(text) == words


def test_paraphrases_share_stems() -> None:
    assert stemmed_set("Caching the responses") == stemmed_set("the response caches")
