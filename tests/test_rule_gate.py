"""The gate that a rule passes which a machine found: what past sessions say for it and against it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import NOW, Files
from consolidating import REDIS, make, rules, told
from extracting import answer, entry_of, learning, log_session, variables

from memory_kb import KnowledgeBase
from memory_kb.learning.extraction import KeptLearning
from memory_kb.learning.trust import SessionCounts, find_same_rule, judge_rule, keywords
from memory_kb.memory import Memory
from memory_kb.model import Location
from memory_kb.store.session_events import Event

if TYPE_CHECKING:
    from fake_provider import FakeProvider

MakeVault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]
RULE = "Run the database migrations before the tests."


@pytest.mark.parametrize(
    ("successes", "failures", "decision"),
    [
        (5, 0, "accept"),
        (9, 0, "accept"),
        (4, 0, "draft"),
        (5, 1, "draft"),
        (0, 3, "reject"),
        (0, 2, "draft"),
        (1, 3, "draft"),
        (0, 0, "draft"),
    ],
)
def test_the_gate(successes: int, failures: int, decision: str) -> None:
    verdict = judge_rule(RULE, SessionCounts(successes, failures))
    assert verdict.decision == decision
    assert verdict.confidence == (0.4 if decision == "draft" else None)


@pytest.mark.parametrize(
    ("text", "decision"), [("x" * 14, "reject"), (" x " + "y" * 10 + "  z ", "reject"), ("x" * 15, "draft")]
)
def test_a_rule_that_is_too_short(text: str, decision: str) -> None:
    assert judge_rule(text, SessionCounts()).decision == decision


def test_a_rule_that_is_there_already_is_marked_helpful() -> None:
    rule = Memory("r1", "a.md", "", Location(), "T", RULE, kind="rule")
    verdict = judge_rule(RULE, SessionCounts(5, 0), rule)
    assert (verdict.decision, verdict.existing) == ("helpful", rule)


def test_the_nearest_rule_is_live_and_says_the_same() -> None:
    def rule(entry_id: str, text: str, status: str = "active") -> Memory:
        return Memory(entry_id, "a.md", "", Location(), "T", text, kind="rule", status=status)

    rules = [
        rule("far", "Wombats sleep."),
        rule("not", f"Never {RULE}"),
        rule("old", RULE, "retired"),
        rule("near", f"Always {RULE}"),
    ]
    near = find_same_rule(RULE, rules)
    assert near is not None
    assert near.id == "near"
    assert find_same_rule(RULE, rules[:-1]) is None


def test_sessions_speak_for_a_rule_or_against_it(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    for number in range(7):
        session = f"s{number}"
        said = "I ran the database migrations before the integration tests." if number < 6 else "Nothing of the kind."
        kb.sessions.start(session)
        kb.sessions.append([Event(role="assistant", content=said)], session=session)
        if number != 5:
            kb.sessions.end(session, outcome="success" if number < 4 else "failure", only_close=True)
    assert keywords(RULE) == ("migrations", "database", "tests")
    assert kb.rule_gate.session_evidence("Migrations of the database come before integration tests.") == SessionCounts(
        4, 1
    )
    assert kb.rule_gate.session_evidence(
        "Migrations of the database come before integration tests.", without=["s0"]
    ) == SessionCounts(3, 1)
    assert kb.rule_gate.session_evidence("Wombats wander widely westwards.") == SessionCounts(0, 0)
    assert kb.rule_gate.session_evidence("?!") == SessionCounts(0, 0)


def log_sessions(kb: KnowledgeBase, said: str, *outcomes: str) -> None:
    """Log past sessions that say something and ended so."""
    for number, outcome in enumerate(outcomes):
        session = f"past{number}"
        kb.sessions.start(session)
        kb.sessions.append([Event(role="assistant", content=said)], session=session)
        kb.sessions.end(session, outcome=outcome, only_close=True)


@pytest.mark.parametrize(
    ("episodes", "sessions", "is_kept"),
    [
        (["mixed"] * 3, [], True),
        (["mixed"] * 3, ["failure"] * 2, True),
        (["mixed"] * 3, ["failure"] * 3, False),
        (["failure"] * 3, [], False),
        (["failure"] * 3, ["success"], True),
        (["failure", "mixed", "mixed"], ["failure"] * 2, False),
    ],
)
def test_a_pattern_is_held_against_the_sessions_it_does_not_come_from(
    vault: MakeVault, open_kb: Open, episodes: list[str], sessions: list[str], is_kept: bool
) -> None:
    kb = make(vault, open_kb, *(told(number, REDIS, outcome=outcome) for number, outcome in enumerate(episodes)))
    log_sessions(kb, "As always, the integration tests need a redis.", *sessions)
    kb.episodes.consolidate_semantic()
    assert bool(rules(kb)) is is_kept


def test_the_sessions_of_its_own_episodes_count_once(vault: MakeVault, open_kb: Open) -> None:
    kb = make(
        vault, open_kb, *(told(number, REDIS, outcome="mixed", session_id=f"past{number}") for number in range(3))
    )
    log_sessions(kb, REDIS, *["failure"] * 3)
    kb.episodes.consolidate_semantic()
    assert len(rules(kb)) == 1


# A rule that a language model finds.


def open_with(vault: MakeVault, home: Path, fake: FakeProvider, **files: str) -> KnowledgeBase:
    """Open a vault with two learnings of a task, of which the model will make a rule."""
    sources = {
        path: text
        for number in (1, 2)
        for path, text in entry_of("team", number, "memory/jobs/api/tasks/login/learnings").items()
    }
    folder = vault(
        {"memory/config.yaml": ""} | sources | {f"memory/rules/{name}.md": text for name, text in files.items()}
    )
    return KnowledgeBase.open(folder, home, environ={"HOME": str(home.parent)} | variables(fake), clock=lambda: NOW)


def extract(kb: KnowledgeBase, fake: FakeProvider, session: str = "s1", **fields: object) -> KeptLearning:
    """Let the model find a rule in a session."""
    both = ((1, "Redis must run before the suite"), (2, "Redis must run before the suite"))
    log_session(kb, session)
    fake.answers += [answer(), answer(learning("team", *both, step=1, title="Start redis first", **fields))]
    (kept,) = kb.extract(session, scopes=["team"], again=True).scopes[0].kept
    return kept


@pytest.mark.parametrize(
    ("outcomes", "confidence"),
    [
        ([], 0.4),
        (["success"] * 4, 0.4),
        (["success"] * 5, 0.5),
        (["success"] * 5 + ["failure"], 0.4),
        (["failure"] * 2, 0.4),
    ],
)
def test_an_extracted_rule_is_a_draft_until_sessions_speak_for_it(
    vault: MakeVault, home: Path, fake: FakeProvider, outcomes: list[str], confidence: float
) -> None:
    with open_with(vault, home, fake) as kb:
        log_sessions(kb, "We start redis first.", *outcomes)
        kept = extract(kb, fake)
        assert kept.action == "created"
        found = kb.show(kept.id).metadata
        assert (found["confidence"], found["maturity"]) == (confidence, "nascent")


def test_what_sessions_speak_against_is_refused(vault: MakeVault, home: Path, fake: FakeProvider) -> None:
    with open_with(vault, home, fake) as kb:
        log_sessions(kb, "We start redis first.", *["failure"] * 3)
        kept = extract(kb, fake)
        assert (kept.action, kept.message) == ("refused", "0 sessions speak for it and 3 against")
        assert [memory.id for memory in kb.memories.all() if memory.word("extraction_scope")] == []


def test_a_rule_that_is_there_in_nearly_the_same_words_is_marked_helpful_once_a_session(
    vault: MakeVault, home: Path, fake: FakeProvider
) -> None:
    labels = ("Context", "Learning", "Action")
    lines = [
        f"**{label}:** The team of redis, docker compose and the suite, as it was learned. ({label})"
        for label in labels
    ]
    body = "\n".join(["Start redis first, always.", "", *lines])
    with open_with(
        vault, home, fake, known=f"---\nid: known\nkind: rule\nconfidence: 0.5\ncreated_at: 2026-11-21\n---\n{body}\n"
    ) as kb:
        for session, count in (("s1", 1), ("s1", 1), ("s2", 2)):
            kept = extract(kb, fake, session)
            assert kept.id == "known"
            found = kb.show("known").metadata
            assert (found["success_count"], found["confidence"], found["reinforcement_count"]) == (
                count,
                round(0.5 + 0.05 * count, 2),
                count,
            )
        assert found["sources"] == ["s1", "s2"]
