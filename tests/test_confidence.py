"""How far a rule is trusted, in worked numbers."""

from __future__ import annotations

import math
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_kb.learning.playbook import (
    MATURITIES,
    RULE_OUTCOMES,
    Evidence,
    add_outcome,
    find_flag,
    mature,
    needs_inversion,
    read_evidence,
)
from memory_kb.memory import Memory
from memory_kb.model import Location

TODAY = date(2026, 11, 21)


def ago(days: int) -> date:
    return TODAY - timedelta(days=days)


def rule(**fields: object) -> Memory:
    made = fields.get("created_at")
    return Memory(
        "r", "a.md", "", Location(), "T", "Text.", kind="rule", created_at=str(made) if made else None, metadata=fields
    )


evidences = st.builds(
    Evidence,
    st.floats(0, 1),
    st.sampled_from(MATURITIES),
    st.integers(0, 50),
    st.integers(0, 50),
    st.none() | st.dates(date(2020, 1, 1), date(2030, 1, 1)),
)


@pytest.mark.parametrize(
    ("confidence", "days", "left"),
    [
        (0.8, 90, 0.4),
        (0.8, 0, 0.8),
        (0.8, 180, 0.2),
        (0.75, 0, 0.75),
        (1.0, 3650, round(0.5 ** (3650 / 90), 6)),
        (0.8, -30, 0.8),
    ],
)
def test_confidence_halves_every_90_days(confidence: float, days: int, left: float) -> None:
    assert Evidence(confidence, applied=ago(days)).decayed(TODAY) == left


def test_a_rule_without_a_date_has_not_faded() -> None:
    assert Evidence(0.8).decayed(TODAY) == 0.8


@pytest.mark.parametrize(
    ("confidence", "days", "outcome", "after"),
    [
        (0.75, 0, "success", 0.80),
        (0.75, 0, "failure", 0.55),
        (0.10, 0, "failure", 0.0),
        (0.98, 0, "success", 1.0),
        (0.8, 90, "success", 0.45),
        (0.8, 90, "failure", 0.2),
        (0.8, 90, "mixed", 0.4),
    ],
)
def test_feedback_settles_and_then_adds(confidence: float, days: int, outcome: str, after: float) -> None:
    settled = add_outcome(Evidence(confidence, "established", 4, 2, ago(days)), outcome, TODAY)
    assert settled == Evidence(after, "established", 4 + (outcome == "success"), 2 + (outcome == "failure"), TODAY)


def test_sums_reach_the_bound_they_should() -> None:
    """0.5 + 6 * 0.05 is 0.8 and not a hair more or less."""
    evidence = Evidence(0.5, applied=TODAY)
    for _ in range(6):
        evidence = add_outcome(evidence, "success", TODAY)
    assert evidence.confidence == 0.8
    assert mature(evidence._replace(maturity="established", success_count=10), TODAY) == "established"


@pytest.mark.parametrize(
    ("confidence", "maturity", "applications", "after"),
    [
        (0.5, "nascent", 2, "nascent"),
        (0.5, "nascent", 3, "established"),
        (0.499999, "nascent", 3, "nascent"),
        (1.0, "nascent", 50, "established"),
        (0.8, "established", 10, "established"),
        (0.81, "established", 10, "proven"),
        (0.81, "established", 9, "established"),
        (0.3, "established", 10, "established"),
        (0.299, "established", 10, "nascent"),
        (0.5, "proven", 10, "proven"),
        (0.49, "proven", 10, "established"),
        (0.0, "proven", 10, "established"),
    ],
)
def test_maturity_moves_one_level_with_a_band_between(
    confidence: float, maturity: str, applications: int, after: str
) -> None:
    assert mature(Evidence(confidence, maturity, applications), TODAY) == after
    assert mature(Evidence(confidence, maturity, 0, applications), TODAY) == after


def test_a_proven_rule_falls_when_it_was_not_used_for_long() -> None:
    assert 90 * math.log2(1.84) == pytest.approx(79.2, abs=0.05)
    assert mature(Evidence(0.92, "proven", 12, applied=ago(79)), TODAY) == "proven"
    assert mature(Evidence(0.92, "proven", 12, applied=ago(80)), TODAY) == "established"


def test_a_pinned_rule_rises_and_does_not_fall() -> None:
    assert mature(Evidence(0.1, "proven", 12), TODAY, is_pinned=True) == "proven"
    assert mature(Evidence(0.1, "established", 12), TODAY, is_pinned=True) == "established"
    assert mature(Evidence(0.9, "established", 12), TODAY, is_pinned=True) == "proven"


@pytest.mark.parametrize(
    ("confidence", "failures", "successes", "flag"),
    [
        (0.2, 9, 0, None),
        (0.199, 0, 9, "demotion_candidate"),
        (0.1, 9, 0, "demotion_candidate"),
        (0.099, 2, 1, "removal_candidate"),
        (0.099, 1, 1, "demotion_candidate"),
        (0.0, 0, 0, "demotion_candidate"),
    ],
)
def test_flags(confidence: float, failures: int, successes: int, flag: str | None) -> None:
    assert find_flag(Evidence(confidence, failure_count=failures, success_count=successes), TODAY) == flag


@pytest.mark.parametrize(
    ("failures", "successes", "due"),
    [(3, 1, True), (3, 2, False), (4, 2, False), (5, 2, True), (2, 0, False), (3, 0, True)],
)
def test_inversion(failures: int, successes: int, due: bool) -> None:
    assert needs_inversion(Evidence(failure_count=failures, success_count=successes)) is due


@pytest.mark.parametrize(
    ("fields", "evidence"),
    [
        ({}, Evidence()),
        ({"confidence": "high", "success_count": -3, "failure_count": "many", "maturity": "Ripe"}, Evidence()),
        (
            {"confidence": "0.8", "success_count": "3", "failure_count": 2.0, "maturity": "Proven"},
            Evidence(0.8, "proven", 3, 2),
        ),
        ({"confidence": 7, "success_count": True}, Evidence(1.0)),
        ({"confidence": None, "maturity": ["proven"], "last_applied": "soon"}, Evidence()),
        ({"confidence": ".nan", "success_count": 10**12}, Evidence()),
        ({"created_at": "2026-01-02"}, Evidence(applied=date(2026, 1, 2))),
        ({"created_at": "2026-01-02", "last_applied": "2026-02-03T10:00:00Z"}, Evidence(applied=date(2026, 2, 3))),
    ],
)
def test_odd_fields_are_read_as_defaults(fields: dict[str, object], evidence: Evidence) -> None:
    assert read_evidence(rule(**fields)) == evidence


@given(evidences, st.sampled_from(RULE_OUTCOMES))
def test_confidence_stays_a_share(evidence: Evidence, outcome: str) -> None:
    settled = add_outcome(evidence, outcome, TODAY)
    assert 0.0 <= settled.confidence <= 1.0
    assert settled.confidence == round(settled.confidence, 6)
    assert (
        add_outcome(evidence, "failure", TODAY).confidence
        <= add_outcome(evidence, "mixed", TODAY).confidence
        <= add_outcome(evidence, "success", TODAY).confidence
    )


@given(evidences)
def test_settling_twice_is_settling_once(evidence: Evidence) -> None:
    once = add_outcome(evidence, "mixed", TODAY)
    assert add_outcome(once, "mixed", TODAY) == once


@given(evidences, st.booleans())
def test_a_rule_never_jumps_a_level(evidence: Evidence, pinned: bool) -> None:
    after = mature(evidence, TODAY, is_pinned=pinned)
    assert abs(MATURITIES.index(after) - MATURITIES.index(evidence.maturity)) <= 1
