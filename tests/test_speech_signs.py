"""What tells how things are done is heard without a known form, and what is about the moment is not."""

from __future__ import annotations

import pytest

from memory_kb.learning.speech.capture import read_all
from memory_kb.learning.speech.signs import ENOUGH, weigh

STANDING = [
    "Workers here acknowledge messages by hand, not in the middleware.",
    "New tables go under the reporting schema, the public schema is frozen.",
    "A swallowed exception counts as a bug here, we got burnt by it.",
    "We don't cache balances anywhere, auditors got angry about it once.",
    "and dont write account numbers to the trace logs, not even masked, it leaked that way",
    "Our importers are idempotent because the bank may send a file twice.",
    "Parsers here return a Result and not an exception.",
    "Feature flags live in flags.toml here, not in the database.",
]
PASSING = [
    "The list here should be sorted by name, not by date.",
    "Each voucher must only be used once.",
    "You may not need the second query then.",
    "I don't see it anywhere.",
    "we only need the totals for now",
    "The boss must never leave the arena, and players always respawn at the gate.",
    "The spinner should show first, not the avatar.",
    "it only works when I reload the page, not otherwise",
    "Suppose we never cached prices at all.",
    "plot it by week instead of by day",
    "that is the old endpoint, not the new one",
    "our meeting is at three",
    "Two of the tests here fail because of the clock.",
    "the export only runs once because the queue is empty",
    "Users can only be invited by admins, not by guests.",
]


@pytest.mark.parametrize("text", STANDING)
def test_what_holds_for_more_than_this_once_is_kept(text: str) -> None:
    assert [one.text.strip(" .") for one in read_all(text)] == [text.strip(" .")]


@pytest.mark.parametrize("text", PASSING)
def test_what_is_about_the_moment_is_not(text: str) -> None:
    assert read_all(text) == ()
    assert weigh(text) < ENOUGH


def test_mockery_is_not_meant() -> None:
    assert read_all("Sure, always just delete the logs, then nothing can fail.") == ()
    assert read_all("Sure. Always delete the logs after a run.")
