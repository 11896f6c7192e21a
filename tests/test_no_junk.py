"""What sounds like a rule and is none does not become one, nor does an error that teaches nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from episodic import bash, user, write_session

from memory_kb import KnowledgeBase
from memory_kb.learning.episodic.answers import is_telling
from memory_kb.learning.episodic.sayings import read_person
from memory_kb.learning.intake import Offer, settle
from memory_kb.learning.observation.findings import find_learnings
from memory_kb.learning.speech.capture import read_message
from memory_kb.model import Location
from memory_kb.notes.events import Event


@pytest.mark.parametrize(
    "message",
    [
        "Always a pleasure to work with you. Never change!",
        "Stay as you are, never change.",
        "Great work as always. Never stop!",
        "What does `ON CONFLICT DO NOTHING` do when there is no unique index? I always use MERGE in Oracle.",
        "I always use window functions in Postgres. Is there an equivalent here?",
        "I never commit from VS Code. Does it sign the commits too?",
    ],
)
def test_thanks_and_asides_are_no_preferences(message: str) -> None:
    assert read_message(message).capture is None


@pytest.mark.parametrize(
    "message",
    ["We merge by hand. Always squash!", "I always use UTC in the database.", "Never rebase, please. Thanks!"],
)
def test_short_rules_and_habits_are_kept(message: str) -> None:
    assert read_message(message).capture


@pytest.mark.parametrize(
    ("message", "kept"),
    [
        (
            "Good. We must never ship a component without a story in Storybook, add one.",
            "We must never ship a component without a story in Storybook",
        ),
        ("Every endpoint must have a rate limit, please put them in.", "Every endpoint must have a rate limit"),
        ("Never commit the .env file, remove it and push again.", "Never commit the .env file"),
        ("Always use tabs, never spaces, in Makefiles.", "Always use tabs, never spaces, in Makefiles."),
    ],
)
def test_what_is_to_be_done_now_is_no_part_of_the_rule(message: str, kept: str) -> None:
    found = read_message(message).capture
    assert found
    assert found.text == kept


@pytest.mark.parametrize(
    "message",
    [
        "Go on, never mind the failing snapshot",
        "Just thinking aloud, don't do anything.",
        "My colleague Tom says one must never mock the database.",
        "Tom thinks we must not use mocks at all.",
        "Some people say you should never use an ORM.",
        "My old employer required that you must page someone for every 5xx.",
        "At my last company we had to sign every commit by hand.",
        "I read that you should not use floats there.",
        "You don't have to do anything about it now.",
    ],
)
def test_what_nobody_asks_for_is_no_constraint(message: str) -> None:
    assert read_person(message).constraints == ()


@pytest.mark.parametrize(
    "message",
    [
        "The customer says the export must not take longer.",
        "Change it without any downtime, please.",
        "It must not be public.",
    ],
)
def test_what_the_work_has_to_keep_to_is_a_constraint(message: str) -> None:
    assert read_person(message).constraints == (message,)


@pytest.mark.parametrize(
    "message",
    ["You must be tired by now :)", "Always a pleasure to work with you.", "Never a dull moment with this build."],
)
def test_small_talk_is_no_lesson(message: str) -> None:
    said = read_person(message)
    assert (said.lessons, said.constraints) == ((), ())


def found(*said: tuple[str, str]) -> list[Offer]:
    events = [
        Event(session="s", seq=1, role="user", content="Make the uploader resumable."),
        Event(session="s", seq=2, type="tool_call", tool="Read", call_id="a", args={"file_path": "up.go"}),
        Event(session="s", seq=3, type="tool_result", call_id="a", ok=True, content="package up"),
        *(Event(session="s", seq=4 + number, role=role, content=text) for number, (role, text) in enumerate(said)),
    ]
    return list(settle(find_learnings(events, Location())))


def test_only_what_corrects_something_is_a_correction() -> None:
    (told,) = found(("user", "We never vendor dependencies in this repo; go.sum is enough."))
    (stopped,) = found(("user", "No, stop. We never vendor dependencies in this repo; go.sum is enough."))
    assert [one.draft.kind for one in (told, stopped)] == ["preference", "preference"]
    assert "**Category:** Corrections" not in told.draft.text


@pytest.mark.parametrize("lead", ["Decision: ", "The decision is: ", "Decided: "])
def test_a_decision_says_once_that_it_is_one(lead: str) -> None:
    said = f"{lead}hand-written CSV instead of papaparse, because the library adds 40 kB to the bundle."
    texts = [
        (offer.draft.title, offer.draft.text.splitlines()[0])
        for offer in found(("assistant", said), ("user", "Go on."))
    ]
    bare = "Hand-written CSV instead of papaparse, because the library adds 40 kB to the bundle"
    assert all(one == (bare[:80] if len(bare) <= 80 else one[0], f"**Decision:** {bare}.") for one in texts)
    assert len(texts) == 1 or lead == "Decided: "


@pytest.mark.parametrize(
    ("error", "is_worth"),
    [(("permission denied", "Permission denied"), False), (("permission denied", "no write access to /var"), True)],
)
def test_an_error_that_only_repeats_its_name_tells_nothing(error: Any, is_worth: bool) -> None:
    assert is_telling(*error) == is_worth


def test_a_program_that_was_not_installed_yet_is_no_pitfall(
    folder: Path, open_kb: Callable[[Path], KnowledgeBase]
) -> None:
    kb = open_kb(folder)
    missing, ready = bash("npm start", "sh: 1: vite: not found", ok=False), bash("npm start", "ready")
    write_session(
        kb,
        "one",
        user("Start the dashboard and look at it."),
        missing,
        bash("npm install", "added 812 packages"),
        ready,
        user("thanks"),
    )
    kb.reflect("one")
    kb.consolidate()
    assert [memory for memory in kb._memories() if memory.kind == "pitfall"] == []


@pytest.mark.parametrize("helps", [True, False])
def test_an_error_that_nothing_helped_against_is_no_pitfall(
    helps: bool, folder: Path, open_kb: Callable[[Path], KnowledgeBase]
) -> None:
    kb = open_kb(folder)
    for session in ("one", "two"):
        steps = [bash("npm start", "sh: 1: vite: not found", ok=False)]
        steps += [bash("npm install", "added 812 packages"), bash("npm start", "ready")] if helps else []
        write_session(kb, session, user("Start the dashboard and look at it."), *steps, user("thanks"))
        kb.reflect(session)
    kb.consolidate()
    assert any(memory.kind == "pitfall" for memory in kb._memories()) == helps
