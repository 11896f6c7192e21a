"""The lens on vectors: a mild whitening that follows from the set of vectors alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_kb.ports import Question, VectorTable
from memory_kb.retrieval.lens import find_lens, make_lens, sample_rows
from memory_kb.retrieval.nearness import similarities

Array = np.ndarray[Any, Any]


def draw(count: int, dimension: int, seed: int = 7, common: float = 0.0) -> Array:
    rows = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    rows[:, 0] += common
    unit: Array = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit.astype(np.float32)


def whole_metric(rows: np.ndarray) -> Array:
    """Return the metric as the formula has it, every direction told apart."""
    count = len(rows)
    values, vectors = np.linalg.eigh(rows.T.astype(float) @ rows / count)
    even = max(0.3, 100 / (count + 100))
    metric: Array = (vectors * ((1 - even) * np.maximum(values, 0) + even * values.mean()) ** -0.25) @ vectors.T
    return metric


@pytest.mark.parametrize(("count", "dimension"), [(200, 16), (40, 48), (500, 64), (1, 8), (3, 3)])
def test_it_is_the_metric_of_the_formula_where_few_directions_are_left(count: int, dimension: int) -> None:
    rows = draw(count, dimension, common=3.0)
    lens, metric = make_lens(rows, None), whole_metric(rows)
    vector = draw(1, dimension, seed=8)[0]
    assert rows @ lens.bend(vector) == pytest.approx(rows @ metric @ vector, rel=0.02, abs=0.02)
    assert lens.lengths == pytest.approx(np.sqrt(np.einsum("ij,jk,ik->i", rows, metric, rows)), rel=0.01)


def test_what_all_have_in_common_counts_less() -> None:
    rows = draw(300, 32, common=8.0)
    question = draw(1, 32, seed=9, common=8.0)[0]
    table = VectorTable(np.arange(300), rows)
    plain, seen = rows @ question, similarities(Question(question, table))
    assert seen.mean() < plain.mean()
    assert (seen.max() - seen.mean()) / seen.std() >= 0.8 * (plain.max() - plain.mean()) / plain.std()


@given(st.integers(1, 60), st.integers(2, 40), st.integers(0, 5))
@settings(max_examples=60, deadline=None)
def test_similarities_are_cosines(count: int, dimension: int, seed: int) -> None:
    rows = draw(count, dimension, seed)
    seen = similarities(Question(rows[0], VectorTable(np.arange(count), rows)))
    assert seen[0] == pytest.approx(1.0, abs=1e-3)
    assert float(np.abs(seen).max()) <= 1.001


def test_a_vault_of_few_notes_is_seen_nearly_as_it_is() -> None:
    rows = draw(5, 64, common=3.0)
    assert similarities(Question(rows[1], VectorTable(np.arange(5), rows))) == pytest.approx(rows @ rows[1], abs=0.08)


@pytest.mark.parametrize("count", [50, 2000])
def test_order_and_what_is_gone_make_no_difference(count: int) -> None:
    """An index brought up to date by edits sees the same as one made anew."""
    rows = draw(count, 24)
    order = np.random.default_rng(3).permutation(count)
    gone = draw(count // 2, 24, seed=11)
    mixed = np.concatenate([rows[order], gone])
    alive = np.arange(len(mixed)) < count
    fresh, edited = make_lens(rows, None), make_lens(mixed, alive)
    assert set(map(tuple, rows[sample_rows(rows, None)])) == set(map(tuple, mixed[sample_rows(mixed, alive)]))
    vector = draw(1, 24, seed=12)[0]
    assert mixed[:count] @ edited.bend(vector) == pytest.approx((rows @ fresh.bend(vector))[order], abs=1e-4)


def test_a_lens_is_made_once_for_a_table() -> None:
    table = VectorTable(np.arange(10), draw(10, 8))
    assert find_lens(table) is find_lens(table)
    assert find_lens(VectorTable(table.keys, table.rows)) is not find_lens(table)


def test_where_nothing_is_alive_all_directions_are_alike() -> None:
    rows = np.eye(4, dtype=np.float32)
    lens = make_lens(rows, np.zeros(4, bool))
    assert np.isfinite(lens.base)
    assert not len(lens.weights)
    assert np.isfinite(make_lens(rows[:0], None).base)
