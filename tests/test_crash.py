"""Processes killed at any moment: files stay whole, the index is the old one or the new one, the next run completes."""

from __future__ import annotations

import contextlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from conftest import NOW, clean_environment

from memory_kb import KnowledgeBase
from memory_kb.markdown.document import parse_document

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")

FILES = 700
TAIL = "The gateway keeps its retry budget small and says so in its log. " * 30


def default_interrupt() -> None:
    """Let Ctrl-C work even where the tests run in the background of a shell."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def work_of_children() -> float:
    """Return the seconds that the processors worked for processes that have ended; where that is not told, the time of day."""
    if sys.platform != "linux":
        return time.monotonic()
    import resource

    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def wait_for_work(process: subprocess.Popen[str], seconds: float) -> None:
    """Wait until the processors have worked so long for a process, or it ends.

    Beside other programs the same work takes now longer, now shorter.
    """
    if sys.platform != "linux":
        time.sleep(seconds)
        return
    clock = ~process.pid << 3 | 2  # the kernel's name for the process's own clock, see clock_getcpuclockid(3)
    with contextlib.suppress(OSError):
        while process.poll() is None and time.clock_gettime(clock) < seconds:
            time.sleep(0.002)


class Sandbox:
    """A large vault whose notes all say which edition they are."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.folder = place / "vault"
        self.notes = self.folder / "memory/learnings"
        self.notes.mkdir(parents=True)
        (self.folder / "memory/.memory-kb").mkdir()
        self.database = self.folder / "memory/.memory-kb/.memory.db"

    def publish(self, edition: int) -> None:
        for number in range(FILES):
            (self.notes / f"{number:04}.md").write_text(
                f"---\nid: n{number}\nkind: fact\n---\n# Note {number}\n\nThis is edition{edition}.\n\n{TAIL}\n"
            )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "memory_kb", "--vault", str(self.folder), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=clean_environment(self.place / "home"),
            cwd=self.place,
            preexec_fn=default_interrupt,  # noqa: PLW1509
        )

    def finish(self, *arguments: str) -> tuple[float, str]:
        """Run a command undisturbed; return how much it worked and what it said."""
        before = work_of_children()
        process = self.start(*arguments)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        return work_of_children() - before, out

    def kill_after(self, seconds: float, *arguments: str) -> bool:
        """Kill a command after some work; tell whether that came before its end."""
        process = self.start(*arguments)
        wait_for_work(process, seconds)
        process.kill()
        process.communicate(timeout=60)
        return process.returncode == -signal.SIGKILL

    def count(self, word: str) -> int:
        """Count the chunks that say a word, as a search sees them."""
        with closing(sqlite3.connect(self.database)) as connection:
            (found,) = connection.execute(
                "SELECT count(*) FROM chunks_fts WHERE chunks_fts MATCH ?", (word,)
            ).fetchone()
        return int(found)

    def open(self, index: Path | None = None) -> KnowledgeBase:
        environ = {"HOME": str(self.place)} | ({"MEMORY_KB_INDEX_PATH": str(index)} if index else {})
        return KnowledgeBase.open(self.folder, self.place / "home", environ=environ, clock=lambda: NOW)

    def rows(self, kb: KnowledgeBase) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(kb.vault.machine / ".memory.db", isolation_level=None)) as connection:
            connection.execute("INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('integrity-check', 1)")
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            return connection.execute("SELECT * FROM chunks ORDER BY source, position").fetchall()

    def assert_equals_rebuild(self) -> None:
        with self.open() as kb, self.open(self.place / "fresh") as fresh:
            assert kb.sync().is_empty
            fresh.sync(rebuild=True)
            assert self.rows(kb) == self.rows(fresh)
        shutil.rmtree(self.place / "fresh")


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    yield Sandbox(tmp_path)


def spread(seconds: float, times: int) -> list[float]:
    """Return moments over the working part of a run, a little out of step."""
    rng = random.Random(times)
    return [seconds * (0.2 + 0.8 * (step + rng.random()) / times) for step in range(times)]


@pytest.mark.slow
def test_killing_the_first_indexing_leaves_what_was_committed(sandbox: Sandbox) -> None:
    sandbox.publish(1)
    seconds, _ = sandbox.finish("index")
    killed = 0
    for delay in spread(seconds, 5):
        for file in sandbox.database.parent.glob(".memory.db*"):
            file.unlink()
        killed += sandbox.kill_after(delay, "index")
        with sandbox.open() as kb:
            assert kb.search("gateway", limit=50, sync=False).degraded or kb.sync().is_empty
            assert len(kb.search("gateway", limit=50).hits) == 50
    assert killed >= 2
    assert sandbox.count("edition1") == FILES
    sandbox.assert_equals_rebuild()


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("index",), ("index", "--rebuild")], ids=["sync", "rebuild"])
def test_killing_an_indexing_leaves_the_old_answers_or_the_new_ones(
    sandbox: Sandbox, arguments: tuple[str, ...]
) -> None:
    sandbox.publish(0)
    sandbox.finish("index")
    sandbox.publish(1)
    seconds, _ = sandbox.finish(*arguments)
    killed = old = 0
    for edition, delay in enumerate(spread(seconds, 5), 2):
        sandbox.publish(edition)
        killed += sandbox.kill_after(delay, *arguments)
        counts = sandbox.count(f"edition{edition - 1}"), sandbox.count(f"edition{edition}")
        assert counts in ((FILES, 0), (0, FILES))
        old += counts == (FILES, 0)
        with sandbox.open() as kb:
            result = kb.search("gateway", limit=5, sync=False)
            assert len(result.hits) == 5
            assert result.degraded == ()
        sandbox.finish("index")
        assert (sandbox.count(f"edition{edition - 1}"), sandbox.count(f"edition{edition}")) == (0, FILES)
    assert killed >= 2
    assert old >= 1
    sandbox.assert_equals_rebuild()


@pytest.mark.slow
def test_killing_learn_leaves_whole_files_and_no_half_entry(sandbox: Sandbox) -> None:
    sandbox.publish(1)
    sandbox.finish("index")
    seconds, _ = sandbox.finish("learn", "Lesson number zero is about otters.")
    words = ["badger", "camel", "dingo", "egret", "ferret", "gecko", "heron", "ibis", "jackal", "koala", "lemur"]
    texts = [f"Lesson {word}: " + f"{word} facts fill this line. " * 400 + f"The end of {word}." for word in words]
    killed = 0
    for text, delay in zip(texts, spread(seconds, len(texts)), strict=True):
        killed += sandbox.kill_after(0.3 * seconds + 0.7 * delay, "learn", text)
    assert killed >= 4
    learned = {}
    for file in sandbox.notes.glob("lesson-*.md"):
        text = file.read_text()
        (entry,) = parse_document(text, file.name).entries
        assert entry.kind == "fact"
        learned[text[entry.body.start : entry.body.end].strip()] = file
    assert len(list(sandbox.notes.glob("*.md"))) == FILES + len(learned)
    assert set(learned) <= {*texts, "Lesson number zero is about otters."}
    with sandbox.open() as kb:
        for word, text in zip(words, texts, strict=True):
            assert bool(kb.search(f'"facts fill" "end of {word}"').hits) == (text in learned)
        assert kb.learn(texts[-1]).action == ("reinforced" if texts[-1] in learned else "created")
    sandbox.assert_equals_rebuild()


@pytest.mark.slow
def test_ctrl_c_ends_indexing_with_130_and_no_traceback(sandbox: Sandbox) -> None:
    sandbox.publish(1)
    seconds, _ = sandbox.finish("index")
    interrupted = 0
    for arguments in (("index",), ("index", "--rebuild")):
        for delay in spread(seconds, 4):
            for file in sandbox.database.parent.glob(".memory.db*"):
                file.unlink()
            process = sandbox.start(*arguments)
            wait_for_work(process, delay)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
            # Before the interpreter is up and after the work is told, the signal is not ours to handle.
            if sandbox.database.exists() and "unchanged in" not in out:
                assert (process.returncode, err.strip()) == (130, "")
                interrupted += 1
    assert interrupted >= 2
    sandbox.finish("index")
    assert sandbox.count("edition1") == FILES
    sandbox.assert_equals_rebuild()


HOLDER = """
import sys, time
from pathlib import Path
from memory_kb.vault import hold_lock
with hold_lock(Path(sys.argv[1]), 5):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.mark.slow
def test_a_lock_dies_with_its_holder(sandbox: Sandbox) -> None:
    (sandbox.notes / "a.md").write_text("zebra\n")
    locks = [sandbox.database.parent / name for name in ("index.lock", "lock")]
    holders = [
        subprocess.Popen(
            [sys.executable, "-c", HOLDER, str(lock)],
            stdout=subprocess.PIPE,
            text=True,
            env=clean_environment(sandbox.place / "home"),
        )
        for lock in locks
    ]
    for holder in holders:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        holder.kill()
        holder.communicate()
    with sandbox.open() as kb:
        assert kb.learn("The camel is new here.").action == "created"
        assert len(kb.search("zebra camel").hits) == 2
