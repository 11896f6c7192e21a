"""An end of a session that could not do all of it says so, in its exit code too, and how the rest is done."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from ending import ONE, make, open_at

from memory_kb.cli import run as run_command
from memory_kb.errors import ProviderFailed, VaultBusy
from memory_kb.store.file_edits import Staged

if TYPE_CHECKING:
    from conftest import Run

AT_NOON = {"MEMORY_KB_NOW": "2026-11-21T12:00:00Z"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return make(tmp_path)


def test_what_cannot_be_written_is_reported_by_the_exit_code_and_done_the_next_time(place: Path, run: Run) -> None:
    in_the_way = place / "vault/memory/episodes"
    in_the_way.write_text("")
    command = ("--vault", place / "vault", "session", "end", ONE, "--outcome", "success")
    done = run(*command, env=AT_NOON)
    assert done.returncode == 4
    assert "episodes" in done.stdout and "cannot be written" in done.stdout
    assert (
        f"of 5 steps failed; once that is fixed, `memory-kb session end {ONE}` again does what is left.\n"
        in done.stderr
    )
    in_the_way.unlink()
    again = run(*command, env=AT_NOON)
    assert (again.returncode, "1 created" in again.stdout) == (0, True)
    assert "failed" not in again.stdout + again.stderr


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        pytest.param(VaultBusy("lock", 60), 6, "another memory-kb process", id="busy"),
        pytest.param(ProviderFailed("openai does not answer"), 5, "openai does not answer", id="provider"),
        pytest.param(
            FileNotFoundError(2, "No such file or directory", "/v/lock"),
            4,
            "/v/lock: No such file or directory",
            id="system",
        ),
        pytest.param(ZeroDivisionError("oops"), 1, "bug: ZeroDivisionError: oops", id="bug"),
    ],
)
def test_the_exit_code_is_that_of_the_error(
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    code: int,
    said: str,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("memory_kb.learning.capture.Captures.capture", fail)
    assert (
        run_command(["--vault", str(place / "vault"), "--home", str(place / "home"), "session", "end", ONE, "--json"])
        == code
    )
    (step,) = [step for step in json.loads(capsys.readouterr().out)["steps"] if step["outcome"] == "failed"]
    assert (step["name"], said in step["message"], step["exit_code"]) == ("capture", True, code)


def test_after_an_interrupt_ending_again_does_what_is_left(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("memory_kb.learning.capture.Captures.capture", interrupt)
        assert (
            run_command(["--vault", str(place / "vault"), "--home", str(place / "home"), "session", "end", ONE]) == 130
        )
    with open_at(place) as kb:
        assert kb.sessions.end(ONE).action == "unchanged"


def test_a_preview_that_is_interrupted_has_written_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("memory_kb.learning.capture.Captures.capture", interrupt)
    assert (
        run_command(
            ["--vault", str(place / "vault"), "--home", str(place / "home"), "session", "end", ONE, "--dry-run"]
        )
        == 130
    )
    assert "undo" not in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["session", "learn"])
def test_a_run_that_is_interrupted_is_settled_by_the_next(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    def interrupt(_: Staged) -> None:
        raise KeyboardInterrupt

    words = ["session", "end", ONE] if verb == "session" else ["learn", "Numbats eat termites."]
    where = ["--vault", str(place / "vault"), "--home", str(place / "home")]
    with monkeypatch.context() as patched:
        patched.setattr(Staged, "commit", interrupt)
        assert run_command([*where, *words]) == 130
    capsys.readouterr()
    assert run_command([*where, *words]) == 0
    assert "struck out" in "".join(capsys.readouterr())
