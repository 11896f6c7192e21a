"""Watching as a service: where it looks, what it costs, what it does without events."""

from __future__ import annotations

import errno
import os
import queue
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import watching
from conftest import Files, write_files
from watching import PATIENCE, Watching, eventually, save

from memory_kb import KnowledgeBase
from memory_kb.index.file_events import FileEvents, remote_kind
from memory_kb.index.sync import has_changed_files
from memory_kb.index.watch import Background
from memory_kb.model import Problem
from memory_kb.store.walk import walk, walk_region
from memory_kb.vault import find_vault

MakeVault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]

briskly = watching.briskly
pytestmark = pytest.mark.usefixtures("briskly")
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc, or at inotify")


# -- where it looks ------------------------------------------------------------------------


def test_a_region_is_what_a_walk_finds_there(vault: MakeVault, home: Path) -> None:
    task = "jobs/j/tasks/t"
    names = [
        "config.yaml",
        "a.md",
        "a/b.md",
        "a/CONTINUITY.md",
        "a b/deep/c.md",
        ".git/a.md",
        "drafts/a.md",
        "größe/日本.md",
        "x.md/y.md",
    ]
    names += [
        f"{task}/{name}" for name in ("MEMORY.md", "worktree/MEMORY.md", "worktree/README.md", "worktree/docs/a.md")
    ]
    others = ["MEMORY.md", "x.md", "../home/g.md", "../home/rules/g.md", "memory/node_modules/a.md"]
    folder = vault(dict.fromkeys([*others, *(f"memory/{name}" for name in names)], "x"))
    (folder / "memory/link").symlink_to("a")
    found = find_vault(folder, home, environ={}, cwd=folder)
    expected: list[Problem] = []
    found = found._replace(settings=found.settings._replace(ignore=("drafts", "node_modules")))
    files = list(walk(found, expected))
    problems: list[Problem] = []
    (top,) = walk_region(found, "", problems)
    assert top.path == "MEMORY.md"
    for file in files:
        assert list(walk_region(found, file.path, problems)) == [file]
    left_out = ("drafts/a.md", ".git/a.md", "node_modules/a.md", "link/b.md", "gone/a.md", f"{task}/worktree/docs/a.md")
    for name in (*left_out, "a.md/a.md", "x.md"):
        assert list(walk_region(found, f"memory/{name}", problems)) == []


def test_a_look_at_one_folder_leaves_doubts_about_others(
    vault: MakeVault, open_kb: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second save behind the same time is found by whoever compares everything, whatever was looked at between."""
    for name in ("_TICK", "_COARSE_TICK"):  # the second save here may come a while after the first
        monkeypatch.setattr(f"memory_kb.index.note_chunks.{name}", 60_000_000_000)
    folder = vault({"memory/a/a.md": "zebra\n", "memory/b/b.md": "x\n", "memory/config.yaml": ""})
    kb = open_kb(folder)
    for minutes in (60, 0):
        file, other = folder / "memory/a/a.md", folder / "memory/b/b.md"
        kb.sync()
        file.write_text("zebra\n")
        kb.sync()
        before = file.stat().st_mtime_ns
        other.write_text(f"after {minutes}\n")
        os.utime(other, (time.time() - 60 * minutes,) * 2)
        assert kb.index.index_written(["memory/b/b.md"]) == ()
        file.write_text("camel\n")
        os.utime(file, ns=(before, before))
        with kb.index.index.snapshot():
            assert has_changed_files(kb.vault, kb.index.index)
        assert [hit.path for hit in kb.search("camel").hits] == ["memory/a/a.md"]


def test_what_is_no_note_leads_to_no_comparison(vault: MakeVault, open_kb: Open) -> None:
    folder = vault({"memory/a.md": "zebra\n", "memory/config.yaml": "watch: {debounce: 0.1}\n", "memory/.git/x": ""})
    kb = open_kb(folder)
    changes: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    observer = FileEvents(kb.vault, changes.put)
    write_files(folder, {"memory/.git/x": "1", "memory/.memory-kb/x.md": "1", "memory/.a.md.swp": "1", "x.md": "1"})
    write_files(folder, {"memory/a.txt": "1"})
    (folder / "memory/a.md").read_text()
    with pytest.raises(queue.Empty):
        changes.get(timeout=0.5)
    (folder / "memory/a.md").write_text("camel\n")
    assert changes.get(timeout=PATIENCE) is None
    observer.close()


# -- what it costs -------------------------------------------------------------------------


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.slow
@LINUX
def test_descriptors_and_threads_do_not_grow_with_files(vault: MakeVault, open_kb: Open) -> None:
    folder = vault(
        {f"memory/{number % 100}/{number}.md": "zebra\n" for number in range(10_000)} | {"memory/config.yaml": ""}
    )
    kb = open_kb(folder)
    kb.sync()
    kb.close()
    before, threads = descriptors(), threading.active_count()
    with Watching(kb) as watching:
        assert descriptors() - before < 12
        assert threading.active_count() - threads <= 6
        save(folder / "memory/7/7.md", "camel\n")
        watching.finds("memory/7/7.md", word="camel")
        eventually(lambda: watching.batches() == [(0, 1, 0)], watching.batches)
        kb.close()
    eventually(lambda: descriptors() <= before and threading.active_count() == threads)


# -- without events ------------------------------------------------------------------------


def refuse(error: OSError) -> Callable[..., None]:
    def raise_it(*_: object, **__: object) -> None:
        raise error

    return raise_it


REFUSALS = [
    pytest.param("add_callback", errno.ENOSPC, "file events are not available (refused)", id="watches"),
    pytest.param("_create_inotify_fd", errno.EMFILE, "file events are not available (refused)", id="instances"),
    pytest.param("start", errno.EAGAIN, "file events are not available (refused)", id="threads"),
]


@LINUX
@pytest.mark.parametrize(("method", "code", "sentence"), REFUSALS)
def test_where_the_system_refuses_it_polls(
    vault: MakeVault, open_kb: Open, monkeypatch: pytest.MonkeyPatch, method: str, code: int, sentence: str
) -> None:
    monkeypatch.setattr(f"watchdog.observers.inotify_c.InotifyFD.{method}", refuse(OSError(code, "refused")))
    folder = vault({"memory/a.md": "zebra\n"})
    with Watching(open_kb(folder)) as watching:
        (folder / "memory/b.md").write_text("zebra\n")
        watching.finds("memory/a.md", "memory/b.md", word="zebra")
    assert len(watching.notices) == 1
    assert "1 file, polling because " in watching.notices[0]
    assert sentence in watching.notices[0]


def test_on_a_network_file_system_it_polls(vault: MakeVault, open_kb: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "memory_kb.index.file_events.remote_kind", lambda folder: "nfs4" if folder.name == "memory" else None
    )
    folder = vault({"memory/a.md": "zebra\n", "memory/config.yaml": ""})
    with Watching(open_kb(folder)) as watching:
        (folder / "memory/b.md").write_text("zebra\n")
        watching.finds("memory/a.md", "memory/b.md", word="zebra")
    reason = f"{folder}/memory is on nfs4, which does not announce changes"
    assert watching.notices == [f"watching {folder}: 1 file, polling because file events are not available ({reason})"]


@LINUX
def test_the_innermost_mount_says_whether_others_write_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = f"{tmp_path}/my notes".replace(" ", "\\040")
    lines = (
        "overlay / overlay rw 0 0",
        f"/run/host_mark/Users {place} fakeowner rw 0 0",
        f"/dev/vda1 {place}/own ext4 rw",
    )
    (tmp_path / "mounts").write_text("\n".join(lines))
    monkeypatch.setattr("memory_kb.index.file_events._MOUNTS", tmp_path / "mounts")
    folders = (tmp_path, tmp_path / "my notes/memory", tmp_path / "my notes/own/memory")
    assert [remote_kind(folder) for folder in folders] == [None, "fakeowner", None]


@pytest.mark.slow
@LINUX
def test_a_reader_of_events_that_dies_is_replaced(vault: MakeVault, open_kb: Open) -> None:
    folder = vault({"memory/a.md": "zebra\n"})
    with Watching(open_kb(folder)) as watching:
        from watchdog.observers.api import EventEmitter

        (reader,) = (thread for thread in threading.enumerate() if isinstance(thread, EventEmitter))
        reader.stop()
        reader.join()
        save(folder / "memory/b.md", "zebra\n")
        watching.finds("memory/a.md", "memory/b.md", word="zebra")
        save(folder / "memory/c.md", "camel\n")
        watching.finds("memory/c.md", word="camel")
    # What was saved before the next reader begins is found when everything is compared.
    start, found, events = (report.cause for report in watching.reports)
    assert (start, found in ("reopened", "events"), events) == ("start", True, "events")


class Deaf:
    """An observer that no event reaches, as on a file system that others write to."""

    def __init__(self, *_: object) -> None: ...

    def is_alive(self) -> bool:
        return True

    def close(self) -> None: ...


@pytest.mark.slow
def test_unannounced_changes_are_found(vault: MakeVault, open_kb: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory_kb.index.file_events.FileEvents", Deaf)
    folder = vault({"memory/a.md": "zebra\n", "memory/config.yaml": "watch: {reconcile_seconds: 0.5}\n"})
    with Watching(open_kb(folder)) as watching:
        for number in range(3):
            save(folder / f"memory/{number}.md", f"camel number{number}\n")
            watching.finds(f"memory/{number}.md", word=f"number{number}")
    assert [report.cause for report in watching.reports] == ["start", *["reconcile"] * 3]


@pytest.mark.slow
@LINUX
def test_after_lost_events_everything_is_looked_at(
    vault: MakeVault, open_kb: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    from watchdog.observers.inotify_c import InotifyConstants, InotifyEvent, InotifyFD

    folder = vault({"memory/a.md": "zebra\n"})
    lost = threading.Event()
    usual = InotifyFD.handle_event

    def lose(self: InotifyFD, event: InotifyEvent) -> None:
        usual(self, event if lost.is_set() else InotifyEvent(-1, InotifyConstants.IN_Q_OVERFLOW, 0, b""))  # type: ignore[arg-type]
        lost.set()

    monkeypatch.setattr(InotifyFD, "handle_event", lose)
    with Watching(open_kb(folder)) as watching:
        (folder / "memory/new").mkdir()
        save(folder / "memory/new/b.md", "zebra\n")
        watching.finds("memory/a.md", "memory/new/b.md", word="zebra")
        save(folder / "memory/new/c.md", "camel\n")
        watching.finds("memory/new/c.md", word="camel")
    assert [report.cause for report in watching.reports] == ["start", "events", "events"]
    assert len(watching.notices) == 1


# -- what follows a batch ------------------------------------------------------------------


def test_background_steps_are_taken_once_for_many_requests_and_end_when_stopped() -> None:
    begun, may_go_on, calls = threading.Event(), threading.Event(), []

    def step(stop: threading.Event) -> Iterator[str]:
        calls.append(stop)
        begun.set()
        may_go_on.wait(PATIENCE)
        yield f"call {len(calls)}"
        if len(calls) == 2:
            raise sqlite3.OperationalError("disk I/O error")

    said: list[str] = []
    work = Background([step], PATIENCE, said.append)
    work.start()
    assert begun.wait(PATIENCE)
    for _ in range(5):
        work.start()
    may_go_on.set()

    def has_failed() -> bool:
        work.report()
        return "disk I/O error" in said

    eventually(has_failed)
    assert (said, len(calls)) == (["call 1", "call 2", "disk I/O error"], 2)
    work.close()
    assert calls[0].is_set()
