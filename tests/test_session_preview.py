"""The end of a session is shown before it is done: what is told is what would happen, and nothing is written."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from ending import ONE, make, open_at
from episodic import FakeLlm

from memory_kb.reports import SessionWritten

if TYPE_CHECKING:
    from conftest import Run


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return make(tmp_path)


def preview(place: Path, session: str = ONE, **how: str) -> SessionWritten:
    with open_at(place) as kb:
        return kb.sessions.end(session, dry_run=True, **how)  # type: ignore[arg-type]


def everything(place: Path) -> dict[str, bytes]:
    """Return all files but what reading keeps of the notes, and the empty ones that locks are."""
    files = (file for file in place.rglob("*") if file.is_file() and file.stat().st_size)
    files = (file for file in files if ".db" not in file.name and file.parent.name != "lint")
    return {file.relative_to(place).as_posix(): file.read_bytes() for file in files}


def test_nothing_is_written_and_the_session_stays_open(place: Path) -> None:
    before = everything(place)
    done = preview(place, outcome="success", summary="It went well.")
    assert everything(place) == before
    assert (done.action, done.written) == ("ended", 0)
    assert [step.message for step in done.steps if step.outcome == "failed"] == []
    assert all(not step.runs for step in done.steps)
    assert any(step.diff for step in done.steps)


def test_what_is_reported_is_what_happens(place: Path) -> None:
    told = {step.name: step for step in preview(place, outcome="failure").steps}
    with open_at(place) as kb:
        real = {step.name: step for step in kb.sessions.end(ONE, outcome="failure").steps}
    assert list(real) == list(told)
    for name in ("episode", "capture"):
        assert [change.path for change in told[name].changes] == [change.path for change in real[name].changes]
        assert told[name].outcome == real[name].outcome
    (episode,) = (place / "vault").glob("memory/**/episodes/*/*.md")
    shown = "".join(
        line[1:] + "\n"
        for line in next(part for part in told["episode"].diff.split("--- ") if "/episodes/" in part).splitlines()
        if line.startswith("+") and not line.startswith("+++")
    )
    assert shown == episode.read_text()


def test_no_entry_is_made_twice(place: Path) -> None:
    steps = preview(place, outcome="success").steps
    made = Counter(change.path for step in steps for change in step.changes if change.action == "create")
    assert made
    assert set(made.values()) == {1}


def test_no_model_is_asked(place: Path) -> None:
    llm = FakeLlm({})
    with open_at(place) as kb:
        settings = kb.vault.settings._replace(llm=kb.vault.settings.llm._replace(provider="openai"))
        kb.vault = kb.vault._replace(settings=settings)
        kb.models.__dict__["llm"] = llm
        kb.sessions.end(ONE, outcome="success", dry_run=True)
        assert llm.asked == []
        assert kb.vault.settings.llm.provider == "openai"


def test_only_closing_and_a_second_word_are_previewed(place: Path) -> None:
    with open_at(place) as kb:
        assert kb.sessions.end(ONE, outcome="success", only_close=True, dry_run=True).steps == ()
        kb.sessions.end(ONE, outcome="success")
    before = everything(place)
    done = preview(place, outcome="failure")
    assert done.action == "ended"
    assert {"-outcome: success", "+outcome: failure"} <= set("".join(step.diff for step in done.steps).splitlines())
    again = preview(place, outcome="success")
    assert (again.action, [change for step in again.steps for change in step.changes]) == ("unchanged", [])
    assert everything(place) == before


def test_the_command(place: Path, run: Run) -> None:
    at = ("--vault", place / "vault", "--home", place / "home", "session", "end", ONE)
    before = everything(place)
    done = run(*at, "--outcome", "success", "--dry-run")
    assert done.returncode == 0
    assert f"{ONE} would be ended." in done.stderr
    assert "would be done" in done.stdout
    assert "+++ memory/" in done.stdout
    answer = json.loads(run(*at, "--dry-run", "--json").stdout)
    assert answer["dry_run"] is True
    assert {step["name"] for step in answer["steps"]} >= {"episode", "capture", "maintain"}
    assert any(step["diff"] for step in answer["steps"])
    assert everything(place) == before
