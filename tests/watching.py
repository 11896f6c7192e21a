"""What the tests of watching share: a watch in a thread, a watch in a process, and waiting for either."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import pytest
from conftest import clean_environment
from forking import command

from memory_kb import KnowledgeBase, WatchReport

#: Long enough for a machine that has other things to do.
PATIENCE = 60.0
_WITH_WORD = "SELECT DISTINCT source FROM chunks WHERE rowid IN (SELECT rowid FROM chunks_fts WHERE chunks_fts MATCH ?) ORDER BY source"


@pytest.fixture
def briskly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the tests' folder for a local one, wherever they run, and look at it more often than a person needs."""
    monkeypatch.setattr("memory_kb.index.file_events.remote_kind", lambda _: None)
    for name, seconds in (("BEAT", 0.05), ("POLL", 0.1), ("LOCK", 0.05)):
        monkeypatch.setattr(f"memory_kb.index.watch._{name}_SECONDS", seconds)


def eventually(is_so: Callable[[], object], describe: Callable[[], object] = lambda: "it never came true") -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline, describe()
        time.sleep(0.01)


class Watching:
    """A knowledge base that a thread watches, from the first comparison to the end of the block."""

    def __init__(self, kb: KnowledgeBase, *, poll: bool | None = None) -> None:
        self.kb, self._poll = kb, poll
        self.reports: list[WatchReport] = []
        self.notices: list[str] = []
        self.error: BaseException | None = None
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            self.kb.watch(self.reports.append, on_notice=self.notices.append, stop=self.stop, poll=self._poll)
        except BaseException as exc:  # noqa: BLE001
            self.error = exc

    def __enter__(self) -> Self:
        self.thread.start()
        eventually(lambda: self.reports or self.error)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop.set()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()
        if self.error:
            raise self.error

    def finds(self, *paths: str, word: str) -> None:
        """Wait until exactly these files have a word, as the index has it without anybody's help."""
        eventually(
            lambda: self.look_for(word) == sorted(paths),
            lambda: (self.look_for(word), sorted(paths), self.notices, self.reports),
        )

    def look_for(self, word: str) -> list[str] | None:
        """Return the files that have a word in the index as it is now, None if there is no index."""
        database = f"file:{self.kb.vault.machine / '.memory.db'}?mode=ro"
        try:
            with closing(sqlite3.connect(database, uri=True)) as connection:
                return [path for (path,) in connection.execute(_WITH_WORD, (word,))]
        except sqlite3.DatabaseError:
            return None

    def batches(self) -> list[tuple[int, int, int]]:
        """Return what the batches after the first comparison added, changed and removed."""
        return [(report.added, report.changed, report.removed) for report in self.reports[1:]]


def save(file: Path, text: str) -> None:
    """Save a note in one step, so that no watcher sees half of it."""
    beside = file.with_name(f"{file.name}.tmp")
    beside.write_text(text)
    os.replace(beside, file)


def read_words(stream: IO[str]) -> str:
    """Return the next line that a command says, but for how far it is, which one that takes long says in between."""
    return next((line for line in iter(stream.readline, "") if not line.startswith("Indexing ")), "")


@contextmanager
def watch_process(folder: Path, home: Path, *arguments: str, **how: object) -> Iterator[subprocess.Popen[str]]:
    """Run `memory-kb watch` as a process of its own, from its first line on; kill it if it still runs at the end."""
    with subprocess.Popen(
        command("--vault", folder, "watch", *arguments),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=clean_environment(home),
        cwd=home.parent,
        **how,  # type: ignore[call-overload]
    ) as process:
        try:
            line = read_words(process.stderr)
            assert line.startswith(f"watching {folder}: "), line + process.stderr.read()
            yield process
        finally:
            process.kill()
