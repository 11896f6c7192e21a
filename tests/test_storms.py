"""Storms: many processes at one vault, and many edits under a running watch; MEMORY_KB_STORM_SECONDS makes them longer."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import Files, clean_environment, write_files
from support import assert_equals_rebuild, rebuilt, rows
from watching import PATIENCE, eventually, watch_process

from memory_kb import KnowledgeBase

MakeVault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]

SECONDS = float(os.environ.get("MEMORY_KB_STORM_SECONDS", "6"))
TAIL = "The gateway keeps its retry budget small and says so. " * 12

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")


# -- many processes ------------------------------------------------------------------------

WORKER = """
import random, select, sys
from memory_kb import KnowledgeBase
role, folder, name = sys.argv[1:]
number = 0
def is_over():
    return bool(select.select([0], [], [], 0)[0])
while number == 0 or not is_over():
    with KnowledgeBase.open(folder) as kb:
        for _ in range(random.randrange(1, 30)):
            number += 1
            if role == "search":
                result = kb.search("zebra", limit=100, sync=number % 3 > 0)
                assert sum(hit.path.startswith("memory/base/") for hit in result.hits) == 10, result
            elif role == "learn":
                text = f"{name} met animal{number} at station{number * 7} on track{number * 13}."
                done = kb.learn(text, kind="fact", scope="global" if number % 3 == 0 else "project")
                assert done.action == "created", done
                print(done.id, flush=True)
            elif role == "index":
                kb.sync(rebuild=number % 4 == 0)
            elif role == "look":
                kb.list(); kb.stats(); kb.status()
                if number % 20 == 0:
                    assert not [p for p in kb.doctor().problems if "full-text" in p.message or "malformed" in p.message]
            if is_over():
                break
"""


class Crowd:
    """Processes that work on a vault, of which some are killed and replaced."""

    def __init__(self, folder: Path, home: Path) -> None:
        self._folder, self._home = folder, home
        self._until = time.monotonic() + SECONDS
        self._running: list[tuple[str, subprocess.Popen[str]]] = []
        self._started = 0
        self.learned: list[str] = []
        self.failures: list[str] = []

    def start(self, role: str) -> None:
        self._started += 1
        command = ["-c", WORKER, role, str(self._folder), f"{role}{self._started}"]
        if role == "watch":
            command = ["-m", "memory_kb", "--vault", str(self._folder), "watch", "--stdin"]
        process = subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env=clean_environment(self._home),
            cwd=self._home.parent,
        )
        self._running.append((role, process))

    def kill_some(self, rng: random.Random, least: int) -> int:
        """Kill one of the processes after another until the time is over, each followed by another of its kind."""
        killed = 0
        while killed < least or time.monotonic() < self._until - 1.5:
            time.sleep(rng.uniform(0.1, 0.7))
            role, process = self._running.pop(rng.randrange(len(self._running)))
            process.kill()
            self._finish(role, process)
            self.start(role)
            killed += 1
        return killed

    def finish(self) -> None:
        """Let all go on until the time is over, then end their input, which ends them."""
        time.sleep(max(0.0, self._until - time.monotonic()))
        for _, process in self._running:
            assert process.stdin
            process.stdin.close()
            process.stdin = None
        for role, process in self._running:
            self._finish(role, process)
        self._running = []

    def _finish(self, role: str, process: subprocess.Popen[str]) -> None:
        out, err = process.communicate(timeout=PATIENCE + 60)
        if role == "learn":
            self.learned += [line for line in out.splitlines() if len(line) == 36]
        said = [line for line in err.splitlines() if not line.startswith(("watching ", "waiting for another process"))]
        if said or process.returncode not in (0, -signal.SIGKILL):
            self.failures.append(f"{role}: {process.returncode}\n{err}")

    def kill_all(self) -> None:
        for _, process in self._running:
            process.kill()
            process.communicate()


@contextlib.contextmanager
def crowd(folder: Path, home: Path, roles: str) -> Iterator[Crowd]:
    people = Crowd(folder, home)
    try:
        for role in roles.split():
            people.start(role)
        yield people
    finally:
        people.kill_all()


@pytest.mark.slow
@pytest.mark.parametrize("kills", [False, True], ids=["all live", "some are killed"])
def test_many_processes_at_one_vault_lose_nothing(
    vault: MakeVault, open_kb: Open, home: Path, tmp_path: Path, kills: bool
) -> None:
    folder = vault(
        {
            f"memory/base/{number:04}.md": f"# Note {number}\n\n{'A zebra. ' if number % 40 == 0 else ''}{TAIL}\n"
            for number in range(400)
        }
    )
    (folder / "memory/config.yaml").write_text("embeddings: {provider: none}\n")
    open_kb(folder).sync()
    with crowd(folder, home, "search search learn learn index index look watch") as people:
        killed = people.kill_some(random.Random(int(SECONDS)), 3) if kills else 0
        people.finish()
    assert not people.failures, "\n".join(people.failures)
    assert killed >= 3 * kills
    assert len(people.learned) == len(set(people.learned)) > 0
    kb = open_kb(folder)
    kb.sync()
    kept = [entry.id for entry in kb.list(kind=["fact"])]
    assert sorted(set(people.learned) & set(kept)) == sorted(people.learned)
    assert len(kept) == len(set(kept)), "nothing is there twice"
    assert not [
        problem for problem in kb.doctor().problems if "duplicate" in problem.message or "index" in problem.message
    ]
    assert_equals_rebuild(kb, tmp_path / "fresh", ("zebra", "animal1", "gateway"))


# -- many edits ----------------------------------------------------------------------------


class Editor:
    """Somebody who edits, moves and deletes notes and lets git do the same, by the throw of a die."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder, self.notes = folder, folder / "memory"
        self.rng = random.Random(seed)
        self.count = 0
        nobody = {
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_DIR": str(folder / ".git"),
            "GIT_WORK_TREE": str(folder),
        }
        people = {
            f"GIT_{role}_{what}": "nobody@localhost" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
        }
        self.environ = os.environ | nobody | people

    def git(self, *arguments: str, may_fail: bool = False) -> None:
        done = subprocess.run(
            ["git", "-C", str(self.folder), *arguments], env=self.environ, capture_output=True, text=True, check=False
        )
        assert may_fail or done.returncode == 0, done.stderr

    def found_a_repository(self) -> None:
        self.git("init", "-q", "-b", "main")
        (self.folder / ".gitignore").write_text(".memory-kb/\n")
        for branch in ("main", "one", "two"):
            if branch != "main":
                self.git("checkout", "-q", "-b", branch)
            for _ in range(60):
                self.write()
            self.git("add", "-A")
            self.git("commit", "-q", "-m", branch)

    def text(self) -> str:
        self.count += 1
        return (
            f"# Note {self.count}\n\nA {self.rng.choice(['zebra', 'camel', 'otter'])} of {self.count}.\n"
            + "More of it. " * self.rng.randrange(60)
        )

    def any_folder(self) -> Path:
        return self.notes / self.rng.choice(["a", "b", "c", "a/x", "a/y", "b/x/deep", "learnings", "rules", "."])

    def any_note(self) -> Path | None:
        notes = [
            file
            for file in self.notes.rglob("*.md")
            if not any(part[0] == "." for part in file.relative_to(self.notes).parts)
        ]
        return self.rng.choice(sorted(notes)) if notes else None

    def write(self) -> None:
        file = self.any_folder() / f"{self.rng.randrange(25)}.md"
        with contextlib.suppress(NotADirectoryError, FileExistsError):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self.text())

    def save_atomically(self) -> None:
        note = self.any_note()
        if note:
            beside = note.with_name(f"{note.name}.tmp")
            beside.write_text(self.text())
            os.replace(beside, note)

    def save_like_vim(self) -> None:
        note = self.any_note()
        if note:
            os.rename(note, f"{note}~")
            note.write_text(self.text())
            os.unlink(f"{note}~")

    def append(self) -> None:
        note = self.any_note()
        if note:
            with note.open("a") as stream:
                stream.write(self.text())

    def delete(self) -> None:
        note = self.any_note()
        if note:
            note.unlink()

    def rename(self) -> None:
        note = self.any_note()
        if note:
            os.rename(note, note.with_name(f"{self.rng.randrange(25)}.md"))

    def move_folder(self) -> None:
        source, target = self.any_folder(), self.any_folder()
        if source != self.notes and source.is_dir() and not target.exists() and not target.is_relative_to(source):
            target.parent.mkdir(parents=True, exist_ok=True)
            os.rename(source, target)

    def move_out_and_in(self) -> None:
        source, outside = self.any_folder(), self.folder.parent / f"outside-{self.count}"
        if source != self.notes and source.is_dir():
            os.rename(source, outside)
            write_files(outside, {"extra.md": self.text()})
            time.sleep(self.rng.choice([0, 0.1, 0.5]))
            if self.rng.random() < 0.5 and not source.exists():
                os.rename(outside, source)
            else:
                shutil.rmtree(outside)

    def delete_folder(self) -> None:
        folder = self.any_folder()
        if folder != self.notes:
            shutil.rmtree(folder, ignore_errors=True)

    def checkout(self) -> None:
        self.git("checkout", "-q", "-f", self.rng.choice(["main", "one", "two"]))

    def stash(self) -> None:
        self.git("add", "-A")
        self.git("stash", "-q", may_fail=True)
        self.git("stash", "pop", "-q", may_fail=True)
        self.git("checkout", "-q", "-f", "HEAD", may_fail=True)

    def work_tree(self) -> None:
        place = self.notes / f"wt{self.count}"
        self.git("worktree", "add", "-q", "-f", "--detach", str(place), "one", may_fail=True)
        if self.rng.random() < 0.7:
            self.git("worktree", "remove", "-f", str(place), may_fail=True)

    def lose_the_index(self) -> None:
        shutil.rmtree(self.notes / ".memory-kb", ignore_errors=True)

    def move_the_vault(self) -> None:
        os.rename(self.notes, self.folder / "elsewhere")
        time.sleep(self.rng.choice([0, 0.3, 1.5]))
        os.rename(self.folder / "elsewhere", self.notes)

    def storm(self, seconds: float) -> None:
        usual = [self.write, self.save_atomically, self.save_like_vim, self.append, self.delete, self.rename] * 4
        folders = [self.move_folder, self.move_out_and_in, self.delete_folder, self.checkout, self.stash] * 2
        rare = [self.work_tree, self.lose_the_index, self.move_the_vault]
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.rng.choice(usual + folders + rare)()
            time.sleep(self.rng.choice([0, 0, 0, 0.01, 0.05, 0.4]))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
@pytest.mark.parametrize("means", ["events", "polling"])
def test_a_watch_comes_out_of_a_storm_with_what_a_rebuild_makes(
    vault: MakeVault, open_kb: Open, home: Path, tmp_path: Path, means: str
) -> None:
    seed = int(os.environ.get("MEMORY_KB_STORM_SEED", "1"))
    folder = vault(
        {
            "memory/config.yaml": "embeddings: {provider: none}\nwatch: {reconcile_seconds: 3600}\n",
            "memory/MEMORY.md": "# Zebra\n",
        }
    )
    editor = Editor(folder, seed)
    editor.found_a_repository()
    with watch_process(folder, home, *(["--poll"] if means == "polling" else [])) as process:
        editor.storm(SECONDS)
        editor.append()
        with open_kb(folder) as kb:
            eventually(lambda: is_current(folder, open_kb, tmp_path), lambda: f"seed {seed}: {kb.status()}")
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    # What is moved away or lost at the moment of a comparison is told in other words than what is gone before it.
    assert [line for line in err.splitlines() if not line.endswith(("; trying again", "can be watched again"))] == []
    assert len(out.splitlines()) > 2
    assert_equals_rebuild(open_kb(folder), tmp_path / "fresh", ("zebra", "camel"))


def is_current(folder: Path, open_kb: Open, tmp_path: Path) -> bool:
    """Tell whether the index is what the files say, without anybody but the watch having written it."""
    kb = open_kb(folder)
    try:
        if kb.status().pending:
            return False
        with rebuilt(kb, tmp_path / "fresh") as fresh:
            return rows(kb) == rows(fresh)
    finally:
        kb.close()
