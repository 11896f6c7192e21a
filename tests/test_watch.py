"""Watching: whatever people, editors, git and the system do to the files, the index follows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import watching
from conftest import Files, write_files
from support import assert_equals_rebuild
from watching import PATIENCE, Watching, eventually, save

from memory_kb import KnowledgeBase
from memory_kb.errors import InvalidSettings
from memory_kb.index.vault_index import QUESTIONS
from memory_kb.vault import hold_lock

MakeVault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]

briskly = watching.briskly
pytestmark = pytest.mark.usefixtures("briskly")
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc, or at inotify")


@pytest.fixture(params=["events", "polling"])
def means(request: pytest.FixtureRequest) -> bool | None:
    """Both ways of noticing changes, as the `poll` to watch with."""
    return True if request.param == "polling" else None


# -- one save ------------------------------------------------------------------------------


def truncate(file: Path, text: str) -> None:
    """As VS Code does."""
    with file.open("w") as stream:
        stream.write(text[:3])
        stream.flush()
        time.sleep(0.02)
        stream.write(text[3:])


def replace(file: Path, text: str) -> None:
    """As Obsidian, and most others."""
    beside = file.with_name(f"{file.name}.tmp.1234")
    beside.write_text(text)
    os.replace(beside, file)


def syncthing(file: Path, text: str) -> None:
    beside = file.with_name(f".syncthing.{file.name}.tmp")
    beside.write_text(text)
    os.utime(beside, (1_600_000_000, 1_600_000_000))
    os.replace(beside, file)


def vim(file: Path, text: str) -> None:
    """Swap file, probe of the folder, backup by rename, new file under the old name."""
    swap, backup = file.with_name(f".{file.name}.swp"), file.with_name(f"{file.name}~")
    swap.write_bytes(b"b0VIM" * 800)
    (file.parent / "4913").touch()
    (file.parent / "4913").unlink()
    os.rename(file, backup)
    file.write_text(text)
    backup.unlink()
    swap.unlink()


def sed(file: Path, text: str) -> None:
    subprocess.run(["sed", "-i", f"s/.*/{text.strip()}/", str(file)], check=True)


def recreate(file: Path, text: str) -> None:
    file.unlink()
    time.sleep(0.05)
    file.write_text(text)


def by_rename(file: Path, text: str) -> None:
    away = file.parent.parent / "away.md"
    os.rename(file, away)
    away.write_text(text)
    os.rename(away, file)


SAVES = [Path.write_text, truncate, replace, syncthing, vim, sed, recreate, by_rename]


@pytest.mark.slow
@pytest.mark.parametrize("save", [pytest.param(save, id=save.__name__) for save in SAVES])
def test_a_saved_note_is_found(
    vault: MakeVault, open_kb: Open, save: Callable[[Path, str], None], means: bool | None, tmp_path: Path
) -> None:
    folder = vault({"memory/learnings/a.md": "zebra\n", "memory/learnings/b.md": "zebra\n", "memory/MEMORY.md": "x\n"})
    kb = open_kb(folder)
    with Watching(kb, poll=means) as watching:
        save(folder / "memory/learnings/a.md", "camel\n")
        watching.finds("memory/learnings/a.md", word="camel")
        watching.finds("memory/learnings/b.md", word="zebra")
        save(folder / "memory/learnings/a.md", "otter\n")
        watching.finds("memory/learnings/a.md", word="otter")
        watching.finds(word="camel")
    assert all(batch[0] == batch[2] for batch in watching.batches()), "what vanishes for a moment comes back"
    assert_equals_rebuild(kb, tmp_path / "fresh", ("zebra", "otter"))


# -- folders and everything ----------------------------------------------------------------


def edit_everything(folder: Path, home: Path) -> None:
    """Do to files and folders what can be done to them."""
    memory = folder / "memory"
    write_files(
        folder, {"memory/new/deep/er/a.md": "zebra a\n", "MEMORY.md": "zebra top\n", "memory/x.md/y.md": "zebra y\n"}
    )
    write_files(
        folder.parent, {"outside/in.md": "zebra in\n", "outside/deep/in.md": "zebra in\n", "home/g.md": "zebra g\n"}
    )
    os.rename(folder.parent / "outside", memory / "moved-in")
    os.rename(memory / "out", folder.parent / "moved-out")
    os.rename(memory / "old", memory / "renamed")
    (memory / "renamed/b.md").write_text("zebra renamed\n")
    shutil.rmtree(memory / "again")
    write_files(folder, {"memory/again/b.md": "zebra again\n"})
    (folder.parent / "moved-out/a.md").write_text("zebra unseen\n")
    (memory / "file.md").unlink()
    write_files(
        folder,
        {
            "memory/file.md/inner.md": "zebra inner\n",
            "memory/.hidden/a.md": "zebra\n",
            "memory/node_modules/a.md": "zebra\n",
        },
    )
    os.rename(memory / "shown", memory / ".not-shown")
    os.rename(memory / ".dark", memory / "light")


START: Files = {"memory/config.yaml": ""} | {
    f"memory/{name}": "x\n"
    for name in ("out/a.md", "old/a.md", "old/deep/a.md", "again/a.md", "file.md", "shown/a.md", ".dark/a.md", "q.md")
}
FOUND = ["MEMORY.md", "~global/g.md"] + [
    f"memory/{name}"
    for name in (
        "again/b.md",
        "file.md/inner.md",
        "moved-in/deep/in.md",
        "moved-in/in.md",
        "new/deep/er/a.md",
        "renamed/b.md",
        "x.md/y.md",
    )
]


@pytest.mark.slow
@pytest.mark.parametrize("has_home", [False, True], ids=["home appears", "home is there"])
def test_whatever_happens_to_folders_is_followed(
    vault: MakeVault, open_kb: Open, home: Path, means: bool | None, has_home: bool, tmp_path: Path
) -> None:
    folder = vault(START)
    if has_home:
        home.mkdir()
    kb = open_kb(folder)
    with Watching(kb, poll=means) as watching:
        edit_everything(folder, home)
        watching.finds(*FOUND, word="zebra")
        for name in ("memory/renamed/b.md", "memory/moved-in/deep/in.md", "memory/light/a.md"):
            (folder / name).write_text("camel\n")
        watching.finds("memory/light/a.md", "memory/moved-in/deep/in.md", "memory/renamed/b.md", word="camel")
        eventually(lambda: not kb.status().pending)
        (folder / "memory/learnings").mkdir()
        edited = [folder / f"memory/learnings/{number}.md" for number in range(30)]
        for file in edited:
            file.write_text("otter\n")
        watching.finds(*(f"memory/learnings/{file.name}" for file in edited), word="otter")
        shutil.rmtree(folder / "memory/learnings")
        watching.finds(word="otter")
    assert_equals_rebuild(kb, tmp_path / "fresh", ("zebra", "camel"))


def test_the_note_beside_the_home_is_watched(vault: MakeVault, tmp_path: Path) -> None:
    folder = vault({"a.md": "x\n"})
    with KnowledgeBase.open(folder, environ={"HOME": str(tmp_path)}) as kb, Watching(kb) as watching:
        (tmp_path / "MEMORY.md").write_text("zebra\n")
        watching.finds("~global/~/MEMORY.md", word="zebra")


# -- batches -------------------------------------------------------------------------------


@pytest.mark.slow
@LINUX
def test_a_checkout_is_one_batch(vault: MakeVault, open_kb: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory_kb.index.watch._BURST_SECONDS", PATIENCE)
    folder = vault({"memory/config.yaml": "watch: {debounce: 10}\n"})
    kb = open_kb(folder)
    with Watching(kb) as watching:
        write_files(folder, {f"memory/{number % 30}/{number}.md": "zebra\n" for number in range(900)})
        # A search that asks ends the wait for a pause.
        (kb.vault.machine / QUESTIONS / "1").touch()
        eventually(watching.batches)
        time.sleep(0.1)
    assert watching.batches() == [(900, 0, 0)]


@pytest.mark.slow
def test_a_trickle_of_saves_waits_for_no_quiet(vault: MakeVault, open_kb: Open) -> None:
    folder = vault({"memory/config.yaml": "watch: {debounce: 0.5}\n"})
    with Watching(open_kb(folder)) as watching:
        deadline = time.monotonic() + PATIENCE
        while len(watching.reports) < 4:
            assert time.monotonic() < deadline
            (folder / "memory/trickle.md").write_text(f"drop {time.monotonic()}\n")
            time.sleep(0.05)


def test_a_report_says_what_changed_and_what_is_newly_wrong(vault: MakeVault, open_kb: Open) -> None:
    folder = vault({"memory/config.yaml": "", "memory/a.md": "---\nkind: nonsense\n---\nx\n"})
    with Watching(open_kb(folder)) as watching:
        (first,) = watching.reports
        assert (first.cause, first.added, first.files, len(first.problems)) == ("start", 1, 1, 1)
        save(folder / "memory/b.md", "---\nkind: nonsense\n---\nx\n")
        eventually(lambda: len(watching.reports) == 2)
        second = watching.reports[1]
        assert (second.cause, second.added, second.changed, second.files) == ("events", 1, 0, 2)
        assert [problem.path for problem in second.problems] == ["memory/b.md"]
        assert second.generation == first.generation + 1
    assert watching.notices == [f"watching {folder}: 1 file, native events"]


@pytest.mark.slow
def test_of_two_watchers_one_indexes(vault: MakeVault, open_kb: Open, tmp_path: Path) -> None:
    folder = vault({"memory/a.md": "x\n"})
    kb = open_kb(folder)
    with Watching(kb) as one, Watching(open_kb(folder)) as other:
        for turn in range(5):
            write_files(folder, {f"memory/{turn}/{number}.md": "zebra\n" for number in range(40)})
            one.finds(*(f"memory/{done}/{number}.md" for done in range(turn + 1) for number in range(40)), word="zebra")
    assert sum(batch[0] for batch in one.batches() + other.batches()) == 200
    assert one.notices + other.notices == [f"watching {folder}: 1 file, native events"] * 2
    assert_equals_rebuild(kb, tmp_path / "fresh", ("zebra",))


# -- what is watched is replaced -----------------------------------------------------------


@pytest.mark.slow
def test_a_vault_that_is_moved_away_is_waited_for(vault: MakeVault, open_kb: Open, means: bool | None) -> None:
    folder = vault({"memory/a.md": "zebra\n", "memory/b.md": "zebra\n", "memory/config.yaml": ""})
    for source in (folder, folder / "memory"):
        away = source.with_name("away")
        with Watching(open_kb(folder), poll=means) as watching:
            os.rename(source, away)
            eventually(lambda: len(watching.notices) > 1)
            (away / ("memory/b.md" if source == folder else "b.md")).write_text("camel\n")
            (folder.parent / "elsewhere.md").touch()
            os.rename(away, source)
            watching.finds("memory/b.md", word="camel")
            watching.finds("memory/a.md", word="zebra")
            save(folder / "memory/b.md", "zebra\n")
            watching.finds("memory/a.md", "memory/b.md", word="zebra")
        assert [batch[2] for batch in watching.batches()] == [0, 0], "nothing was ever taken out"
        assert "gone" in watching.notices[1]
        # A comparison that was under way tells of it in words of its own, and goes on when the folder is back.
        assert all(one.endswith(("; trying again", "can be watched again")) for one in watching.notices[1:])


@pytest.mark.slow
def test_the_memories_that_a_folder_got_under_a_watch_are_waited_for(vault: MakeVault, open_kb: Open) -> None:
    folder = vault({"README.md": "zebra\n"})
    memory, away = folder / "memory", folder.parent / "away"
    with Watching(open_kb(folder)) as watching:
        write_files(folder, {"memory/a.md": "camel\n", "memory/config.yaml": ""})
        eventually(lambda: "reopened" in [report.cause for report in watching.reports], lambda: watching.reports)
        memory.rename(away)
        eventually(lambda: f"{memory} is gone; trying again" in watching.notices, lambda: watching.notices)


def test_another_vault_of_that_name_is_watched_instead(vault: MakeVault, open_kb: Open) -> None:
    folder = vault({"memory/a.md": "zebra\n", "memory/config.yaml": ""})
    other = write_files(folder.with_name("other"), {"memory/b.md": "camel\n", "memory/config.yaml": ""})
    kb = open_kb(folder)
    with Watching(kb) as watching:
        os.rename(folder, folder.with_name("away"))
        os.rename(other, folder)
        watching.finds("memory/b.md", word="camel")
        (folder / "memory/c.md").write_text("zebra\n")
        watching.finds("memory/c.md", word="zebra")


def delete_machine(machine: Path) -> None:
    """Delete the folder, again if the watcher puts a file into it or takes one out meanwhile."""
    for _ in range(5):
        shutil.rmtree(machine, ignore_errors=True)
        if not machine.exists():
            return


def delete_database(machine: Path) -> None:
    for file in machine.glob(".memory.db*"):
        file.unlink()


def damage(machine: Path) -> None:
    with (machine / ".memory.db").open("r+b") as stream:
        stream.write(b"nothing that SQLite knows" * 400)


def exchange(machine: Path) -> None:
    (machine / "x").write_bytes(b"no database either" * 1000)
    for file in machine.glob(".memory.db-*"):
        file.unlink()
    os.replace(machine / "x", machine / ".memory.db")


@pytest.mark.slow
@pytest.mark.parametrize("harm", [delete_machine, delete_database, damage, exchange])
@pytest.mark.parametrize("is_plain", [False, True], ids=["memory", "plain"])
def test_an_index_that_is_lost_comes_back(
    vault: MakeVault, open_kb: Open, harm: Callable[[Path], None], is_plain: bool, means: bool | None, tmp_path: Path
) -> None:
    inner = "" if is_plain else "memory/"
    folder = vault({f"{inner}notes/a.md": "zebra\n", **({} if is_plain else {"memory/.memory-kb/x": ""})})
    kb = open_kb(folder)
    with Watching(kb, poll=means) as watching:
        harm(kb.vault.machine)
        (folder / f"{inner}notes/b.md").write_text("zebra\n")
        watching.finds(f"{inner}notes/a.md", f"{inner}notes/b.md", word="zebra")
        (folder / f"{inner}notes/c.md").write_text("zebra\n")
        watching.finds(*(f"{inner}notes/{name}.md" for name in "abc"), word="zebra")
    kb.close()
    assert_equals_rebuild(open_kb(folder), tmp_path / "fresh", ("zebra",))


@pytest.mark.slow
def test_a_changed_configuration_is_obeyed(vault: MakeVault, open_kb: Open) -> None:
    folder = vault(
        {"memory/a.md": "zebra\n", "memory/drafts/b.md": "zebra\n", "memory/config.yaml": "ignore: [drafts]\n"}
    )
    with Watching(open_kb(folder)) as watching:
        watching.finds("memory/a.md", word="zebra")
        (folder / "memory/config.yaml").write_text("ignore: []\n")
        watching.finds("memory/a.md", "memory/drafts/b.md", word="zebra")
        (folder / "memory/config.yaml").write_text("ignore: [drafts\n")
        eventually(lambda: len(watching.notices) == 2)
        (folder / "memory/config.yaml").write_text("ignore: [a.md]\n")
        watching.finds("memory/drafts/b.md", word="zebra")
    assert "config.yaml:" in watching.notices[1]


def test_a_plain_folder_may_become_a_vault(vault: MakeVault, open_kb: Open) -> None:
    folder = vault({"a.md": "zebra\n", "memory/learnings.md": "zebra\n"})
    with Watching(open_kb(folder)):
        write_files(folder, {"memory/config.yaml": ""})
        eventually((folder / "memory/.memory-kb/.memory.db").exists)
        with Watching(open_kb(folder)) as watching:
            watching.finds("memory/learnings.md", word="zebra")


# -- when it cannot be done ----------------------------------------------------------------


def full(self: object, *_: object, **__: object) -> None:
    raise InvalidSettings("the index cannot be written: database or disk is full")


@pytest.mark.slow
def test_a_full_disk_is_reported_once_and_tried_again(
    vault: MakeVault, open_kb: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = vault({"memory/a.md": "zebra\n"})
    with Watching(open_kb(folder)) as watching:
        with monkeypatch.context() as patched:
            patched.setattr("memory_kb.index.vault_index.VaultIndex.sync", full)
            (folder / "memory/b.md").write_text("zebra\n")
            eventually(lambda: len(watching.notices) == 2)
            time.sleep(1.5)
        watching.finds("memory/a.md", "memory/b.md", word="zebra")
    assert watching.notices[1:] == ["the index cannot be written: database or disk is full; trying again"]


def test_a_lock_held_by_another_process_is_waited_for(vault: MakeVault, open_kb: Open) -> None:
    folder = vault({"memory/a.md": "zebra\n", "memory/config.yaml": "watch: {debounce: 0.05}\n"})
    kb = open_kb(folder)
    with Watching(kb) as watching:
        with hold_lock(kb.vault.machine / "index.lock", 5):
            (folder / "memory/b.md").write_text("zebra\n")
            time.sleep(0.5)
        watching.finds("memory/a.md", "memory/b.md", word="zebra")
    assert len(watching.notices) == 1
