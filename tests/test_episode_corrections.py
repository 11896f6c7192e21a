"""What an episode tells of a correction: the objection together with what holds instead."""

from __future__ import annotations

import pytest

from memory_kb.learning.episodic.sayings import read_person
from memory_kb.learning.episodic.trace import trace_session
from memory_kb.notes.events import Event


@pytest.mark.parametrize(
    "message",
    [
        "Nope, wrong bucket. The CI bucket is up-ci-eu, `up` is production!",
        "No, the test is right. Swiss invoices are rounded half-even at line level and half-up only on the total.",
        "No, wrong cluster. The staging cluster is eks-stg-2, `eks` is production!",
        "No, that is the old one. The current schema lives in db/schema_v3.sql.",
        "No no, the code is fine. Refunds are booked with a negative quantity.",
        "No, leave it. The retry is done by the gateway.",
        "No, don't edit it. It is generated from api.proto.",
        "No, not in main.py. Routes live in app/routes, one file for each resource.",
        "You forgot the tests. They belong next to the source.",
        "That's wrong. Swedish VAT is rounded to whole kronor on the invoice total.",
    ],
)
def test_a_correction_keeps_its_fact(message: str) -> None:
    said = read_person(message)
    assert f"{said.correction} {said.fact or ''}".strip() == message


@pytest.mark.parametrize(
    ("first", "rest"),
    [
        ("No, not like that.", "Please try it again with a smaller batch."),
        ("Nope, wrong file.", "Can you open the other one?"),
        ("No, leave it as it was.", "I have to go now."),
        ("No, still the wrong colour.", "Make it the one that is on the other page."),
        ("Stop, that is not it.", "It still fails with the same error."),
        ("No, that is wrong.", "Thanks anyway, it is late and I will look at it tomorrow."),
    ],
)
def test_what_is_to_be_done_next_is_no_part_of_it(first: str, rest: str) -> None:
    said = read_person(f"{first} {rest}")
    assert (said.correction, said.fact) == (first, None)


def test_the_episode_tells_both() -> None:
    call = {"session": "s", "tool": "Bash", "call_id": "a"}
    events = [
        Event(session="s", role="user", content="Upload the build."),
        Event(type="tool_call", args={"command": "aws s3 cp build.zip s3://up/"}, **call),  # type: ignore[arg-type]
        Event(type="tool_result", ok=True, content="done", **call),  # type: ignore[arg-type]
        Event(session="s", role="user", content="Nope, wrong bucket. The CI bucket is up-ci-eu, `up` is production!"),
    ]
    (trace,) = trace_session("s", events)
    assert trace.corrections == ("Nope, wrong bucket. The CI bucket is up-ci-eu, `up` is production!",)
