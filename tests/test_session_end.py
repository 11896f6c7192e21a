"""What follows a session: it learns, counts and tidies, once; nothing that goes wrong costs anybody's text."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import clean_environment
from ending import NOTES, ONE, OTHER, SESSIONS, make, open_at
from killing import kill_at
from planning import Tree, tree
from support import PEAK
from watching import eventually

from memory_kb.errors import MemoryKBError
from memory_kb.learning.compaction import Compactor, CompactReport
from memory_kb.markdown.document import parse_document
from memory_kb.reports import SessionWritten
from memory_kb.store.file_edits import Staged
from memory_kb.store.logs import MaintenanceLog, log_shown
from memory_kb.store.session_events import Event

if TYPE_CHECKING:
    from conftest import Run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and POSIX signals")


def end(place: Path, session: str = ONE) -> SessionWritten:
    with open_at(place) as kb:
        return kb.sessions.end(session, outcome="success")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return make(tmp_path)


def notes_of(place: Path) -> Tree:
    """Return all notes; a killed process may leave temporary files, which `doctor --fix` sweeps up."""
    found = tree(place / "vault", place / "home") if (place / "home").exists() else tree(place / "vault")
    return {name: held for name, held in found.items() if not name.rpartition("/")[2].startswith(".memory-kb-")}


def test_a_session_becomes_an_episode_and_learnings_and_counts_what_it_used(place: Path) -> None:
    written = end(place)
    steps = {step.name: step for step in written.steps}
    assert list(steps) == ["episode", "capture", "credit", "merge", "maintain"]
    assert [step.message for step in written.steps if step.outcome == "failed"] == []
    vault = place / "vault"
    (episode,) = vault.glob("memory/**/episodes/*/*.md")
    assert f"session_id: {ONE}" in episode.read_text()
    used = (vault / "memory/learnings/used.md").read_text()
    assert "id: used # mine\n" in used
    assert "reinforcement_count:   3   # twice\n" in used
    assert (vault / "memory/learnings/people.md").read_bytes() == str(NOTES["memory/learnings/people.md"]).encode()
    assert (vault / "memory/.current-stage").read_text() == "implementation\n"
    statuses = sorted(
        entry.status
        for file in vault.glob("memory/**/*linter*.md")
        for entry in parse_document(file.read_text(), "x").entries
    )
    assert statuses in ([], ["archived", "compacted"])
    assert "Relevant Memories" in (vault / "memory/CONTINUITY.md").read_text()


def test_a_session_whose_job_is_no_name_of_a_folder_ends_like_others(place: Path) -> None:
    made = Event(type="tool_call", tool="Bash", args={"command": "make"}, ok=True)
    with open_at(place) as kb:
        kb.sessions.start("odd", job="feat/login", agent="coder")
        kb.sessions.append([Event(role="user", content="Build the project as it is."), made], session="odd")
        written = kb.sessions.end("odd", outcome="success")
        assert [(step.name, step.message) for step in written.steps if step.outcome == "failed"] == []
        assert kb.diary.list()[0].session_id == "odd"


@pytest.mark.parametrize("session", [log.stem for log in sorted(SESSIONS.glob("*.jsonl"))][::3])
def test_ending_it_twice_changes_nothing(place: Path, session: str) -> None:
    assert [step.message for step in end(place, session).steps if step.outcome == "failed"] == []
    before = notes_of(place)
    assert [step.name for step in end(place, session).steps if step.runs] == []
    assert notes_of(place) == before


def test_all_of_it_is_taken_back_together(place: Path) -> None:
    before = notes_of(place)
    assert any(step.runs for step in end(place).steps)
    with open_at(place) as kb:
        assert all(not report.conflicts for report in kb.undo_session(ONE))
    assert notes_of(place) == before


def test_the_maintenance_that_came_due_says_what_it_wrote(place: Path) -> None:
    (place / "vault/memory/config.yaml").write_text("reinforcement: {counts: shown}\n")
    with open_at(place) as kb:
        log_shown(kb.vault, "context", ["r1"])  # outside of any session, so that nothing but the maintenance counts it
    (step,) = [step for step in end(place).steps if step.name == "maintain"]
    assert "maintenance: reinforce: 1 counted" in step.message
    with open_at(place) as kb:
        assert {run.run for run in kb.runs(ONE) if run.verb == "reinforce"} & set(step.runs)
    assert "memory/rules/twice.md" in [change.path for change in step.changes]


@pytest.mark.parametrize("fails", [False, True])
def test_the_maintenance_repeats_nothing_and_notes_what_was_done(
    place: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    compact, calls = Compactor.compact, list[int]()

    def count(kb: Compactor, *, dry_run: bool = False) -> CompactReport:
        calls.append(len(calls))
        if fails and calls == [0]:
            raise MemoryKBError("the disk was full for a moment")
        return compact(kb, dry_run=dry_run)

    monkeypatch.setattr(Compactor, "compact", count)
    steps = {step.name: step for step in end(place).steps}
    assert len(calls) == 1
    assert (steps["merge"].outcome, "dedup" in steps["maintain"].message) == ("failed" if fails else "done", False)
    with open_at(place) as kb:
        assert not kb.is_maintenance_due()
        noted = MaintenanceLog(kb.vault.machine / "log").last().keys()
    assert noted >= {"semantic", "promote", "trim"}
    assert ("dedup" in noted) == (not fails)


def test_what_a_session_wrote_is_named_by_the_beginning_of_its_id(place: Path, run: Run) -> None:
    end(place)
    written = notes_of(place)
    at = ("--vault", place / "vault", "--home", place / "home")
    for unknown, said in (
        ("", "the end of 'session ' wrote nothing"),
        ("nope", "the end of 'session nope' wrote nothing"),
    ):
        done = run(*at, "undo", "--session", unknown)
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr
    listed = [run(*at, "undo", "--session", name, "--dry-run").stdout for name in (ONE, ONE[:14])]
    assert listed[0] == listed[1] != ""
    assert notes_of(place) == written
    assert run(*at, "undo", "--session", ONE[:14]).returncode == 0
    assert notes_of(place) != written
    assert "reverted already" in run(*at, "undo", "--session", ONE[:14]).stderr


def test_only_closing_leaves_the_rest_for_later(place: Path) -> None:
    before = notes_of(place)
    with open_at(place) as kb:
        kb.sessions.end(ONE, outcome="success", only_close=True)
    assert notes_of(place) == before
    assert any(step.runs for step in end(place).steps)


@pytest.mark.slow
def test_a_process_killed_at_any_point_is_completed_by_the_next(tmp_path: Path) -> None:
    whole = make(tmp_path / "whole")
    end(whole)
    wanted = notes_of(whole)
    step, deaths = 3, 0
    while True:
        place = make(tmp_path / f"killed{step}")
        if not kill_at(step, lambda place=place: end(place)):  # type: ignore[misc]
            break
        deaths += 1
        steps = end(place).steps
        assert [one.message for one in steps if one.outcome == "failed"] == []
        assert notes_of(place) == wanted, step
        shutil.rmtree(place)
        step = step * 6 // 5 + 2
    assert deaths > 8


@pytest.mark.slow
@pytest.mark.parametrize("call", ["link", "replace"])
def test_that_a_run_killed_before_one_of_its_notes_was_completed_is_reported(place: Path, call: str) -> None:
    assert kill_at(2, lambda: end(place), (call,))
    assert end(place).steps[0].name == "recovery"


def test_a_person_who_writes_meanwhile_loses_nothing(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = place / "vault/memory/learnings/used.md"
    stop, instant = threading.Event(), threading.Lock()
    saved: list[str] = []
    replace = Staged._replace

    def write() -> None:
        number = 0
        while not stop.wait(0.002):
            # What is appended in the instant between the last look at a file and its replacement goes to the old one.
            with instant, file.open("a") as stream:
                stream.write(f"Thought {number}.\n")
            saved.append(f"Thought {number}.\n")
            number += 1

    def replace_in_an_instant(staged: Staged) -> None:
        with instant:
            replace(staged)

    monkeypatch.setattr(Staged, "_replace", replace_in_an_instant)
    writer = threading.Thread(target=write)
    writer.start()
    try:
        end(place)
    finally:
        stop.set()
        writer.join()
    text = file.read_text()
    assert [line for line in saved if line not in text] == []
    assert parse_document(text, "used.md").problems == ()
    assert "id: used # mine\n" in text


def _end_in_process(place: str, session: str) -> None:
    end(Path(place), session)


@pytest.mark.slow
def test_two_sessions_that_end_at_once(place: Path) -> None:
    started = [
        multiprocessing.get_context("spawn").Process(target=_end_in_process, args=(str(place), one))
        for one in (ONE, OTHER)
    ]
    for process in started:
        process.start()
    for process in started:
        process.join(120)
    assert [process.exitcode for process in started] == [0, 0]
    episodes = [file.read_text() for file in (place / "vault").glob("memory/**/episodes/*/*.md")]
    assert sorted(one for one in (ONE, OTHER) for text in episodes if f"session_id: {one}\n" in text) == sorted(
        (ONE, OTHER)
    )
    for session in (ONE, OTHER):
        assert [step.message for step in end(place, session).steps if step.outcome == "failed"] == []
    before = notes_of(place)
    end(place)
    assert notes_of(place) == before


def test_a_full_disk_costs_no_text(tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk: writes fail in the middle, for the logs as well."""
    whole = make(tmp_path / "whole")
    end(whole)
    wanted = notes_of(whole)
    for limit in (300, 2_000, 9_000):
        place = make(tmp_path / f"full{limit}")
        before = notes_of(place)
        child = os.fork()
        if not child:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            try:
                end(place)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        after = notes_of(place)
        people = [name for name in before if name.endswith(("people.md", "INTENT.md", "config.yaml"))]
        assert all(after[name] == before[name] for name in people)
        assert not [
            name
            for name, (_, data) in after.items()
            if data is not None and name not in before and name.endswith(".md") and not data
        ]
        end(place)
        assert notes_of(place) == wanted, limit


def test_the_command_prints_a_table(place: Path, run: Run) -> None:
    told = run(
        "--vault",
        place / "vault",
        "session",
        "end",
        ONE[:20],
        "--outcome",
        "success",
        env={"MEMORY_KB_NOW": "2026-11-21T12:00:00Z"},
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout.splitlines()[0].startswith(("ended", "unchanged"))
    assert any(line.startswith("episode ") and "1 created" in line for line in told.stdout.splitlines())
    assert f"undo --session {ONE}" in told.stderr
    again = json.loads(
        run(
            "--vault", place / "vault", "session", "end", ONE, "--json", env={"MEMORY_KB_NOW": "2026-11-21T12:00:00Z"}
        ).stdout
    )
    assert [step["name"] for step in again["steps"] if step["runs"]] == []


def test_a_step_with_a_bug_does_not_stop_the_others(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> Iterator[Event]:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("memory_kb.episodes.service.Episodes.reflect", broken)
    steps = {step.name: step for step in end(place).steps}
    assert steps["episode"].outcome == "failed"
    assert "episodes: bug: ZeroDivisionError: oops" in steps["episode"].message
    assert steps["credit"].outcome == "done"


def test_consolidate_and_maintain(place: Path, run: Run) -> None:
    vault, env = place / "vault", {"MEMORY_KB_NOW": "2026-11-21T12:00:00Z"}
    before = notes_of(place)
    dry = run("--vault", vault, "consolidate", "--dry-run", env=env)
    assert dry.returncode == 0
    assert "+status: compacted" in dry.stdout or "compacted" in dry.stdout
    assert notes_of(place) == before
    assert run("--vault", vault, "consolidate", env=env).returncode == 0
    after = notes_of(place)
    assert after != before
    again = json.loads(run("--vault", vault, "consolidate", "--json", env=env).stdout)
    assert {step["outcome"] for step in again["steps"]} == {"nothing"}
    assert run("--vault", vault, "consolidate", "--stage", "lunch", env=env).returncode == 2
    first = json.loads(run("--vault", vault, "maintain", "--json", env=env).stdout)
    assert [step["message"] for step in first["steps"] if step["outcome"] == "failed"] == []
    assert "Nothing is due before 2026-11-28" in run("--vault", vault, "maintain", env=env).stderr
    assert len(json.loads(run("--vault", vault, "maintain", "--force", "--json", env=env).stdout)["steps"]) == len(
        first["steps"]
    )


@pytest.mark.slow
def test_a_watcher_does_the_maintenance_that_is_due_when_nothing_happens(place: Path) -> None:
    stop, told = threading.Event(), list[str]()
    (place / "vault/memory/config.yaml").write_text("watch: {reconcile_seconds: 0.4}\n")
    before = notes_of(place)
    with open_at(place) as kb:
        watcher = threading.Thread(target=kb.watch, kwargs={"on_notice": told.append, "stop": stop, "maintain": True})
        watcher.start()
        try:
            eventually(lambda: any(line.startswith("maintenance, dedup") for line in told), lambda: told)
        finally:
            stop.set()
            watcher.join()
    assert notes_of(place) != before
    with open_at(place) as kb:
        assert not kb.is_maintenance_due()


def test_what_was_made_is_named_and_that_nothing_was_learned_is_reported(folder: Path, run: Run) -> None:
    run("--vault", folder, "session", "append", "s1", "Remember that staging runs on port 8081.", "--role", "user")
    done = run("--vault", folder, "session", "end", "s1", "--outcome", "success")
    lines = done.stdout.splitlines()
    assert lines[0] == "ended s1  1 event, the last is number 2"
    (made,) = [line.split("+ ")[1] for line in lines if "+ " in line and "learnings/" in line]
    assert "Staging runs on port 8081" in (folder / made).read_text()


def write_transcript(file: Path, size: int) -> None:
    """Write a transcript of Claude Code with edits, checks that fail and pass, and a request every fifteen calls."""
    calls: tuple[tuple[str, dict[str, str], str], ...] = (
        (
            "Read",
            {"file_path": "src/queue.py"},
            "\n".join(f"{number}\tthe queue of the worker" for number in range(99)),
        ),
        ("Edit", {"file_path": "src/queue.py", "old_string": "wait " * 80, "new_string": "retry " * 80}, "Updated."),
        ("Bash", {"command": "pytest tests/test_queue.py -k {}"}, "Exit code 1\nAssertionError: {}"),
        ("Bash", {"command": "pytest tests/test_queue.py -q"}, "the log of the worker " * 120 + "\n3 passed in 0.2s"),
    )
    written = number = 0
    with file.open("w", encoding="utf-8") as out:
        while written < size:
            number += 1
            (tool, args, result), ts = (
                calls[number % 4],
                f"2026-03-01T{number // 3600 % 24:02}:{number // 60 % 60:02}:00.000Z",
            )
            args = {name: text.replace("{}", f"case{number}") for name, text in args.items()}
            block = {"type": "tool_use", "id": f"t{number}", "name": tool, "input": args}
            answer: dict[str, object] = {
                "type": "tool_result",
                "tool_use_id": f"t{number}",
                "content": result.replace("{}", str(number)),
            }
            answer["is_error"] = result.startswith("Exit")
            said: list[tuple[str, object]] = [("assistant", [block]), ("user", [answer])]
            for role, content in [("user", f"Fix queue {number}."), *said] if number % 15 == 1 else said:
                line = {
                    "type": role,
                    "sessionId": "big",
                    "timestamp": ts,
                    "message": {"role": role, "content": content},
                }
                written += out.write(json.dumps(line | {"uuid": f"{role}{number}{type(content)}"}) + "\n")


@pytest.mark.slow
def test_a_session_of_40_mb_ends_in_little_memory(tmp_path: Path) -> None:
    """The bound is three times what a quiet machine takes."""
    write_transcript(tmp_path / "big.jsonl", 40_000_000)
    code = (
        f"{PEAK}import sys; from memory_kb import KnowledgeBase\n"
        "with KnowledgeBase.open(sys.argv[1], sys.argv[2]) as kb:\n"
        "    entry = kb.learn('The queue of the worker needs a retry.')\n"
        "    (done,) = kb.sessions.import_(sys.argv[3])\n"
        "    kb.context('the queue of the worker', session='big')\n"
        "    steps = kb.sessions.end('big').steps\n"
        "    print(peak() // 1024, [one.outcome for one in steps].count('failed'))\n"
        "    print(kb.show(entry.id).metadata['reinforcement_count'])\n"
    )
    (tmp_path / "vault/memory").mkdir(parents=True)
    run = [sys.executable, "-c", code, str(tmp_path / "vault"), str(tmp_path / "home"), str(tmp_path / "big.jsonl")]
    done = subprocess.run(
        run, capture_output=True, text=True, env=clean_environment(tmp_path), timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    megabytes, failed, counted = done.stdout.split()
    assert (failed, counted) == ("0", "1")
    assert int(megabytes) < 200
