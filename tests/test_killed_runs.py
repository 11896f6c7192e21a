"""Runs killed at every step: each file is before or after, the log tells which, and the next run completes or strikes out."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import clean_environment
from killing import kill_at
from planning import ODD, ONE, make_vault, open_at, tree

from memory_kb import KnowledgeBase
from memory_kb.store.changes import Change, create_file, move, remove, set_fields, write_file

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork and POSIX signals")


def plan(kb: KnowledgeBase) -> list[Change]:
    many, one, gone, world = (
        kb.writer.read(path) for path in ("memory/many.md", "memory/one.md", "memory/gone.md", "~global/g.md")
    )
    return [
        set_fields(many, "a", {"status": "retired"}, "Over."),
        move(many, "memory/archive/2026-11/b.md", "Old.", "b"),
        move(one, "~global/rules/one.md", "Recurs.", "one"),
        create_file("memory/learnings/deep/new.md", "---\nid: new\n---\n" + "New. " * 2_000, "Seen.", "new"),
        remove(gone, "Gone."),
        set_fields(world, "g", {"importance": 0.9}, "Used."),
    ]


def make(place: Path) -> Path:
    files = {
        "memory/many.md": ODD,
        "memory/one.md": ONE,
        "memory/gone.md": b"---\nid: gone\n---\n",
        "~global/g.md": ONE.replace(b"one", b"g"),
    }
    make_vault(place, files)
    with open_at(place) as kb:
        kb.sync()
    return place


def do_plan(place: Path) -> None:
    with open_at(place) as kb:
        kb.writer.run("test", plan(kb))


def undo(place: Path) -> None:
    with open_at(place) as kb:
        kb.undo()


def notes_only(place: Path) -> dict[str, bytes | None]:
    """Return the notes of a vault; a killed process may leave temporary files and empty folders."""
    return {
        path: data
        for path, (_, data) in tree(place).items()
        if data is not None and not path.rpartition("/")[2].startswith(".memory-kb-")
    }


def put_back(saved: Path, place: Path) -> Path:
    """Make a place what it was; its machine folder counts as ours at the path that it was made at."""
    shutil.rmtree(place)
    return Path(shutil.copytree(saved, place))


@pytest.mark.slow
@pytest.mark.parametrize("verb", [do_plan, undo])
def test_a_run_killed_at_any_step_is_completed_or_never_was(tmp_path: Path, verb: Callable[[Path], None]) -> None:
    start = make(tmp_path / "place")
    if verb is undo:
        do_plan(start)
    before = notes_only(start)
    saved = shutil.copytree(start, tmp_path / "saved")
    verb(start)
    after = notes_only(start)
    step, half, ends = 0, 0, set()
    while True:
        step += 2 if verb is undo else 1
        place = put_back(saved, tmp_path / "place")
        if not kill_at(step, lambda place=place: verb(place)):  # type: ignore[misc]
            break
        found = notes_only(place)
        assert all(found.get(path) in (before.get(path), after.get(path)) for path in before | after | found)
        half += found not in (before, after)
        with open_at(place) as kb:
            told = kb.writer.killed_run()
            assert bool(told) or found in (before, after)
            repaired = kb.doctor(fix=True).repaired if step % 4 < 2 else kb.writer.recover()
            assert bool(told) == any("was killed" in line for line in repaired)
            assert kb.writer.killed_run() == ()
            assert notes_only(place) in (before, after)
            ends.add(notes_only(place) == after)
            runs = [run for run in kb.runs() if run.verb == ("undo" if verb is undo else "test")]
            assert bool(runs) == (notes_only(place) == after)
            if runs:
                kb.undo(runs[0].run)
                assert notes_only(place) == before
    assert half > 5
    assert ends == {True, False}


@pytest.mark.slow
def test_the_next_run_completes_a_killed_one_and_says_so(tmp_path: Path) -> None:
    saved = shutil.copytree(make(tmp_path / "place"), tmp_path / "saved")
    for step in range(1, 1_000):
        place = put_back(saved, tmp_path / "place")
        assert kill_at(step, lambda place=place: do_plan(place))  # type: ignore[misc]
        if (place / "home/rules/one.md").exists():
            break
    assert (place / "vault/memory/one.md").exists()
    with open_at(place) as kb:
        report = kb.writer.run("next", [create_file("memory/next.md", "Next.\n", "x")])
        assert len(report.notices) == 1
        assert "was killed while it wrote; it is completed" in report.notices[0]
        assert [run.verb for run in kb.runs()] == ["next", "test"]
        assert not (place / "vault/memory/one.md").exists()


@pytest.mark.slow
def test_what_a_person_wrote_between_the_kill_and_the_next_run_stays(tmp_path: Path) -> None:
    theirs = b"A person wrote this.\n"
    saved = shutil.copytree(make(tmp_path / "place"), tmp_path / "saved")
    for step in range(1, 1_000):
        place = put_back(saved, tmp_path / "place")
        assert kill_at(step, lambda place=place: do_plan(place))  # type: ignore[misc]
        if (place / "vault/memory/archive/2026-11/b.md").exists() and (
            place / "vault/memory/many.md"
        ).read_bytes() == ODD:
            break
    (place / "vault/memory/many.md").write_bytes(theirs)
    with open_at(place) as kb:
        (sentence,) = kb.writer.recover()
        assert sentence.endswith("it is completed, except memory/many.md, memory/gone.md")
        assert (place / "vault/memory/archive/2026-11/b.md").exists()
        assert (place / "home/rules/one.md").exists()
        assert kb.undo().conflicts == ()
    assert (place / "vault/memory/many.md").read_bytes() == theirs
    assert (place / "vault/memory/one.md").read_bytes() == ONE


def test_a_verb_that_plans_completes_a_killed_run_first_and_a_preview_does_not(tmp_path: Path) -> None:
    with open_at(make(tmp_path)) as kb:
        kb.writer.run("test", [set_fields(kb.writer.read("memory/one.md"), "one", {"a": 1}, "x")])
        log = kb.vault.machine / "log/decisions.jsonl"
        log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))
        kb.reinforce(dry_run=True)
        kb.capture("Always use UTC for timestamps.", dry_run=True)
        kb.compact(dry_run=True)
        assert kb.writer.killed_run()
        report = kb.capture("Always use UTC for timestamps.")
        assert (len(report.kept), kb.writer.killed_run()) == (1, ())
        assert "was killed while it wrote; it is completed" in report.run.notices[0]


def test_a_run_that_wrote_all_but_did_not_say_so_is_kept_though_a_person_wrote_since(tmp_path: Path) -> None:
    place = make(tmp_path)
    with open_at(place) as kb:
        kb.writer.run("test", [set_fields(kb.writer.read("memory/one.md"), "one", {"a": 1}, "x")])
        log = kb.vault.machine / "log/decisions.jsonl"
        log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))
        (place / "vault/memory/one.md").write_bytes(b"Theirs.\n")
        assert "completed, except memory/one.md" in kb.writer.recover()[0]
        assert (kb.runs(), kb.writer.killed_run(), kb.undo().run) == ((), (), None)
        assert b'"before": ""' in log.read_bytes()
    assert (place / "vault/memory/one.md").read_bytes() == b"Theirs.\n"


def kill_before_the_end(kb: KnowledgeBase) -> None:
    """Make the last run of the log one that was killed."""
    log = kb.vault.machine / "log/decisions.jsonl"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))


@pytest.mark.parametrize("source", ["memory/one.md", "memory/many.md"])
def test_no_entry_is_taken_out_where_a_person_wrote_to_the_file_that_it_was_to_be_in(
    source: str, tmp_path: Path
) -> None:
    place = make(tmp_path)
    file, target = place / "vault" / source, place / "vault/memory/gone.md"
    before = file.read_bytes()
    with open_at(place) as kb:
        entry_id = "one" if source == "memory/one.md" else "a"
        reading = [kb.writer.read(path) for path in (source, "memory/gone.md")]
        kb.writer.run("test", [remove(reading[0], "In there.", entry_id), write_file(reading[1], "Text.\n", "x")])
        kill_before_the_end(kb)
        file.write_bytes(before)
        target.write_bytes(b"Theirs.\n")
        assert kb.writer.recover()[0].endswith(f"it is completed, except memory/gone.md, {source}")
    assert (file.read_bytes(), target.read_bytes()) == (before, b"Theirs.\n")


def test_an_intent_torn_at_any_byte_is_struck_out(tmp_path: Path) -> None:
    place = make(tmp_path)
    with open_at(place) as kb:
        kb.writer.run("first", [create_file("memory/first.md", "1.\n", "x")])
        log = kb.vault.machine / "log/decisions.jsonl"
        kept = log.read_bytes()
        before = notes_only(place)
        kb.writer.run("test", plan(kb))
        intent = log.read_bytes()[len(kept) :].rpartition(b'{"run"')[0]
        kb.undo()
        rng = random.Random(0)
        for cut in [*sorted(rng.sample(range(1, len(intent) + 1), 12)), len(intent)]:
            log.write_bytes(kept + intent[:cut])
            kb.writer.recover()
            assert [run.verb for run in kb.runs()] == ["first"]
            assert notes_only(place) == before
            report = kb.writer.run("again", [create_file("memory/again.md", "2.\n", "x")])
            assert kb.undo(report.run).conflicts == ()


WRITER = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from planning import open_at
from memory_kb.store.changes import create_file, set_fields
from memory_kb.markdown.splice import find_entry
with open_at(Path(sys.argv[1])) as kb:
    def count(path):
        note = kb.writer.read(path)
        have = find_entry(note.text, path, sys.argv[3]).metadata.get("count", 0)
        return [set_fields(note, sys.argv[3], {"count": have + 1}, "Counted.")]
    done = 0
    while done < int(sys.argv[4]):
        plan = count("memory/many.md") + [create_file(f"memory/log/{os.getpid()}-{done}.md", "x\\n", "x")]
        report = kb.writer.run("count", plan, replan=count)
        done += any(change.action == "set" for change in report.changes)
"""


def start_writer(place: Path, entry: str, times: int) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", WRITER, str(place), str(Path(__file__).parent), entry, str(times)]
    return subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean_environment(place / "home")
    )


@pytest.mark.slow
def test_two_processes_that_write_one_file_lose_nothing(tmp_path: Path) -> None:
    place = make(tmp_path)
    writers = [start_writer(place, entry, 15) for entry in ("a", "b", "a")]
    for writer in writers:
        _, err = writer.communicate(timeout=120)
        assert (writer.returncode, err) == (0, "")
    text = (place / "vault/memory/many.md").read_text()
    assert (text.count("count: 30\n"), text.count("count: 15\n")) == (1, 1)
    with open_at(place) as kb:
        assert kb.runs()
        for run in kb.runs():
            kb.undo(run.run)
    assert (place / "vault/memory/many.md").read_bytes() == ODD
    assert not (place / "vault/memory/log").exists()


@pytest.mark.slow
def test_processes_killed_at_random_moments(tmp_path: Path) -> None:
    place = make(tmp_path)
    log = place / "vault/memory/.memory-kb/log/decisions.jsonl"
    rng = random.Random(1)
    killed = 0
    for _ in range(8):
        before = log.stat().st_size if log.exists() else 0
        writer = start_writer(place, "a", 10_000)
        until = time.monotonic() + 60
        while (log.stat().st_size if log.exists() else 0) == before and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.4 * rng.random())
        writer.kill()
        writer.communicate()
        killed += writer.returncode == -signal.SIGKILL
        for file in (place / "vault/memory").rglob("*.md"):
            assert file.read_bytes().startswith((b"x\n", b"---", b"\xef\xbb\xbf---")), file
    assert killed == 8
    with open_at(place) as kb:
        kb.writer.recover()
        kb.sync()
        for line in (kb.vault.machine / "log/decisions.jsonl").read_bytes().splitlines():
            assert json.loads(line)
        runs = kb.runs()
        assert runs
        for run in runs:
            assert kb.undo(run.run).conflicts == ()
    assert (place / "vault/memory/many.md").read_bytes() == ODD
