"""Runs of plans: what is logged, whose edit wins, and that a failure leaves everything as it was."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from planning import ODD, ONE, make_vault, open_at, tree

from memory_kb import KnowledgeBase
from memory_kb.errors import MemoryKBError, UnreadableInput
from memory_kb.store.changes import Change, create_file, move, set_fields, write_file
from memory_kb.store.file_edits import NoteText

if TYPE_CHECKING:
    from conftest import Run

OpenKB = Callable[..., KnowledgeBase]
MANY = NoteText("memory/many.md", ODD)
SINGLE = NoteText("memory/one.md", ONE)
posix = pytest.mark.skipif(os.name == "nt", reason="needs POSIX")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a vault of two odd files and a home."""
    make_vault(tmp_path, {MANY.path: ODD, SINGLE.path: ONE, "~global/g.md": ONE.replace(b"one", b"g")})
    return tmp_path


def plan_all(kb: KnowledgeBase) -> list[Change]:
    """A planner that touches everything in every way; it plans nothing where it is done."""
    if (kb.vault.home / "rules/one.md").exists():
        return []
    many, one, world = (kb.writer.read(path) for path in (MANY.path, SINGLE.path, "~global/g.md"))
    return [
        set_fields(many, "a", {"status": "retired"}, "Over."),
        move(many, "memory/archive/2026-11/b.md", "Old.", "b"),
        move(one, "~global/rules/one.md", "Recurs.", "one"),
        create_file("memory/learnings/deep/new.md", "---\nid: new\n---\nNew.\n", "Seen.", "new"),
        set_fields(world, "g", {"importance": 0.9}, "Used."),
    ]


def log_of(kb: KnowledgeBase) -> bytes:
    file = kb.vault.machine / "log/decisions.jsonl"
    return file.read_bytes() if file.exists() else b""


@posix
def test_what_moves_is_as_readable_as_it_was(place: Path) -> None:
    with open_at(place) as kb:
        for path in (MANY.path, SINGLE.path):
            kb.vault.resolve(path).chmod(0o600)
        kb.writer.run("test", plan_all(kb))
        moved = ("memory/archive/2026-11/b.md", "~global/rules/one.md")
        assert [kb.vault.resolve(path).stat().st_mode & 0o777 for path in moved] == [0o600, 0o600]


def test_a_run_is_logged_with_a_line_for_each_change(place: Path) -> None:
    with open_at(place) as kb:
        report = kb.writer.run("test", plan_all(kb))
        lines = [json.loads(line) for line in log_of(kb).splitlines()]
        assert kb.search("New", limit=1).hits[0].id == "new"
    changes = [line for line in lines if "splices" in line]
    assert {line["run"] for line in lines} == {report.run}
    assert [(line["action"], line["id"], line["reason"]) for line in changes] == [
        ("set", "a", "Over."),
        ("move", "b", "Old."),
        ("move", "one", "Recurs."),
        ("create", "new", "Seen."),
        ("set", "g", "Used."),
    ]
    assert changes[0]["splices"] == [
        {
            "path": MANY.path,
            "at": 23,
            "before": "status:   active   # why\r\n",
            "after": "status:   retired   # why\r\n",
        }
    ]
    assert (changes[0]["time"], changes[0]["verb"]) == ("2026-11-21T12:00:00Z", "test")
    assert lines[-1] == {"run": report.run, "end": "done", "left": []}


def test_running_a_planner_again_changes_and_records_nothing(place: Path) -> None:
    with open_at(place) as kb:
        kb.writer.run("test", plan_all(kb))
        before, log = tree(place), log_of(kb)
        again = kb.writer.run("test", plan_all(kb))
        assert (again.run, again.changes) == (None, ())
        note = kb.writer.read("~global/g.md")
        assert (
            kb.writer.run(
                "test", [set_fields(note, "g", {"importance": 0.9}, "Used."), write_file(note, note.text, "Same.")]
            ).run
            is None
        )
        assert (tree(place), log_of(kb)) == (before, log)


def test_a_dry_run_shows_a_diff_and_writes_nothing(place: Path) -> None:
    before = tree(place)
    with open_at(place) as kb:
        report = kb.writer.run("test", plan_all(kb), dry_run=True)
        assert (report.run, len(report.changes), log_of(kb)) == (None, 5, b"")
    assert "-status:   active   # why\r\n+status:   retired   # why\r\n" in report.diff
    assert "--- /dev/null\n+++ memory/learnings/deep/new.md\n@@ -0,0 +1,4 @@\n" in report.diff
    assert "\\ No newline at end of file" in report.diff
    assert tree(place) == before


def test_a_persons_edit_wins_and_the_rest_goes_on(place: Path) -> None:
    theirs = b"A person wrote this.\n"
    with open_at(place) as kb:
        plan = plan_all(kb)
        (place / "vault" / SINGLE.path).write_bytes(theirs)
        report = kb.writer.run("test", plan)
    assert [(conflict.path, conflict.id, conflict.code) for conflict in report.conflicts] == [
        (SINGLE.path, "one", "changed")
    ]
    assert len(report.changes) == 4
    assert (place / "vault" / SINGLE.path).read_bytes() == theirs
    assert not (place / "home/rules").exists()


def test_a_changed_file_is_planned_anew(place: Path) -> None:
    with open_at(place) as kb:
        plan = plan_all(kb)
        (place / "vault" / SINGLE.path).write_bytes(ONE + b"A person added this.\n")
        report = kb.writer.run(
            "test", plan, replan=lambda path: [change for change in plan_all(kb) if change.path == path]
        )
    assert (report.conflicts, len(report.changes)) == ((), 5)
    assert (place / "home/rules/one.md").read_bytes() == ONE + b"A person added this.\n"


def test_an_edit_at_the_last_moment_wins_too(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the comparison of the hashes and the writing there is time for somebody else."""
    from memory_kb.store.journal import Journal

    theirs = b"A person wrote this.\n"
    begin = Journal.begin

    def edit_and_begin(journal: Journal, *how: object) -> int:
        (place / "vault" / MANY.path).write_bytes(theirs)
        return begin(journal, *how)  # type: ignore[arg-type]

    monkeypatch.setattr(Journal, "begin", edit_and_begin)
    with open_at(place) as kb:
        report = kb.writer.run("test", plan_all(kb))
        assert [conflict.id for conflict in report.conflicts] == ["a", "b"]
        assert [change.id for change in report.changes] == ["one", "new", "g"]
        assert kb.runs()[0].files == (
            SINGLE.path,
            "~global/rules/one.md",
            "memory/learnings/deep/new.md",
            "~global/g.md",
        )
    assert (place / "vault" / MANY.path).read_bytes() == theirs
    assert not (place / "vault/memory/archive").exists()


def test_large_texts_are_kept_once_beside_the_log(place: Path) -> None:
    text = "---\nid: big\n---\n" + "word " * 2_000
    with open_at(place) as kb:
        kb.writer.run("test", [create_file("memory/big.md", text, "x")])
        kb.writer.run("test", [move(kb.writer.read("memory/big.md"), "memory/bigger.md", "x")])
        assert len(log_of(kb)) < 4_000
        assert [blob.read_text() for blob in (kb.vault.machine / "log/blobs").iterdir()] == [text]
        kb.undo()
        kb.undo()
    assert not (place / "vault/memory/big.md").exists()


@posix
@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="whoever runs this may write anywhere")
def test_a_locked_folder_leaves_everything_as_it_was(place: Path) -> None:
    before = tree(place)
    (place / "home").chmod(0o500)
    try:
        with open_at(place) as kb, pytest.raises(MemoryKBError, match="cannot be written"):
            kb.writer.run("test", plan_all(kb))
    finally:
        (place / "home").chmod(0o755)
    assert tree(place) == before


def test_a_folder_that_cannot_be_written_leaves_everything_as_it_was(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = os.access

    def refuse(path: Path, mode: int) -> bool:
        return ask(path, mode) and (".memory-kb" in str(path) or not str(path).startswith(str(place / "home")))

    before = tree(place)
    with open_at(place) as kb:
        plan = plan_all(kb)
        monkeypatch.setattr(os, "access", refuse)
        with pytest.raises(UnreadableInput, match=r"^~global/[a-z/.]* cannot be written: Permission denied$"):
            kb.writer.run("test", plan)
        assert log_of(kb) == b""
    assert tree(place) == before


@posix
@pytest.mark.parametrize(
    ("size", "limit", "message"),
    [
        pytest.param(9_000, 8_000, "memory/new/large.md cannot be written: File too large", id="note"),
        pytest.param(
            9, 500, "the log .*decisions.jsonl cannot be written: File too large; no note was changed", id="log"
        ),
        pytest.param(9, 10, "cannot be written: File too large", id="nothing"),
    ],
)
def test_a_full_disk_leaves_everything_as_it_was(place: Path, size: int, limit: int, message: str) -> None:
    import resource

    def fill(kb: KnowledgeBase) -> None:
        kb.sync()
        plan = [
            create_file("memory/new/small.md", "---\nid: s\n---\n", "x"),
            set_fields(kb.writer.read("memory/one.md"), "one", {"a": 1}, "x"),
            create_file("memory/new/large.md", f"---\nid: l\n---\n{'x' * size}", "x"),
        ]
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        with pytest.raises(UnreadableInput, match=message):
            kb.writer.run("test", plan)

    before = tree(place)
    child = os.fork()
    if not child:
        code = 1
        try:
            with open_at(place) as kb:
                fill(kb)
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert tree(place) == before
    with open_at(place) as kb:
        assert (kb.runs(), kb.writer.killed_run()) == ((), ())


@posix
def test_a_failure_while_writing_takes_back_what_was_written(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace, calls = os.replace, []

    def fail_once(source: str, target: str) -> None:
        calls.extend([target] if str(target).endswith(".md") else [])
        if len(calls) == 2:
            raise OSError(5, "Input/output error")
        replace(source, target)

    before = tree(place)
    with open_at(place) as kb:
        plan = plan_all(kb)
        monkeypatch.setattr(os, "replace", fail_once)
        with pytest.raises(UnreadableInput, match="Input/output error; everything is as it was"):
            kb.writer.run("test", plan)
        assert log_of(kb) == b""
    assert len(calls) > 2
    assert tree(place) == before


def test_dry_runs_of_learn_and_forget(run: Run, tmp_path: Path, place: Path) -> None:
    before = tree(place)
    learned = run("--vault", place / "vault", "learn", "Staging is reset.", "--dry-run")
    assert learned.returncode == 0
    assert "+Staging is reset.\n" in learned.stdout
    assert "would create memory/learnings/staging-is-reset" in learned.stderr
    forgotten = json.loads(run("--vault", place / "vault", "forget", "one", "--dry-run", "--json").stdout)
    assert (forgotten["id"], forgotten["action"], forgotten["dry_run"]) == ("one", "retired", True)
    assert forgotten["changes"] == [
        {"action": "set", "path": SINGLE.path, "id": "one", "reason": "Forgotten on request.", "to": None}
    ]
    assert "-status: active\n+status: retired\n" in forgotten["diff"]
    assert tree(place) == before


def test_a_learning_as_a_dry_run_in_a_new_home_makes_no_home(folder: Path, home: Path, open_kb: OpenKB) -> None:
    assert open_kb(folder).learn("Text.", scope="global", dry_run=True).action == "created"
    assert not home.exists()


def test_what_learn_and_forget_wrote_is_logged(folder: Path, open_kb: OpenKB) -> None:
    kb = open_kb(folder)
    learned = kb.learn("The walrus sleeps.")
    kb.learn("The walrus sleeps.")
    gone = kb.forget(learned.id)
    kb.forget(learned.id)
    assert [(run.verb, run.summary) for run in kb.runs()] == [
        ("forget", f"set fields of {learned.path}"),
        ("learn", f"set fields of {learned.path}"),
        ("learn", f"created {learned.path}"),
    ]
    assert gone.run
    assert gone.run.run == kb.runs()[0].run
