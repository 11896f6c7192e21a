"""The list of sessions: which there are, whose, since when, and which nobody ended."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from memory_kb import KnowledgeBase
from memory_kb.index.session_index import SessionSeen
from memory_kb.store.session_events import Event

if TYPE_CHECKING:
    from conftest import Run

Open = Callable[..., KnowledgeBase]


@pytest.fixture
def filled(folder: Path, open_kb: Open) -> KnowledgeBase:
    """A vault with three sessions: one ended, one that went on after its end, one that was only begun."""
    for number, name in enumerate(("early", "later", "begun"), 1):
        kb = open_kb(folder, datetime(2026, 11, number, 9, 0, tzinfo=UTC))
        kb.sessions.start(
            name, agent="coder" if number < 3 else "tester", job="api", task="login" if number == 1 else None
        )
        if number < 3:
            kb.sessions.append(
                [Event(role="user", content="Hello."), Event(role="assistant", agent="helper", content="Hi.")],
                session=name,
            )
            kb.sessions.end(name, outcome="success", only_close=True)
    kb.sessions.append([Event(role="user", content="One thing more.")], session="later")
    return kb


def test_a_session_says_whose_it_is_how_long_and_how_it_ended(filled: KnowledgeBase) -> None:
    found = filled.sessions.list()
    assert (found.total, found.degraded) == (3, ())
    assert {one.session: one for one in found.sessions} == {
        "early": SessionSeen(
            "early",
            "coder",
            "api",
            "login",
            "2026-11-01T09:00:00.000Z",
            "2026-11-01T09:00:00.000Z",
            4,
            "ended",
            "success",
        ),
        "later": SessionSeen(
            "later", "coder", "api", None, "2026-11-02T09:00:00.000Z", "2026-11-03T09:00:00.000Z", 5, "open"
        ),
        "begun": SessionSeen(
            "begun", "tester", "api", None, "2026-11-03T09:00:00.000Z", "2026-11-03T09:00:00.000Z", 1, "open"
        ),
    }
    assert found.sessions[-1].session == "early"


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"only_open": True}, ["begun", "later"]),
        ({"agent": "tester"}, ["begun"]),
        ({"agent": "helper"}, ["early", "later"]),
        ({"agent": "helper", "only_open": True}, ["later"]),
        ({"job": "api"}, ["begun", "early", "later"]),
        ({"job": "web"}, []),
    ],
    ids=str,
)
def test_filters(filled: KnowledgeBase, how: dict[str, str], expected: list[str]) -> None:
    assert sorted(one.session for one in filled.sessions.list(**how).sessions) == expected  # type: ignore[arg-type]


def test_a_limit_keeps_the_newest_and_says_how_many_there_are(filled: KnowledgeBase) -> None:
    found = filled.sessions.list(limit=2)
    assert ({one.session for one in found.sessions}, found.total) == ({"later", "begun"}, 3)
    assert filled.sessions.list(limit=0).sessions == ()


def test_a_session_without_events_and_one_that_is_gone(filled: KnowledgeBase) -> None:
    logs = filled.vault.machine / "sessions"
    (logs / "empty.jsonl").touch()
    (logs / "early.jsonl").unlink()
    assert filled.sessions.list().sessions[-1] == SessionSeen("empty", None, None, None, None, None, 0, "open")
    assert "early" not in [one.session for one in filled.sessions.list().sessions]


def test_the_command(run: Run, filled: KnowledgeBase) -> None:
    vault = ("--vault", filled.vault.folder)
    lines = run(*vault, "session", "list").stdout.splitlines()
    assert sorted(line.split()[0] for line in lines) == ["begun", "early", "later"]
    assert re.split("  +", lines[-1]) == [
        "early", "ended success", "coder", "api/login", "2026-11-01 09:00", "2026-11-01 09:00", "4 events"
    ]  # fmt: skip
    told = json.loads(run(*vault, "session", "list", "--open", "--agent", "coder", "--json").stdout)
    assert [(one["session"], one["state"], one["outcome"], one["events"]) for one in told["sessions"]] == [
        ("later", "open", None, 5)
    ]
    cut = run(*vault, "session", "list", "-k", "1")
    assert (len(cut.stdout.splitlines()), cut.stderr) == (1, "… and 2 more; --limit shows them\n")
    assert run(*vault, "session", "list", "--job", "web").stderr.startswith("No session fits")


def test_where_there_is_none(run: Run, folder: Path) -> None:
    done = run("--vault", folder, "session", "list")
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        "",
        "No session fits; `memory-kb session start` begins one.\n",
    )


def test_a_folder_that_cannot_be_read_is_no_empty_one(run: Run, filled: KnowledgeBase) -> None:
    before = filled.sessions.list().total
    logs = filled.vault.machine / "sessions"
    logs.rename(logs.with_name("aside"))
    logs.touch()
    done = run("--vault", filled.vault.folder, "session", "list")
    assert (done.returncode, done.stdout, "Not a directory" in done.stderr) == (4, "", True)
    logs.unlink()
    logs.with_name("aside").rename(logs)
    assert filled.sessions.list().total == before
