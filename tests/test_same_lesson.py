"""An error that comes back in another session is one lesson, quoted as it was said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from memory_kb import KnowledgeBase
from memory_kb.learning.lessons import comparable
from memory_kb.learning.memories import Memory
from memory_kb.notes.events import Event

Open = Callable[..., KnowledgeBase]
REFUSED = (
    "sqlalchemy.exc.OperationalError: could not connect to server: Connection refused on localhost port {} after 3.{}s"
)


def run_of(session: str, *steps: tuple[str, bool, str]) -> list[Event]:
    """Return the events of commands, each with whether it worked and what it printed."""
    made = []
    for number, (command, ok, output) in enumerate(steps):
        call = {"ts": f"2026-03-01T10:{number:02}:00Z", "session": session, "tool": "Bash", "call_id": f"c{number}"}
        made.append(Event(type="tool_call", args={"command": command}, **call))  # type: ignore[arg-type]
        made.append(Event(type="tool_result", ok=ok, content=output, **call))  # type: ignore[arg-type]
    return made


def helped(session: str, test: str, port: int = 5433, help_: str = "docker compose up -d db") -> list[Event]:
    return run_of(
        session, (test, False, REFUSED.format(port, port)), (help_, True, "Started"), (test, True, "3 passed")
    )


def extracted(kb: KnowledgeBase, *sessions: list[Event]) -> list[Memory]:
    for events in sessions:
        kb.session_append(events)
        kb.extract(events[0].session or "")
    return [memory for memory in kb._memories() if memory.kind == "pitfall" and memory.is_live]


def test_the_same_help_against_the_same_error_is_kept_once(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    (lesson,) = extracted(
        kb,
        *(
            helped(name, f"pytest -k {name}", port)
            for name, port in (("login", 5433), ("logout", 5433), ("signup", 5434))
        ),
    )
    assert {lesson.word("session_id"), *lesson.words("sources")} == {"login", "logout", "signup"}
    assert lesson.reinforcement_count == 2
    assert "port 5433 after 3.5433s" in lesson.text
    assert [hit.id for hit in kb.search("5433").hits] == [lesson.id]


@pytest.mark.parametrize(
    "other",
    [
        helped("other", "pytest -k login", help_="docker compose up -d cache"),
        helped("other", "npm test"),
        run_of(
            "other",
            ("pytest -q", False, "E   redis.exceptions.ConnectionError: Connection refused"),
            ("docker compose up -d db", True, ""),
            ("pytest -q", True, "3 passed"),
        ),
    ],
    ids=["another help", "another command", "another error"],
)
def test_another_lesson_is_kept_beside_it(other: list[Event], folder: Path, open_kb: Open) -> None:
    assert len(extracted(open_kb(folder), helped("s", "pytest -k login"), other)) == 2


def test_what_was_kept_twice_before_becomes_one(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    (first,) = extracted(kb, helped("one", "pytest -k login"))
    text = (folder / first.path).read_text("utf-8")
    for name in ("two", "six"):
        copy = text.replace(first.id, name).replace("-k login", f"-k {name}").replace("5433", "6001")
        copy = copy.replace("session_id: one", f"session_id: {name}")
        (folder / first.path).with_name(f"{name}.md").write_text(copy, "utf-8")
    assert kb.compact().merged == 2
    (kept,) = [memory for memory in kb._memories() if memory.kind == "pitfall" and memory.is_live]
    assert {kept.word("session_id"), *kept.words("sources")} == {"one", "two", "six"}


def test_a_quoted_error_is_the_same_whatever_differs_from_run_to_run() -> None:
    text = "**Error Pattern:** `make` fails with `{}`\n**Recovery:** none was found, it failed 3 times for the same reason."
    one = text.format("no such image 4f2d9e1aa0b7 on port 5433, 2026-03-01T10:00:00Z")
    assert comparable(one) == comparable(text.format("no such image 77aa9e1aa0b7 on port 6001, 2026-04-01T10:00:00Z"))
    assert comparable(one) != comparable(one.replace("3 times", "4 times"))
