"""What is read in the events of a session: commands, checks and their outcome."""

from __future__ import annotations

import pytest
from conftest import NOW
from episodic import agent, bash, user
from hypothesis import given
from hypothesis import strategies as st

from memory_kb.episodes.diary_text import judge_outcome
from memory_kb.episodes.episode import make_episode
from memory_kb.episodes.session_facts import Commit, Trace
from memory_kb.episodes.tool_calls import Call, read_answer, read_fault, read_tool_call
from memory_kb.episodes.trace import trace_session
from memory_kb.store.session_events import Event


@pytest.mark.parametrize(
    ("trace", "outcome"),
    [
        (Trace("s", outcome="partial", checks=(True,)), "partial"),
        (Trace("s", checks=(True,)), "success"),
        (Trace("s", checks=(False,)), "failure"),
        (Trace("s", checks=(True, False)), "mixed"),
        (Trace("s", commits=(Commit("abc1234", "x"),)), "success"),
        (Trace("s"), "mixed"),
    ],
)
def test_the_outcome_follows_a_rule(trace: Trace, outcome: str) -> None:
    assert judge_outcome(trace) == outcome


def test_what_a_person_corrects_later_is_no_constraint() -> None:
    said = ("From now on, write docstrings in Google style.", "We no longer write docstrings in Google style.")
    events = [user("Fix all of it now."), *(user(one) for one in said), user("Never push to master.")]
    (trace,) = trace_session("s", [Event(**one) for one in events])
    assert trace.constraints == ("Never push to master.",)


def test_what_we_asked_an_agent_is_no_step_of_its_work() -> None:
    asked = Event(type="event", event="asked", agent="claude-code")
    (trace,) = trace_session("s", [*(Event(**one) for one in [user("Fix all of it now."), bash("make", "ok")]), asked])
    assert trace.steps == ("t=0 make -> ok",)


def test_a_check_that_was_never_run_has_not_failed() -> None:
    left_out = bash("pytest -q", "<tool_use_error>Sibling tool call errored</tool_use_error>", ok=False)
    (trace,) = trace_session("s", [Event(**one) for one in [bash("pytest", "8 passed in 1s"), left_out]])
    assert (judge_outcome(trace), trace.failures) == ("success", ())


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


@pytest.mark.parametrize(
    ("failed", "worked", "resolution"),
    [
        ("python -c 'import seaborn'", "python --version", None),
        ("make test", "make styles", None),
        ("npm ci", "npm ci --force", "`npm ci --force` went through instead"),
        ("ruff check a.py b.py", "ruff check a.py", "`ruff check a.py` went through when it was run again"),
        ("tail -40 train.log", "tail -30 train.log", "`tail -30 train.log` went through when it was run again"),
        ("pytest -k login -q", "pytest -q", "`pytest -q` went through when it was run again"),
    ],
)
def test_to_look_at_a_program_solves_nothing(failed: str, worked: str, resolution: str | None) -> None:
    events = [user("Run all of it now."), bash(failed, "SyntaxError: invalid syntax", ok=False), bash(worked, "3.11.7")]
    (trace,) = trace_session("s", [Event(**one) for one in events])
    assert [failure.resolution for failure in trace.failures] == [resolution]


@pytest.mark.parametrize(
    ("worked", "is_proposed"),
    [("npm ci --ignore-scripts", True), ("npm ci --ignore-scripts | tail -5", False), ("npm ci --omit || true", False)],
)
def test_a_command_whose_own_end_is_not_known_is_no_remedy(worked: str, *, is_proposed: bool) -> None:
    events = [user("Install it now."), bash("npm ci", "npm error code ERESOLVE", ok=False), bash(worked, "done")]
    (trace,) = trace_session("s", [Event(**one) for one in events])
    assert bool(trace.retries) is is_proposed


@pytest.mark.parametrize(
    ("output", "fault"),
    [
        ("FAILURE: Build failed with an exception.\n", ("error", "FAILURE: Build failed with an exception.")),
        (
            "Output: bash: ./gradlew: No such file or directory\nError: (none)",
            ("no such file", "bash: ./gradlew: No such file"),
        ),
        ("Error: (none)\nExit Code: 3\nProcess Group PGID: 73872", ("exit code 3", "")),
        ("(eval):cd:1: no such file or directory: web\nmake: *** No rule to make target 'all'. Stop.", ("failed", "")),
        ("(eval):1: command not found: adb", ("command not found", "adb")),
    ],
)
def test_an_error_is_said_without_the_frame_of_the_tool(output: str, fault: tuple[str, str]) -> None:
    found = read_fault(output)
    assert (found.type, found.message[: len(fault[1])]) == fault


def test_a_pipe_does_not_hide_a_failed_test() -> None:
    assert read_answer(Call("test", "pytest"), "==== 2 failed, 1 passed in 3.0s ====", None, ok=True).ok is False
    assert read_answer(Call("run", "cat"), "the docs say: 2 failed, 1 passed", None, ok=True).ok is True


@pytest.mark.parametrize(
    ("command", "kind", "family", "targets"),
    [
        ("cd api && uv run pytest -x tests/a.py 2>&1 | tail -5", "test", "pytest", ("tests/a.py",)),
        ("npm run build", "build", "npm run build", ()),
        ("git -C x commit -am 'one two'", "commit", "git commit", ()),
        ("./scripts/deploy.sh staging", "deploy", "deploy.sh", ("staging",)),
        ("SQLX_OFFLINE=true cargo test --lib", "test", "cargo test", ()),
        ("kubectl -n prod get pods", "look", "kubectl get", ("pods",)),
        ("sed -i 's/a/b/' src/a.py", "edit", "Edit", ("src/a.py",)),
        ("echo 'unclosed", "look", "cd", ()),
        ("", "look", "cd", ()),
    ],
)
def test_a_command_is_known_by_its_most_informative_part(
    command: str, kind: str, family: str, targets: tuple[str, ...]
) -> None:
    assert read_tool_call("Bash", {"command": command})[:3] == (kind, family, targets)


@given(st.text(), st.text(), st.dictionaries(st.text(max_size=8), st.text(max_size=30), max_size=3))
def test_nothing_anybody_says_or_runs_makes_it_fail(said: str, output: str, args: dict[str, str]) -> None:
    events = [
        Event(role="user", content=said),
        Event(type="tool_call", tool="Bash", args={"command": output}, call_id="1"),
        Event(type="tool_result", call_id="1", ok=False, content=said, error=output),
        Event(type="tool_call", tool=said[:5], args=args),
        Event(ts=output[:5], type="event", event="end", args={"outcome": said}),
    ]
    for trace in trace_session("s", events):
        episode = make_episode(trace, NOW)
        assert "\n---" not in episode.draft.text


def test_interleaved_tasks_stay_apart() -> None:
    rows = [
        Event(task=task, job="j", role="user", content=f"Do task {task} {number} please.")
        for number in range(3)
        for task in ("a", "b")
    ]
    traces = trace_session("s", [Event(type="event", event="start"), *rows])
    assert [(trace.task, trace.turns) for trace in traces] == [("a", 3), ("b", 3)]


@pytest.mark.parametrize(
    ("said", "goal"),
    [
        (["proceed", "train the model on the new data"], "train the model on the new data"),
        (
            ["Implement the following plan:\n\n# Limits of the API\n\n## Context\nNone."],
            "the following plan: Limits of the API",
        ),
        (["# /release: publish a version\n\nRead the arguments first.", "yes"], "/release: publish a version"),
        (
            ["## User Input\n\n```text\nLet pupils leave a group.\n```\n\nYou **MUST** consider it."],
            "Let pupils leave a group.",
        ),
        (["I got these failures\n\n⎯⎯⎯⎯ Failed Tests 1 ⎯⎯⎯⎯\nfalse is not true"], "I got these failures"),
        (["User provided an image (image/png)\n\nmake it blue"], "make it blue"),
        (["fix the values [\n  {\n  },\n]"], "fix the values ["),
        (["修一下", "运行测试,然后把登录改好"], "运行测试,然后把登录改好"),
    ],
)
def test_the_goal_is_the_first_message_that_says_what_it_is_about(said: list[str], goal: str) -> None:
    events = [Event(**one) for text in said for one in (user(text), bash("make", "done"))]
    (trace,) = trace_session("s", events)
    assert trace.goal.endswith(goal)


@pytest.mark.parametrize("name", ["command", "local_command", "informational"])
def test_what_the_program_around_the_agent_says_is_no_work(name: str) -> None:
    events = [Event(type="event", event=name, role="system", content="<command-name>/clear</command-name>")]
    assert trace_session("s", events)[0].is_empty


def test_small_talk_is_no_episode() -> None:
    said = [
        user("hey there you"),
        agent("Hi!"),
        user("no just testing whether it works"),
        agent("It does."),
        user("cool"),
    ]
    (trace,) = trace_session("s", [Event(**one) for one in said])
    assert trace.is_empty


def test_a_semicolon_in_quotes_ends_no_command() -> None:
    call = Event(
        seq=2, type="tool_call", tool="Bash", call_id="1", args={"command": "python -c \"import a; a.run(sep=';')\""}
    )
    (trace,) = trace_session(
        "s",
        [Event(seq=1, role="user", content="Run it."), call, Event(seq=3, type="tool_result", call_id="1", ok=True)],
    )
    assert trace.steps == ("t=0 python -c \"import a; a.run(sep=';')\" -> ok",)
