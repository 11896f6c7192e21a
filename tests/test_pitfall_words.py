"""A pitfall of an episode's error names what failed and with what, and what extraction has kept is not told again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from episodic import bash, user, write_session

from memory_kb import KnowledgeBase
from memory_kb.notes.events import Event

Open = Callable[..., KnowledgeBase]


def pitfalls(kb: KnowledgeBase) -> list[Mapping[str, object]]:
    entries = [kb.show(entry.id) for entry in kb.list(kind=["pitfall"])]
    return [dict(entry.metadata) | {"text": (entry.text or "").split("\n---\n", 1)[1].strip()} for entry in entries]


def consolidated(kb: KnowledgeBase, *steps: tuple[str, bool, str]) -> list[Mapping[str, object]]:
    write_session(
        kb,
        "s",
        user("Get it to run."),
        *(bash(command, output, ok=ok) for command, ok, output in steps),
        user("thanks"),
    )
    kb.reflect("s")
    kb._consolidate_semantic()
    assert kb._consolidate_semantic().run.run is None
    return pitfalls(kb)


#: What was run; the title, and the command that fails and what helped as the text has them.
WORDED = {
    "a program": (
        [
            ("go generate ./...", False, "mockgen: command not found"),
            ("go install go.uber.org/mock/mockgen@latest && go generate ./...", True, ""),
        ],
        "`go generate` fails with mockgen: command not found",
        "`go generate ./...` fails with command not found.",
        "What helped: ran `go install go.uber.org/mock/mockgen@latest`.",
    ),
    "the last error is that of a wrong try": (
        [
            ("npm ci", False, "npm error ModuleNotFoundError: No module named 'distutils'"),
            ("python3 -m pip install --user setuptools && npm ci", False, "error: externally-managed-environment"),
            ("brew install python-setuptools && npm ci", True, "added 812 packages"),
        ],
        "`npm ci` fails with ModuleNotFoundError: No module named 'distutils'",
        "`npm ci` fails with ModuleNotFoundError.",
        "What helped: ran `brew install python-setuptools`.",
    ),
    "a service": (
        [
            (
                "bundle exec rspec spec/models",
                False,
                "PG::ConnectionBad: could not connect to server: Connection refused",
            ),
            ("brew services start postgresql@16; bundle exec rspec spec/models", True, "3 examples, 0 failures"),
        ],
        "`bundle exec rspec` fails with PG::ConnectionBad: could not connect to server:…",
        "`bundle exec rspec spec/models` fails with connection refused.",
        "What helped: ran `brew services start postgresql@16`.",
    ),
    "several errors with one cure": (
        [
            ("mix ecto.migrate", False, "error: environment variable DATABASE_URL is not set"),
            (
                "DATABASE_URL=ecto://localhost/app mix ecto.migrate",
                False,
                "** (Mix) connection refused to the database server",
            ),
            ("docker compose up -d db && DATABASE_URL=ecto://localhost/app mix ecto.migrate", True, "migrated"),
        ],
        "`DATABASE_URL=… mix ecto.migrate` fails with ** (Mix) connection refused to…",
        "fails with connection refused.",
        "What helped: ran `docker compose up -d db`.",
    ),
}


@pytest.mark.parametrize(("steps", "title", "fails", "helped"), WORDED.values(), ids=WORDED)
def test_a_pitfall_says_what_fails_and_with_what(
    folder: Path, open_kb: Open, steps: list[tuple[str, bool, str]], title: str, fails: str, helped: str
) -> None:
    (one,) = consolidated(open_kb(folder), *steps)
    assert one["title"] == title
    assert fails in str(one["text"])
    assert str(one["text"]).endswith(f"## Prevention\n\n{helped}")
    assert "Avoid: " not in str(one["text"])


def test_what_extraction_keeps_of_the_same_events_gets_no_second_pitfall(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    offline = "error: there is no cached data for this query, run `cargo sqlx prepare` to update it"
    steps = (
        (
            "DATABASE_URL=postgres://localhost/app cargo build",
            False,
            "error: error communicating with database: Connection refused",
        ),
        ("SQLX_OFFLINE=true cargo build", False, offline),
        ("docker compose up -d db && sleep 2 && cargo sqlx prepare", True, "written"),
        ("SQLX_OFFLINE=true cargo build", True, "Finished"),
    )
    kb.session_start("s")
    for number, (command, ok, output) in enumerate(steps):
        call = Event(type="tool_call", tool="Bash", call_id=str(number), args={"command": command})
        kb.session_append(
            (call, Event(type="tool_result", tool="Bash", call_id=str(number), ok=ok, content=output)), session="s"
        )
    kb.session_end("s", outcome="success")
    assert [one["source"] for one in pitfalls(kb)] == ["extracted"]
    assert kb._consolidate_semantic().run.run is None


def test_nothing_is_made_of_a_wrong_try_that_nobody_needed(folder: Path, open_kb: Open) -> None:
    steps = (
        ("open -a Docker && make itest", False, "Unable to find application named 'Docker'"),
        ("make itest", True, "3 passed"),
    )
    assert consolidated(open_kb(folder), *steps) == []


def test_an_edit_of_the_code_is_no_help_for_the_set_up(folder: Path, open_kb: Open) -> None:
    kb = open_kb(folder)
    denied = "/bin/bash: line 1: scripts/check.sh: Permission denied"
    change = bash("sed -i s/a/b/ src/ledger.go", "")
    steps = (
        bash("scripts/check.sh", denied, ok=False),
        change,
        bash("chmod +x scripts/check.sh"),
        bash("scripts/check.sh", "ok"),
    )
    write_session(kb, "s", user("Get it to run."), *steps, user("thanks"))
    kb.reflect("s")
    kb._consolidate_semantic()
    (pitfall,) = pitfalls(kb)
    assert pitfall["title"] == "`scripts/check.sh` fails with scripts/check.sh: Permission denied"
    assert str(pitfall["text"]).endswith("What helped: ran `chmod +x scripts/check.sh`.")
