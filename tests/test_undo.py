"""Undo: every byte comes back, what a person wrote since stays, and undo can be undone."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from planning import ODD, ONE, Scene, make_vault, open_at, scenes, tree

from memory_kb.errors import UnknownRun
from memory_kb.index.database import explain_unusable
from memory_kb.store.changes import create_file, move, remove, set_fields

if TYPE_CHECKING:
    from conftest import Run

MANY, SINGLE = "memory/many.md", "memory/one.md"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a vault of two odd files and a home."""
    make_vault(tmp_path, {MANY: ODD, SINGLE: ONE})
    return tmp_path


@pytest.mark.slow
@given(scenes())
def test_undo_restores_every_byte_and_undoing_that_too(scene: Scene) -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        make_vault(place, scene.files)
        (place / "home").mkdir(exist_ok=True)
        with open_at(place) as kb:
            before = tree(place)
            done = kb.writer.run("test", scene.plan)
            after = tree(place)
            assert (done.run is None) == (before == after)
            undone = kb.undo()
            assert (undone.run is None) == (done.run is None)
            assert undone.conflicts == ()
            if done.run is None:
                return
            assert tree(place) == before
            assert kb.undo(undone.run).conflicts == ()
            assert tree(place) == after
            assert kb.undo().conflicts == ()
            assert tree(place) == before
            assert kb.undo().run is None


def test_each_undo_goes_one_run_further_back(place: Path) -> None:
    states = [tree(place)]
    with open_at(place) as kb:
        for number in range(3):
            kb.writer.run(f"step{number}", [set_fields(kb.writer.read(SINGLE), "one", {"count": number}, "Counted.")])
            states.append(tree(place))
        for state in reversed(states[:-1]):
            kb.undo()
            assert tree(place) == state
        assert kb.undo().run is None
        assert [run.verb for run in kb.runs()] == ["undo"] * 3 + ["step2", "step1", "step0"]
        kb.writer.run("more", [set_fields(kb.writer.read(SINGLE), "one", {"count": 9}, "Counted.")])
        kb.undo()
        assert tree(place) == states[0]


def test_a_named_run_is_taken_back_whatever_came_after(place: Path) -> None:
    with open_at(place) as kb:
        first = kb.writer.run("first", [set_fields(kb.writer.read(SINGLE), "one", {"status": "retired"}, "Over.")])
        kb.writer.run("second", [remove(kb.writer.read(MANY), "Not needed.")])
        assert first.run
        assert kb.undo(first.run[:5]).conflicts == ()
        assert (place / "vault" / SINGLE).read_bytes() == ONE
        assert not (place / "vault" / MANY).exists()
        assert kb.undo(first.run).run is None
        assert kb.undo().run
        assert (place / "vault" / MANY).read_bytes() == ODD


def test_a_file_that_a_later_run_changed_is_left(place: Path) -> None:
    with open_at(place) as kb:
        first = kb.writer.run("first", [set_fields(kb.writer.read(SINGLE), "one", {"a": 1}, "x")])
        kb.writer.run("second", [set_fields(kb.writer.read(SINGLE), "one", {"b": 1}, "x")])
        report = kb.undo(first.run)
        assert report.run is None
        assert [conflict.message for conflict in report.conflicts] == [
            f"{SINGLE} was edited since; it is left as it is"
        ]


def test_what_a_person_has_edited_since_is_left(place: Path) -> None:
    theirs = b"A person wrote this.\n"
    with open_at(place) as kb:
        kb.writer.run(
            "test",
            [
                set_fields(kb.writer.read(SINGLE), "one", {"a": 1}, "x"),
                set_fields(kb.writer.read(MANY), "b", {"a": 1}, "x"),
            ],
        )
        (place / "vault" / SINGLE).write_bytes(theirs)
        report = kb.undo()
        assert [conflict.message for conflict in report.conflicts] == [
            f"{SINGLE} was edited since; it is left as it is"
        ]
        assert (place / "vault" / SINGLE).read_bytes() == theirs
        assert (place / "vault" / MANY).read_bytes() == ODD


def test_an_edit_that_an_undo_brought_back_is_a_person_s(place: Path) -> None:
    theirs = b"A person wrote this.\n"
    with open_at(place) as kb:
        kb.writer.run("first", [create_file("memory/new.md", "Numbats.\n", "x")])
        (place / "vault/memory/new.md").write_bytes(theirs)
        for _ in range(2):
            kb.writer.run("later", [remove(kb.writer.read("memory/new.md"), "x")])
            kb.undo()
        report = kb.undo()
        assert [conflict.message for conflict in report.conflicts] == [
            "memory/new.md was edited since; it is left as it is"
        ]
        assert (place / "vault/memory/new.md").read_bytes() == theirs


def test_a_moved_file_that_was_edited_stays_where_it_is(place: Path) -> None:
    with open_at(place) as kb:
        kb.writer.run(
            "test",
            [
                move(kb.writer.read(SINGLE), "memory/archive/one.md", "Old."),
                set_fields(kb.writer.read(MANY), "b", {"a": 1}, "x"),
            ],
        )
        moved = place / "vault/memory/archive/one.md"
        moved.write_bytes(ONE + b"More.\n")
        report = kb.undo()
        assert {conflict.path for conflict in report.conflicts} == {SINGLE, "memory/archive/one.md"}
        assert moved.read_bytes() == ONE + b"More.\n"
        assert not (place / "vault" / SINGLE).exists()
        assert (place / "vault" / MANY).read_bytes() == ODD


def test_a_name_that_is_taken_again_is_left(place: Path) -> None:
    with open_at(place) as kb:
        kb.writer.run("test", [remove(kb.writer.read(SINGLE), "x")])
        (place / "vault" / SINGLE).write_bytes(b"New and theirs.\n")
        assert len(kb.undo().conflicts) == 1
        assert (place / "vault" / SINGLE).read_bytes() == b"New and theirs.\n"


def test_folders_it_made_go_unless_something_else_is_in_them(place: Path) -> None:
    with open_at(place) as kb:
        plan = [
            create_file("memory/x/y/a.md", "A.\n", "x"),
            create_file("memory/x/b.md", "B.\n", "x"),
            create_file("memory/z/c.md", "C.\n", "x"),
        ]
        kb.writer.run("test", plan)
        (place / "vault/memory/z/theirs.txt").write_bytes(b"")
        kb.undo()
    assert not (place / "vault/memory/x").exists()
    assert [file.name for file in (place / "vault/memory/z").iterdir()] == ["theirs.txt"]


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX modes")
def test_modes_come_back(place: Path) -> None:
    (place / "vault" / SINGLE).chmod(0o640)
    (place / "vault" / MANY).chmod(0o600)
    before = tree(place)
    with open_at(place) as kb:
        kb.writer.run("test", [move(kb.writer.read(SINGLE), "memory/n.md", "x"), remove(kb.writer.read(MANY), "x")])
        assert (place / "vault/memory/n.md").stat().st_mode & 0o777 == 0o640
        kb.undo()
    assert tree(place) == before


def test_a_run_that_is_not_there(place: Path) -> None:
    with open_at(place) as kb:
        for number in range(20):
            kb.writer.run("test", [set_fields(kb.writer.read(SINGLE), "one", {"n": number}, "x")])
        for wanted in ("zzz", ""):
            with pytest.raises(UnknownRun):
                kb.undo(wanted)
        crowded = next(
            letter for letter in "0123456789abcdef" if sum(run.run.startswith(letter) for run in kb.runs()) > 1
        )
        with pytest.raises(UnknownRun, match="beginning of"):
            kb.undo(crowded)


def test_a_log_with_damaged_lines_still_yields_the_rest(place: Path) -> None:
    with open_at(place) as kb:
        kb.writer.run("test", [set_fields(kb.writer.read(SINGLE), "one", {"n": 1}, "x")])
        log = kb.vault.machine / "log/decisions.jsonl"
        log.write_bytes(b"\xff\xfe not json\n[1]\n" + log.read_bytes() + b"{torn")
        assert kb.writer.killed_run() == ()
        kb.writer.run("test", [set_fields(kb.writer.read(SINGLE), "one", {"n": 2}, "x")])
        kb.undo()
        kb.undo()
    assert (place / "vault" / SINGLE).read_bytes() == ONE


@pytest.mark.parametrize(
    ("mark", "key", "value"),
    [
        ("files", "run", ["x"]),
        ("files", "time", None),
        ("files", "undoes", [1]),
        ("splices", "action", []),
        ("splices", "id", ["x"]),
        ("splices", "splices", [{"path": SINGLE}]),
        ("splices", "splices", 3),
        ("end", "left", None),
        ("end", "left", 3),
        ("end", "run", [1]),
    ],
)
def test_a_line_of_the_log_with_values_of_other_types_is_passed_over(
    place: Path, mark: str, key: str, value: object
) -> None:
    with open_at(place) as kb:
        kb.writer.run(
            "test",
            [set_fields(kb.writer.read(SINGLE), "one", {"n": 1}, "x"), create_file("memory/new.md", "x", "y", "z")],
        )
        log = kb.vault.machine / "log/decisions.jsonl"
        lines = [json.loads(line) for line in log.read_bytes().splitlines()]
        wrong = next(line for line in lines if mark in line) | {key: value}
        log.write_bytes(b"".join(json.dumps(line).encode() + b"\n" for line in [*lines, wrong]))
        kb.runs()
        kb.writer.run("more", [create_file("memory/more.md", "More.", "x", "m")])
        kb.undo()
        assert set(kb.writer.journal.creations()) >= {"m"}
        assert kb.writer.journal.trim("9999") > 0
        kb.forget("one", purge=True)


def test_the_command(run: Run, place: Path) -> None:
    vault = ("--vault", place / "vault")
    assert run(*vault, "undo").stderr == "There is nothing to revert.\n"
    assert run(*vault, "undo", "--list").stderr == "No run has changed anything yet.\n"
    before = tree(place)
    assert run(*vault, "forget", "one").returncode == 0
    shown = run(*vault, "undo", "--dry-run")
    assert "-status: retired\n+status: active\n" in shown.stdout
    assert shown.returncode == 0
    (listed,) = json.loads(run(*vault, "undo", "--list", "--json").stdout)["runs"]
    assert (listed["verb"], listed["summary"], listed["undone_by"]) == ("forget", f"set fields of {SINGLE}", None)
    done = run(*vault, "undo")
    assert (done.returncode, done.stdout) == (0, f"restore {SINGLE}: Reverted.\n")
    assert tree(place) == before
    assert f"(reverted by {done.stderr.split()[2][:8]})" in run(*vault, "undo", "--list").stdout
    assert run(*vault, "undo", "nothing").returncode == 2


def test_an_index_that_cannot_be_used_does_not_hide_what_was_taken_back(run: Run, place: Path) -> None:
    vault = ("--vault", place / "vault")
    before = tree(place)
    for entry in ("one", "a"):
        assert run(*vault, "forget", entry).returncode == 0
    machine = place / "vault/memory/.memory-kb"
    for file in machine.glob(".memory.db*"):
        file.unlink()
    (machine / ".memory.db").mkdir()
    done = run(*vault, "undo")
    assert (done.returncode, done.stdout) == (0, f"restore {MANY}: Reverted.\n")
    assert "the index" in done.stderr and "cannot be opened" in done.stderr
    assert "the notes themselves are written" in done.stderr
    as_json = run(*vault, "undo", "--json")
    assert (as_json.returncode, json.loads(as_json.stdout)["changes"][0]["path"]) == (0, SINGLE)
    assert "cannot be opened" in as_json.stderr
    assert {name: held for name, held in tree(place).items() if ".memory-kb" not in name} == {
        name: held for name, held in before.items() if ".memory-kb" not in name
    }


def test_several_runs_are_taken_back_one_after_the_other(run: Run, place: Path) -> None:
    vault = ("--vault", place / "vault")
    for entry in ("one", "a", "b"):
        run(*vault, "forget", entry)
    runs = [one["run"] for one in json.loads(run(*vault, "undo", "--list", "--json").stdout)["runs"]]
    after = (place / "vault" / MANY).read_bytes()
    preview = run(*vault, "undo", *runs[:2], "--dry-run")
    assert (preview.returncode, "edited since" in preview.stdout + preview.stderr) == (0, False)
    wrong = run(*vault, "undo", runs[0], "no-such-run")
    assert (wrong.returncode, (place / "vault" / MANY).read_bytes()) == (2, after)
    done = run(*vault, "undo", *runs[:2])
    assert (done.returncode, done.stdout) == (0, f"restore {MANY}: Reverted.\n" * 2)
    assert (place / "vault" / MANY).read_bytes() == ODD
    for hint in reversed(done.stderr.splitlines()):
        again = run(*vault, *hint.split("`")[1].split()[1:])
    assert (again.returncode, (place / "vault" / MANY).read_bytes()) == (0, after)


@pytest.mark.parametrize(("free", "said"), [(4_096, "the disk is full (disk I/O error)"), (10**9, "disk I/O error")])
def test_a_full_disk_is_called_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, said: str) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    reason, hint = explain_unusable(sqlite3.OperationalError("disk I/O error"), tmp_path / ".memory.db")
    assert reason == said
    assert ("make room" in hint, "permissions" in hint) == (free < 10_000, free > 10_000)


def test_the_command_says_what_it_left(run: Run, place: Path) -> None:
    vault = ("--vault", place / "vault")
    run(*vault, "forget", "one")
    (place / "vault" / SINGLE).write_bytes(ONE + b"More.\n")
    done = run(*vault, "undo")
    assert (done.returncode, done.stdout, done.stderr) == (
        6,
        "",
        f"left: {SINGLE} was edited since; it is left as it is\n",
    )
    report = run(*vault, "undo", "--json")
    assert report.returncode == 6
    assert json.loads(report.stdout)["conflicts"][0]["path"] == SINGLE
