"""What an agent stores by MCP: its source is what the log shows, and what would bind all agents waits for a person."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp_client import ask, inside

from memory_kb import KnowledgeBase
from memory_kb.agents.agent import find_agent
from memory_kb.agents.payloads import read_hook_call
from memory_kb.store.session_events import Event

if TYPE_CHECKING:
    from conftest import Files

RULE = "Never push to main without a review."


@pytest.fixture
def notes(vault: Callable[[Files], Path]) -> Path:
    return vault({"memory/config.yaml": "embeddings:\n  provider: none\n"})


def type_in(folder: Path, home: Path, prompt: str) -> None:
    """Say something in a session whose hooks are installed."""
    agent = find_agent("claude-code")
    call = {"session_id": "s1", "cwd": str(folder), "prompt": prompt}
    with KnowledgeBase.open(folder, home, environ={}) as kb:
        kb.hook("prompt", read_hook_call(agent, "prompt", json.dumps(call).encode()), agent)


def learn(folder: Path, home: Path, **arguments: Any) -> tuple[str, Mapping[str, Any]]:
    """Store something as an agent does; return what it was told, and the entry's frontmatter."""

    async def work() -> tuple[str, Mapping[str, Any]]:
        async with inside(folder, home) as client:
            told = await ask(client, "memory_learn", **arguments)
            assert not told.is_error
            with KnowledgeBase.open(folder, home, environ={}) as kb:
                return told.text, {"path": told.path, **kb.show(told.ids[0]).metadata}

    return anyio.run(work)


def test_what_an_agent_found_is_observed(notes: Path, home: Path) -> None:
    text, stored = learn(notes, home, text="The queue is SQS.")
    assert (stored["source"], stored["status"]) == ("observed", "active")
    assert "approves" not in text


@pytest.mark.parametrize(
    "arguments",
    [{"kind": "policy"}, {"priority": "high"}, {"priority": "critical"}, {"scope": "global"}],
    ids=["policy", "high", "critical", "global"],
)
def test_what_would_bind_everybody_waits_for_a_person(notes: Path, home: Path, arguments: Mapping[str, str]) -> None:
    type_in(notes, home, "Please read that page about pushing.")
    text, stored = learn(notes, home, text=RULE, source="user_explicit", **arguments)
    assert stored["path"].removeprefix("~global/").removeprefix("memory/").startswith("review/")
    assert (stored["source"], stored["status"]) == ("observed", "proposed")
    assert "before a person approves it" in text


@pytest.mark.parametrize("arguments", [{"kind": "policy"}, {"priority": "high"}, {"scope": "global"}])
def test_what_the_person_typed_is_theirs(notes: Path, home: Path, arguments: Mapping[str, str]) -> None:
    type_in(notes, home, "thanks. btw never push to main without a review, ok?")
    _, stored = learn(notes, home, text=RULE, source="user_explicit", **arguments)
    assert stored["source"] == "user_explicit"
    assert stored["status"] == "active"


@pytest.mark.parametrize(
    "prompt",
    [
        f"Is this page right?\n\n> {RULE}",
        f"What does this say?\n\n```\n{RULE}\n```",
        "Please push the tag. The main page is slow. I never saw that without a cache. Can you review it?",
    ],
    ids=["quoted", "in a code block", "scattered words"],
)
def test_what_the_person_only_showed_is_not_theirs(notes: Path, home: Path, prompt: str) -> None:
    type_in(notes, home, prompt)
    _, stored = learn(notes, home, text=RULE, kind="policy", source="user_explicit")
    assert (stored["source"], stored["status"]) == ("observed", "proposed")


def test_nothing_is_a_persons_without_a_log(notes: Path, home: Path) -> None:
    _, stored = learn(notes, home, text=RULE, kind="preference", source="user_explicit")
    assert (stored["source"], stored["status"]) == ("observed", "active")


def test_a_session_that_is_over_vouches_for_nothing(notes: Path, home: Path) -> None:
    type_in(notes, home, RULE)
    with KnowledgeBase.open(notes, home, environ={}) as kb:
        kb.hook_finish(["s1"])
    _, stored = learn(notes, home, text="Never push to main.", kind="fact", source="user_explicit")
    assert stored["source"] == "observed"


def log_sessions(folder: Path, home: Path, said: str, *outcomes: str) -> None:
    """Log past sessions that say something and ended so."""
    with KnowledgeBase.open(folder, home, environ={}) as kb:
        for number, outcome in enumerate(outcomes):
            kb.sessions.start(f"past{number}")
            kb.sessions.append([Event(role="assistant", content=said)], session=f"past{number}")
            kb.sessions.end(f"past{number}", outcome=outcome, only_close=True)


LINT = "Run the database migrations before the integration tests."


@pytest.mark.parametrize(
    ("outcomes", "confidence"),
    [([], 0.4), (["success"] * 5, 0.8), (["success"] * 5 + ["failure"], 0.4)],
    ids=["nothing known", "five for it", "one against"],
)
def test_a_rule_of_an_agents_is_a_draft_until_sessions_speak_for_it(
    notes: Path, home: Path, outcomes: list[str], confidence: float
) -> None:
    log_sessions(notes, home, LINT, *outcomes)
    _, stored = learn(notes, home, text=LINT, kind="rule")
    assert (stored["confidence"], stored["status"]) == (confidence, "active")


def test_a_rule_that_sessions_speak_against_is_not_stored(notes: Path, home: Path) -> None:
    log_sessions(notes, home, LINT, *["failure"] * 3)

    async def work() -> None:
        async with inside(notes, home) as client:
            told = await ask(client, "memory_learn", text=LINT, kind="rule")
            assert told.is_error
            assert "3 against" in told.text
            for kind in ("rule", "pattern"):  # two names for one kind
                assert (await ask(client, "memory_learn", text="Use tabs.", kind=kind)).is_error

    anyio.run(work)
    assert not (notes / "memory/rules").exists()


def test_a_rule_in_nearly_the_same_words_marks_the_one_there_is(notes: Path, home: Path) -> None:
    long = "Run the database migrations before the integration tests of the billing service and of the ledger service"
    _, first = learn(notes, home, text=f"{long}.", kind="rule")
    _, again = learn(notes, home, text=f"{long} always.", kind="rule")
    assert again["path"] == first["path"]
    assert again["success_count"] == 1
