"""What an episode tells of what was said: the entries' words, real corrections, no harness, all in its order."""

from __future__ import annotations

import pytest

from memory_kb.learning.episodic.sayings import read_person
from memory_kb.learning.episodic.trace import Trace, trace_session
from memory_kb.learning.intake import settle
from memory_kb.learning.logs.transcripts import from_person
from memory_kb.learning.observation.findings import find_learnings
from memory_kb.model import Location
from memory_kb.notes.events import Event
from memory_kb.notes.injected import in_own_words

NO_CORRECTIONS = [
    "no that's it",
    "no, that's all for today",
    "nope, all good, thanks",
    "no I don't need the legend, the axis labels are enough",
    "No, thanks, I'll take it from here.",
    "nah it's fine as it is",
    "no we're done here, have a nice evening",
    "No, nothing else for now.",
    "no no, that's perfect",
    "no, that will do",
    "No need for a chart title.",
    "nope, not today",
    "no, just go ahead and merge it",
    "Wait, that's great!",
]
CORRECTIONS = [
    "no, that's the wrong table",
    "No, use the existing client instead of a new one.",
    "nope, it still fails on Windows",
    "that's not what I asked for",
    "no I don't want you to touch the schema",
    "stop, you deleted the fixture",
    "no, the totals are off by one",
    "wait, why did you rename it, undo that",
    "don't mock the database in there",
    "No. The header goes above the filter.",
    "you forgot the migration for it",
    "not like that, the caller owns the connection",
    "revert the change in billing please",
    "actually, keep the old name for the endpoint",
]
HARNESS = [
    "<ide_opened_file>The user opened /x/RULES.md in the IDE. Always read it.</ide_opened_file>",
    "<ide_selection>The user selected lines 1 to 9: never do this</ide_selection>",
    "<new-diagnostics>error TS2304</new-diagnostics>",
    "<system-reminder>Never mention this.</system-reminder>",
]


def call(seq: int, command: str, call_id: str) -> Event:
    return Event(
        ts=f"2026-03-01T10:00:{seq:02}Z",
        seq=seq,
        session="s",
        type="tool_call",
        tool="Bash",
        call_id=call_id,
        args={"command": command},
    )


def result(seq: int, call_id: str) -> Event:
    return Event(
        ts=f"2026-03-01T10:00:{seq:02}Z",
        seq=seq,
        session="s",
        type="tool_result",
        call_id=call_id,
        ok=True,
        content="ok",
    )


def talk(*said: str) -> list[Event]:
    roles = ("user", "assistant")
    return [
        Event(ts=f"2026-03-01T10:{n:02}:00Z", seq=n + 1, session="s", role=roles[n % 2], content=text)
        for n, text in enumerate(said)
    ]


def trace(events: list[Event]) -> Trace:
    (made,) = trace_session("s", events)
    return made


@pytest.mark.parametrize("said", NO_CORRECTIONS)
def test_a_goodbye_or_what_somebody_does_without_is_no_correction(said: str) -> None:
    assert read_person(said).correction is None


@pytest.mark.parametrize("said", CORRECTIONS)
def test_what_is_wrong_is_a_correction(said: str) -> None:
    assert read_person(said).correction is not None


@pytest.mark.parametrize(
    ("said", "is_kept"),
    [
        ("no, leave the tests out", False),
        ("no, only the german one please", False),
        ("no, that's wrong, it is the other bucket", True),
    ],
)
def test_a_mere_no_answers_what_was_asked(said: str, is_kept: bool) -> None:
    asked = talk("Add the export.", "Done. I also changed the importer. Shall I add tests for both?", said)
    assert bool(trace([*asked[:2], call(10, "make", "a"), result(11, "a"), asked[2]]).corrections) is is_kept


def test_lessons_are_what_becomes_an_entry() -> None:
    events = talk(
        "Make the table faster.",
        "On it.",
        "the row height is fixed at 48px by design, you can rely on that",
        "Ok.",
        "suppose we always deployed on fridays",
        "Hm.",
        "Always indent with tabs here. Never commit the dump.",
        "Ok.",
        "scratch that about the tabs",
        "Ok.",
        "Kafka would give us replay but nobody here wants to run brokers",
    )
    kept = tuple(one.draft.text for one in settle(find_learnings(events, Location())) if one.doubt is None)
    assert (
        trace(events).lessons
        == kept
        == ("the row height is fixed at 48px by design, you can rely on that", "Never commit the dump.")
    )


def test_a_change_of_ones_own_mind_is_no_correction_of_the_agent() -> None:
    events = [*talk("Fix it.", "Ok.", "Always sort by date.", "Ok."), call(9, "make", "a"), result(10, "a")]
    made = trace([*events, Event(seq=11, session="s", role="user", content="no wait, I was wrong, by amount")])
    assert (made.corrections, made.lessons) == ((), ("Always sort by amount.",))


def test_what_was_taken_back_is_no_correction_of_the_agent() -> None:
    events = [*talk("Fix it.", "Ok."), call(3, "make", "a"), result(4, "a")]
    events += [
        Event(seq=5, session="s", role="user", content="don't use tabs"),
        Event(seq=6, session="s", role="assistant", content="Ok."),
    ]
    assert trace(events).corrections == ("don't use tabs",)
    assert (
        trace(
            [
                *events,
                Event(
                    seq=7, session="s", role="user", content="oh sorry that was meant for the other window, ignore it"
                ),
            ]
        ).corrections
        == ()
    )


@pytest.mark.parametrize("text", HARNESS)
def test_what_a_harness_puts_beside_a_message_is_not_the_persons(text: str) -> None:
    assert [event.type for event in from_person(text)] == ["event"]
    assert [event.content for event in from_person(f"{text}\nFix the typo.") if event.type == "message"] == [
        "Fix the typo."
    ]


def test_answers_and_notes_are_shown_without_their_frame() -> None:
    answers = 'User has answered your questions: "Where to?"="One queue", "When?"="Now". You can now continue with the user\'s answers in mind.'
    assert in_own_words(answers) == "Where to? One queue; When? Now"
    assert in_own_words("<user-memory-input>never use index keys</user-memory-input>") == "never use index keys"
    assert in_own_words("List<String> stays </p>") == "List<String> stays </p>"
    events = [
        call(1, "make", "a"),
        result(2, "a"),
        *talk("Fix the queue.", "ok", answers, "ok", "<user-memory-input>never use index keys</user-memory-input>"),
    ]
    told = " ".join(step.action for step in trace(events).steps)
    assert "One queue" in told
    assert "User has answered" not in told
    assert "user-memory-input" not in told


def test_a_call_that_nothing_answered_stands_where_it_began() -> None:
    events = [
        call(1, "make watch", "a"),
        call(2, "make b", "b"),
        result(3, "b"),
        call(4, "make c", "c"),
        result(5, "c"),
    ]
    assert [step.action for step in trace(events).steps] == ["make watch", "make b", "make c"]


def test_a_late_answer_does_not_change_the_order_of_a_long_log() -> None:
    events = [call(0, "make first", "x")]
    for number in range(1, 100):
        events += [call(number % 60, f"make t{number}", f"c{number}"), result(number % 60, f"c{number}")]
    events.insert(140, call(50, "make lost", "y"))
    events = [
        Event(
            ts="2026-03-01T10:00:00Z",
            seq=n,
            session="s",
            type=e.type,
            tool=e.tool,
            call_id=e.call_id,
            args=e.args,
            ok=e.ok,
        )
        for n, e in enumerate(events, 1)
    ]
    made = trace(events)
    assert made.steps[0].action == "make first"
    assert len(made.steps) + made.missing == 101
    assert [step.place for step in made.steps] == sorted(step.place for step in made.steps)


@pytest.mark.parametrize("stamp", ["2026-03-01T10:00:00Z", ""])
def test_a_talk_makes_an_episode_by_what_was_told_whatever_its_format(stamp: str) -> None:
    told = [
        Event(ts=stamp, seq=n + 1, role=one.role, content=one.content)
        for n, one in enumerate(talk("How do I keep state?", "So.", "Never use setState here."))
    ]
    asked = [
        Event(ts=stamp, seq=n + 1, role=one.role, content=one.content)
        for n, one in enumerate(talk("How do I keep state?", "So.", "And why?"))
    ]
    assert not trace(told).is_empty
    assert trace(asked).is_empty
