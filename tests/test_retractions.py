"""What a person takes back in the same session is not kept, whichever way it was heard."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import NOW

from memory_kb import KnowledgeBase
from memory_kb.learning.episodic.trace import trace_session
from memory_kb.learning.intake import settle
from memory_kb.learning.observation.findings import find_learnings
from memory_kb.learning.speech.capture import hear, offer_captures
from memory_kb.model import Location
from memory_kb.notes.events import Event

Open = Callable[..., KnowledgeBase]

#: What was said, what the agent answered, what takes it back.
TAKEN_BACK = [
    ("Always use jest for module tests.", "Ok.", "No wait, use vitest."),
    ("I prefer papaparse for CSV files.", "Fine.", "Actually forget papaparse, write it by hand."),
    ("Never commit the lockfile here.", "Removed.", "Oh right, then do commit the lockfile."),
    ("Always squash before merging.", "Ok.", "Sorry, I was wrong, don't squash."),
    ("From now on log in JSON format.", "Done.", "Scratch that, plain text is fine."),
    ("Always name branches feat/x.", "Ok.", "Forget that, any branch name will do."),
    ("Actually the port is 8080, not 8443.", "The config says 8443.", "Sorry, you are right, 8443 was correct."),
    ("Always use black for formatting.", "Ok.", "Hold on, use ruff format instead."),
    (
        "I prefer lodash for deep copies.",
        "I'll use lodash.",
        "On second thought, drop lodash, structuredClone is enough.",
    ),
    ("Never push to develop.", "Understood.", "Ah sorry, pushing to develop is fine."),
    ("Always rebase before merging.", "Will do.", "My mistake, we don't rebase."),
    ("From now on write dates as DD.MM.YYYY.", "Ok.", "Never mind that, ISO dates are fine."),
    ("Always prefix private functions with an underscore.", "Noted.", "Ignore what I said about the underscore."),
    ("No, the table is called users_v2.", "I only see users in the schema.", "Oh, my bad, users is right."),
    ("We never use feature flags here.", "There are three in config.", "Hm, true, I was wrong about the flags."),
    ("Always add a changelog entry.", "Done.", "I take that back, changelog entries are not needed."),
    ("From now on write the changelog in German.", "Ok.", "Disregard that last instruction."),
    ("Always use moment for dates.", "It is deprecated.", "Fair enough, use luxon."),
    ("We never deploy on Fridays.", "Noted.", "Scratch that, I was thinking of the old team."),
]

STANDS = [
    ("Always use pnpm in this repo.", "Ok.", "No wait, first show me the diff."),
    ("Always use pnpm in this repo.", "Ok.", "Actually, can you also fix the typo in the readme?"),
    ("Never use floats for money.", "Ok.", "Sorry, I meant the function in billing.py, not the one in report.py."),
    ("Never use floats for money.", "I used Decimal.", "Forget the report for now, fix the invoice first."),
    ("Always squash before merging.", "Squashed.", "You are right, that was the bug."),
    ("Never commit the .env file.", "Ok.", "Oh right, and add it to the gitignore."),
    ("I prefer short functions everywhere.", "Ok.", "Scratch the last test, it is redundant."),
    ("Always use UTC in the database.", "Shall I use local time for the display?", "No, use UTC there too."),
    ("Never mock the database.", "Ok, testcontainers then.", "Never mind the slow start, that is fine."),
    ("Always name branches feat/x.", "I named it feature-x.", "No, wrong. Use feat/x as I said."),
    ("Never log personal data.", "I removed the name.", "Oops, I was wrong about the filename, it is audit.log."),
    ("Always use ruff for linting.", "Ok.", "Don't lint the migrations though."),
    ("Never push to the main branch.", "Done, the branch is pushed.", "Wait, you pushed to the main branch!"),
    ("Never touch the legacy folder.", "Ok.", "Actually, for this fix you can touch the legacy folder."),
    ("Always run the linter before committing.", "Ran it.", "Oh wait, don't commit yet."),
    ("Always use tabs in Makefiles.", "Ok.", "Hold on, use the Makefile from the other repo instead."),
    (
        "Always use vitest for module tests.",
        "Ok. The linter warns a lot, shall I fix that?",
        "Never mind that, go on with the tests.",
    ),
    ("I prefer pnpm over npm.", "Noted.", "My bad, I forgot to push the lockfile."),
    ("Never use print for logging.", "Replaced.", "Actually it's fine to print in scripts."),
]


def talk(*said: str) -> list[Event]:
    """Return what a person and an agent say in turn."""
    return [
        Event(
            ts=f"2026-03-01T10:0{number}:00Z",
            session="s",
            seq=number + 1,
            role="user" if number % 2 == 0 else "assistant",
            content=text,
        )
        for number, text in enumerate(said)
    ]


def kept_by_capture(events: list[Event]) -> list[str]:
    return [offer.draft.text for offer in offer_captures(hear(events), NOW) if offer.doubt is None]


def kept_by_extraction(events: list[Event]) -> list[str]:
    return [offer.draft.text for offer in settle(find_learnings(events, Location())) if offer.doubt is None]


@pytest.mark.parametrize("said", TAKEN_BACK, ids=[one[2] for one in TAKEN_BACK])
def test_what_is_taken_back_is_not_kept(said: tuple[str, str, str]) -> None:
    assert said[0] in kept_by_capture(talk(*said[:2]))
    assert said[0] not in kept_by_capture(talk(*said))
    assert said[0] not in kept_by_extraction(talk(*said))


@pytest.mark.parametrize("said", STANDS, ids=[one[2] for one in STANDS])
def test_what_only_sounds_like_it_takes_nothing_back(said: tuple[str, str, str]) -> None:
    assert said[0] in kept_by_capture(talk(*said))
    assert said[0] in kept_by_extraction(talk(*said))


def test_it_may_be_taken_back_much_later_by_what_denies_it() -> None:
    said = ("Always squash before merging.", "Ok.", "Now fix the login.", "Done.")
    assert kept_by_capture(talk(*said, "Scratch that, use a table.")) == [said[0]]
    assert kept_by_capture(talk(*said, "By the way, let's not squash after all.")) == []


def test_it_may_be_taken_back_at_once_and_said_again() -> None:
    rule = "Always use tabs in this repo."
    assert kept_by_capture(talk(f"{rule} Scratch that, spaces are fine.")) == []
    events = talk(rule, "Ok.", "Scratch that.", "Ok.", rule)
    assert kept_by_capture(events) == [rule]
    assert kept_by_extraction(events) == [rule]


def test_a_correction_of_the_agent_may_be_taken_back() -> None:
    args = {"file_path": "src/gen/api.py", "old_string": "", "new_string": "x"}
    edit = [
        Event(seq=8, session="s", type="tool_call", tool="Edit", call_id="e", args=args),
        Event(seq=9, session="s", type="tool_result", call_id="e", ok=True, content="done"),
    ]
    said = "No, src/gen is generated, don't edit it by hand."
    events = [*talk("Add the field.", "On it."), *edit, Event(session="s", seq=10, role="user", content=said)]
    assert len(kept_by_extraction(events)) == 1
    assert (
        kept_by_extraction(
            [*events, Event(session="s", seq=11, role="user", content="Sorry, I was wrong about src/gen.")]
        )
        == []
    )


def test_an_episode_tells_nothing_that_was_taken_back() -> None:
    said = (
        "Add the export.",
        "On it.",
        "In this repo we always squash before merging.",
        "Ok.",
        "Sorry, I was wrong, we don't squash.",
    )
    (before,), (after,) = (trace_session("s", talk(*some)) for some in (said[:4], said))
    assert said[2] in before.lessons
    assert said[2] not in (*after.lessons, *after.constraints)


def test_in_doubt_it_waits_for_a_persons_judgment(folder: Path, open_kb: Open) -> None:
    events = talk("Fix the login. Always use zod for validation.", "Fixed.", "Scratch that, fix the logout first.")
    kb = open_kb(folder)
    kb.capture(events)
    (memory,) = kb._memories()
    assert (memory.status, memory.path.split("/")[-2]) == ("proposed", "review")


@pytest.mark.parametrize("way", ["capture", "extract"])
def test_what_was_kept_before_it_was_taken_back_is_retired(way: str, folder: Path, open_kb: Open) -> None:
    events = talk("Always squash before merging.", "Ok.", "Sorry, I was wrong, don't squash.")
    kb = open_kb(folder)
    kb.capture(events[:2])
    (before,) = kb._memories()
    kb.session_append(events)
    report = kb.capture(session="s") if way == "capture" else kb.extract("s")
    assert "withdrawn" in str(report)
    (after,) = kb._memories()
    assert (before.status, after.status, after.id) == ("active", "retired", before.id)
    assert kb.capture(session="s").run.run is None


def test_what_others_said_as_well_or_somebody_edited_is_left_alone(folder: Path, open_kb: Open) -> None:
    rule = "Always squash before merging."
    events = talk(rule, "Ok.", "Sorry, I was wrong, don't squash.")
    kb = open_kb(folder)
    kb.capture(events[:1])
    kb.capture([Event(session="other", seq=1, role="user", content=rule)])
    kb.capture(events)
    (memory,) = kb._memories()
    assert (memory.status, memory.reinforcement_count) == ("active", 1)
