"""What failed is not called unsolved where it went well in another form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from episodic import bash, user, write_session

from memory_kb import KnowledgeBase
from memory_kb.learning.episodic.account import write_diary
from memory_kb.learning.episodic.trace import Trace, trace_session
from memory_kb.notes.events import Event

#: What failed, what it said, and what went well.
SOLVED = [
    (
        "sops -d secrets.enc.yaml",
        "no identity matched any of the recipients",
        "SOPS_AGE_KEY_FILE=~/.config/sops/ops.txt sops -d secrets.enc.yaml",
    ),
    ("rails runner seed.rb", "KeyError: key not found: DB", "env DB=dev rails runner seed.rb"),
    ("./fetch.sh 3", "connection refused", "export PROXY=http://p:3128 && ./fetch.sh 3"),
    (
        "cargo bench --bench tok",
        "error: no bench target named `tok`.\nAvailable bench targets:\n    tokenizer",
        "cargo bench --bench tokenizer",
    ),
    ("python report.py --fromat csv", "error: unrecognized arguments: --fromat csv", "python report.py --format csv"),
    (
        "kubectl rollout status deploy/ap",
        'Error from server (NotFound): deployments.apps "ap" not found',
        "kubectl rollout status deploy/api",
    ),
    (
        "curl -s http://localhost:3000/health",
        "curl: (7) Failed to connect: Connection refused",
        "curl -s http://localhost:8080/health",
    ),
    ("npm run dev", 'npm ERR! Missing script: "dev"', "npm start"),
    ("yarn serve", 'error Command "serve" not found.', "yarn dev"),
]

OPEN = [
    ("python import.py march.csv", "ValueError: bad row 7", "python import.py april.csv"),
    ("terraform plan -var-file=prod.tfvars", "Error: Invalid provider configuration", "terraform validate"),
    ("npm run seed", "Error: relation users does not exist", "npm start"),
    ("./load.sh staging", "Error: no space left on device", "./load.sh prod"),
]


def traced(failed: str, said: str, *more: tuple[str, bool]) -> Trace:
    events = [Event(session="s", seq=1, role="user", content="Look into it, please.")]
    for number, (command, ok, output) in enumerate(
        [(failed, False, said), *((one, ok, "done" if ok else said) for one, ok in more)]
    ):
        call = {"session": "s", "tool": "Bash", "call_id": str(number)}
        events.append(Event(type="tool_call", args={"command": command}, **call))  # type: ignore[arg-type]
        events.append(Event(type="tool_result", ok=ok, content=output, error=None if ok else output, **call))  # type: ignore[arg-type]
    (trace,) = trace_session("s", events)
    return trace


@pytest.mark.parametrize(("failed", "said", "worked"), SOLVED, ids=[one[2] for one in SOLVED])
def test_the_same_in_another_form_solves_it(failed: str, said: str, worked: str) -> None:
    (mishap,) = traced(failed, said, (worked, True)).mishaps
    assert mishap.resolution
    assert worked.rpartition("&& ")[2] in mishap.resolution


@pytest.mark.parametrize(("failed", "said", "worked"), OPEN, ids=[one[2] for one in OPEN])
def test_something_else_does_not_solve_it(failed: str, said: str, worked: str) -> None:
    trace = traced(failed, said, (worked, True))
    assert trace.mishaps[0].resolution is None
    assert write_diary(trace, "mixed").challenges[0].endswith(" was not solved")


def test_what_does_not_exist_and_was_not_missed_is_not_called_unsolved() -> None:
    missing = 'npm ERR! Missing script: "storybook:check"'
    once, again = (
        traced("npm run storybook:check", missing, *more)
        for more in ((("npm test", True),), (("npm run storybook:check", False),))
    )
    assert write_diary(once, "mixed").challenges[0].endswith(" was not tried again")
    assert write_diary(again, "mixed").challenges[0].endswith(" was not solved")


def test_an_episode_says_how_it_was_solved(folder: Path, open_kb: Callable[[Path], KnowledgeBase]) -> None:
    kb = open_kb(folder)
    failed, _, worked = SOLVED[0]
    steps = (bash(failed, "Failed to get the data key", ok=False), bash(worked, "a: b"))
    write_session(kb, "s", user("Show the secrets of staging."), *steps, user("thanks"))
    kb.reflect("s")
    (episode,) = kb._memories()
    assert "was not solved" not in episode.text
    assert "went through instead" in episode.text
