"""What is read in the events of a session: commands, checks and their outcome, decisions, and what was said of them."""

from __future__ import annotations

import pytest
from conftest import NOW
from episodic import agent, bash, user
from hypothesis import given
from hypothesis import strategies as st

from memory_kb.learning.episodic.account import judge_outcome
from memory_kb.learning.episodic.answers import read_answer
from memory_kb.learning.episodic.episodes import make_episode
from memory_kb.learning.episodic.mishaps import Check
from memory_kb.learning.episodic.sayings import read_agent, read_person
from memory_kb.learning.episodic.toolcalls import read_call
from memory_kb.learning.episodic.trace import Commit, Trace, trace_session
from memory_kb.notes.events import Event

GOOD, BAD = Check("test", is_ok=True, told="`pytest` passes"), Check("build", is_ok=False)


@pytest.mark.parametrize(
    ("trace", "outcome"),
    [
        (Trace("s", outcome="partial", checks=(GOOD,)), "partial"),
        (Trace("s", checks=(GOOD,)), "success"),
        (Trace("s", checks=(BAD,)), "failure"),
        (Trace("s", checks=(GOOD, BAD)), "mixed"),
        (Trace("s", checks=(GOOD,), mood=-1), "mixed"),
        (Trace("s", checks=(BAD,), mood=1), "mixed"),
        (Trace("s", commits=(Commit("abc1234", "x"),)), "success"),
        (Trace("s", mood=1), "success"),
        (Trace("s", mood=-1), "failure"),
        (Trace("s"), "mixed"),
    ],
)
def test_the_outcome_follows_a_rule(trace: Trace, outcome: str) -> None:
    assert judge_outcome(trace) == outcome


def test_a_subset_that_passes_does_not_hide_what_fails() -> None:
    events = [
        user("Fix all of it now."),
        bash("pytest", "2 failed, 8 passed in 1s", ok=False),
        bash("pytest tests/a.py", "4 passed in 1s"),
    ]
    (trace,) = trace_session("s", [Event(**one) for one in events])
    assert judge_outcome(trace) == "mixed"
    (again,) = trace_session("s", [Event(**one) for one in [*events, bash("pytest -q", "10 passed in 1s")]])
    assert judge_outcome(again) == "success"


def test_a_pipe_does_not_hide_a_failed_test() -> None:
    assert read_answer("test", "==== 2 failed, 1 passed in 3.0s ====", None, ok=True).ok is False
    assert read_answer("run", "the docs say: 2 failed, 1 passed", None, ok=True).ok is True


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("I'll use a lock, because two workers start at once.", {"decisions"}),
        ("Because the API is rate limited, I'll batch the calls.", {"decisions"}),
        ("We decided against Redis because of the licence.", {"decisions"}),
        ("I'll use grep to find the callers because the index is stale.", set()),
        ("I'll go with option B since you asked for it.", set()),
        ("I'll run the suite again, because the fixture changed.", set()),
        ("I'll use a lock.", set()),
        ("Root cause: a missing await in `flush()`.", {"causes"}),
        ("The bug was in the date parser: it read DD/MM as MM/DD.", {"causes"}),
        ("The problem might be the proxy.", set()),
        ("The problem is that I don't know the password.", set()),
        ("Lesson: pin the base image of every build.", {"lessons"}),
        ("Two things to know:\n- The queue is drained at night.\n\nBye for now then.", {"lessons"}),
        ("I've added the index to the migration.", {"done"}),
        ("I couldn't reproduce the crash on this machine.", {"stuck"}),
        ("```\nLesson: pin the base image of every build.\n```", set()),
        ("All tests pass now. Let me look at the rest.", set()),
    ],
)
def test_what_an_agent_says(said: str, kept: set[str]) -> None:
    assert {name for name, texts in read_agent(said)._asdict().items() if texts} == kept


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("Use Postgres instead of SQLite.", {"decisions"}),
        ("In this repo tests live next to the code.", {"lessons"}),
        ("The rounding is half-even on purpose.", {"lessons"}),
        ("It has to work on Python 3.9 too.", {"constraints"}),
        ("No, stop. That breaks the API.", {"correction"}),
        ("No idea, go on with it.", set()),
        ("Don't worry about the warnings now.", set()),
        ("Why did you delete the old tests?", set()),
        ("Let's go with the second one then.", set()),
        ("> We never mock the clock here.\nIs that so?", set()),
    ],
)
def test_what_a_person_says(said: str, kept: set[str]) -> None:
    assert {name for name, texts in read_person(said)._asdict().items() if texts} == kept


def test_a_decision_that_was_overturned_is_none() -> None:
    said = [
        user("We need refunds on orders."),
        agent("I'll add the column to the existing migration so that the history stays short."),
        user("No, stop. Migrations on main are applied already, we never edit those."),
        agent("I'll make a new migration, because the old ones are applied."),
        user("ok"),
    ]
    (trace,) = trace_session("s", [Event(**one) for one in said])
    assert trace.decisions == ("I'll make a new migration, because the old ones are applied.",)
    assert trace.lessons == ("Migrations on main are applied already, we never edit those.",)
    assert trace.corrections == ("No, stop. Migrations on main are applied already, we never edit those.",)


@pytest.mark.parametrize(
    ("command", "kind", "family", "targets"),
    [
        ("cd api && uv run pytest -x tests/a.py 2>&1 | tail -5", "test", "pytest", ("tests/a.py",)),
        ("npm run build", "build", "npm run build", ()),
        ("yarn workspace @x/web test Picker", "test", "yarn test", ("Picker",)),
        ("git -C x commit -am 'one two'", "commit", "git commit", ()),
        ("./scripts/deploy.sh staging", "deploy", "./scripts/deploy.sh", ("staging",)),
        ("SQLX_OFFLINE=true cargo test --lib", "test", "cargo test", ()),
        ("kubectl -n prod get pods", "look", "kubectl get", ("pods",)),
        ("sed -i 's/a/b/' src/a.py", "edit", "Edit", ("src/a.py",)),
        ("echo 'unclosed", "look", "echo", ("'unclosed",)),
        ("", "look", "cd", ()),
    ],
)
def test_a_command_is_told_by_its_most_telling_part(
    command: str, kind: str, family: str, targets: tuple[str, ...]
) -> None:
    assert read_call("Bash", {"command": command})[:3] == (kind, family, targets)


@given(st.text(), st.text(), st.dictionaries(st.text(max_size=8), st.text(max_size=30), max_size=3))
def test_nothing_anybody_says_or_runs_makes_it_fail(said: str, output: str, args: dict[str, str]) -> None:
    read_person(said)
    read_agent(said)
    events = [
        Event(role="user", content=said),
        Event(type="tool_call", tool="Bash", args={"command": output}, call_id="1"),
        Event(type="tool_result", call_id="1", ok=False, content=said, error=output),
        Event(type="tool_call", tool=said[:5], args=args),
        Event(ts=output[:5], type="event", event="end", args={"outcome": said}),
    ]
    for trace in trace_session("s", events):
        episode = make_episode(trace, NOW)
        assert "\n---" not in episode.body


def test_interleaved_tasks_stay_apart() -> None:
    rows = [
        Event(task=task, job="j", role="user", content=f"Do task {task} {number} please.")
        for number in range(3)
        for task in ("a", "b")
    ]
    traces = trace_session("s", [Event(type="event", event="start"), *rows])
    assert [(trace.task, trace.turns) for trace in traces] == [("a", 3), ("b", 3)]


def test_small_talk_is_no_episode_and_no_correction() -> None:
    said = [
        user("hey there you"),
        agent("Hi!"),
        user("no just testing whether it works"),
        agent("It does."),
        user("cool"),
    ]
    (trace,) = trace_session("s", [Event(**one) for one in said])
    assert (trace.corrections, trace.is_empty) == ((), True)


def test_a_decision_that_the_person_takes_back_is_none() -> None:
    said = [
        user("We need rate limits. Let's use a limit per IP."),
        agent("I'll add it."),
        user("Thinking about it again, per IP would block whole companies. Scrap that, do it per key."),
    ]
    (trace,) = trace_session("s", [Event(**one) for one in said])
    assert trace.decisions == ()


def test_a_semicolon_in_quotes_ends_no_command() -> None:
    call = Event(
        seq=2, type="tool_call", tool="Bash", call_id="1", args={"command": "python -c \"import a; a.run(sep=';')\""}
    )
    (trace,) = trace_session(
        "s",
        [Event(seq=1, role="user", content="Run it."), call, Event(seq=3, type="tool_result", call_id="1", ok=True)],
    )
    assert [step.action for step in trace.steps] == ["python -c \"import a; a.run(sep=';')\""]
