"""Two ends at once: the second waits for the first; what another program wrote meanwhile is told in words."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import Run, clean_environment
from ending import ONE, make, open_at
from forking import command

from memory_kb.reports import Conflict, RunReport, StageReport
from memory_kb.store.session_log import SessionFiles


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return make(tmp_path)


def start(place: Path) -> subprocess.Popen[str]:
    """Begin to end a session in a process of its own."""
    end = command("--vault", place / "vault", "session", "end", ONE, "--outcome", "success")
    environment = clean_environment(place / "home") | {"MEMORY_KB_NOW": "2026-11-21T12:00:00Z"}
    return subprocess.Popen(end, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", env=environment)


@pytest.mark.slow
def test_the_second_end_waits_for_the_first(place: Path) -> None:
    with SessionFiles(place / "vault/memory/.memory-kb").ending(ONE):
        process = start(place)
        assert process.stderr
        assert process.stderr.readline() == "another end of this session is at work; waiting for it …\n"
        assert not list((place / "vault/memory/episodes").glob("*/*.md"))
    told, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "1 created" in told


@pytest.mark.slow
def test_of_two_ends_at_once_neither_has_a_conflict(place: Path) -> None:
    processes = [start(place), start(place)]
    told = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], told
    assert sorted(out.split()[0] for out, _ in told) in (
        ["ended", "unchanged"],
        ["unchanged", "unchanged"],
    )
    assert sum("1 created" in out for out, _ in told) == 1
    assert [line for _, errors in told for line in errors.splitlines() if "left" in line] == []


def test_a_stage_that_another_session_entered_meanwhile_is_no_conflict(place: Path) -> None:
    """The second looks which stage it is only when it may write, and goes on from there."""
    with open_at(place) as one, open_at(place) as other, ThreadPoolExecutor(1) as pool:
        with one.writer.lock():
            late = pool.submit(other.stage.set, "implementation")
            with pytest.raises(TimeoutError):
                late.result(timeout=0.5)
            assert one.stage.set("planning").run.changes
        report = late.result(timeout=60)
    assert (report.before, report.stage, report.run.conflicts) == ("planning", "implementation", ())
    assert (place / "vault/memory/.current-stage").read_text() == "implementation\n"


def test_a_preview_waits_for_nobody(place: Path, run: Run) -> None:
    with SessionFiles(place / "vault/memory/.memory-kb").ending(ONE):
        assert run("--vault", place / "vault", "session", "end", ONE, "--dry-run").returncode == 0


def test_a_conflict_is_reported_with_what_to_do(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from memory_kb.cli import run

    def stopped(*_: object, **__: object) -> StageReport:
        conflict = Conflict("memory/.current-stage", None, "Begins.", "memory/.current-stage is there already")
        return StageReport("unknown", "unknown", "", RunReport(None, "stage", (), (conflict,)))

    with open_at(place) as kb:
        kb.sessions.end(ONE)
    monkeypatch.setattr("memory_kb.learning.stages.Stages.detect", stopped)
    assert run(["--vault", str(place / "vault"), "--home", str(place / "home"), "session", "end", ONE]) == 6
    told = capsys.readouterr()
    assert "left alone: memory/.current-stage" in told.out
    assert "left: memory/.current-stage is there already" in told.err
    assert f"`memory-kb session end {ONE}` again does what is left" in told.err
