"""Several processes at once: readers never see half an index, writers lose nothing, nobody fails."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from conftest import NOW, Files, clean_environment
from forking import command

from memory_kb import KnowledgeBase
from memory_kb.errors import VaultBusy
from memory_kb.vault import hold_lock

Vault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]

TAIL = "The gateway keeps its retry budget small and says so. " * 12


def notes(count: int, every: int = 40) -> dict[str, str | bytes]:
    """Return notes of which every fortieth speaks of zebras."""
    return {
        f"memory/learnings/{number:04}.md": f"# Note {number}\n\n{'A zebra. ' if number % every == 0 else ''}{TAIL}\n"
        for number in range(count)
    }


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(home: Path) -> Iterator[Start]:
    """A function that starts a process; what still runs at the end is killed."""
    with contextlib.ExitStack() as stack:

        def begin(*words: str) -> subprocess.Popen[str]:
            process = subprocess.Popen(
                list(words),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                env=clean_environment(home),
                cwd=home.parent,
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield begin


def finish(processes: Sequence[subprocess.Popen[str]]) -> list[str]:
    """Wait for all processes; each must have ended well and printed to stderr only that it waits or how far it is."""
    outputs = [process.communicate(timeout=90) for process in processes]
    waits = re.compile(r"(?:waiting for another process that is indexing|Indexing ).*\n")
    said = [waits.sub("", err) for _, err in outputs]
    assert [(process.returncode, err) for process, err in zip(processes, said, strict=True)] == [(0, "")] * len(
        processes
    )
    return [out for out, _ in outputs]


def rows(kb: KnowledgeBase) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(kb.vault.machine / ".memory.db", isolation_level=None)) as connection:
        connection.execute("INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('integrity-check', 1)")
        return connection.execute("SELECT * FROM chunks ORDER BY source, position").fetchall()


def assert_equals_rebuild(kb: KnowledgeBase, index: Path) -> None:
    kb.sync()
    environ = {"HOME": str(kb.vault.home.parent), "MEMORY_KB_INDEX_PATH": str(index)}
    with KnowledgeBase.open(kb.vault.folder, kb.vault.home, environ=environ, clock=lambda: NOW) as fresh:
        fresh.sync(rebuild=True)
        assert rows(kb) == rows(fresh)
    shutil.rmtree(index)


@pytest.mark.slow
@pytest.mark.parametrize("sync", [False, True], ids=["without sync", "with sync"])
def test_readers_get_complete_answers_during_a_rebuild(vault: Vault, open_kb: Open, start: Start, sync: bool) -> None:
    folder = vault(notes(1_500))
    kb = open_kb(folder)
    before = kb.search("zebra", limit=100).hits
    assert len(before) == 38
    answers = 0
    for _ in range(3):
        process = start(sys.executable, "-m", "memory_kb", "--vault", str(folder), "index", "--rebuild")
        while process.poll() is None:
            assert kb.search("zebra", limit=100, sync=sync).hits == before
            answers += 1
        finish([process])
    assert answers > 2


@pytest.mark.slow
def test_a_reader_that_opens_during_a_rebuild_sees_the_old_state(
    vault: Vault, open_kb: Open, home: Path, start: Start
) -> None:
    folder = vault(notes(1_500))
    before = open_kb(folder).search("zebra", limit=100).hits
    process = start(sys.executable, "-m", "memory_kb", "--vault", str(folder), "index", "--rebuild")
    answers = 0
    while process.poll() is None:
        with KnowledgeBase.open(folder, home, environ={"HOME": str(home.parent)}, clock=lambda: NOW) as kb:
            assert kb.search("zebra", limit=100, sync=False).hits == before
        answers += 1
    finish([process])
    assert answers


PAINTER = """
import sys
from pathlib import Path
from memory_kb import KnowledgeBase
folder, turns = Path(sys.argv[1]), int(sys.argv[2])
with KnowledgeBase.open(folder) as kb:
    for turn in range(1, turns):
        for number in range(0, 120, 10):
            (folder / f"memory/learnings/{number:04}.md").write_text(f"# Coat\\n\\nA zebra in {['blue', 'green', 'red'][turn % 3]}{turn}.\\n")
        kb.sync(rebuild=turn % 5 == 0)
"""


@pytest.mark.slow
def test_changes_between_the_statements_of_a_search_do_not_disturb_it(
    vault: Vault, open_kb: Open, start: Start
) -> None:
    folder = vault(notes(120, every=10))
    kb = open_kb(folder)
    kb.sync()
    process = start(sys.executable, "-c", PAINTER, str(folder), "60")
    generations = set()
    while process.poll() is None:
        result = kb.search("zebra", limit=100, sync=False)
        assert sum(1 + len(hit.copies) for hit in result.hits) == 12
        assert len({hit.text.rpartition("zebra")[2] for hit in result.hits}) == 1
        generations.add(result.freshness.generation)
    finish([process])
    assert len(generations) > 2


WORKER = """
import sys, time
from memory_kb import KnowledgeBase
role, folder, until, name = sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4]
with KnowledgeBase.open(folder) as kb:
    number = 0
    while number == 0 or time.time() < until:
        number += 1
        if role == "search":
            result = kb.search("zebra", limit=100)
            assert sum(hit.path.startswith("memory/learnings/0") for hit in result.hits) == 10, result
        elif role == "learn":
            text = f"{name} met animal{number} at station{number * 7} on track{number * 13}."
            done = kb.learn(text, kind="fact", scope="global" if number % 3 == 0 else "project")
            assert done.action == "created"
            print(done.id, flush=True)
        elif role == "index":
            kb.sync(rebuild=number % 4 == 0)
            time.sleep(0.1)
        else:
            kb.list(); kb.stats(); kb.status()
"""


@pytest.mark.slow
def test_everybody_at_once_loses_nothing(vault: Vault, open_kb: Open, home: Path, start: Start, tmp_path: Path) -> None:
    folder = vault(notes(400))
    open_kb(folder).sync()
    until = str(time.time() + 4.5)
    roles = ["search", "search", "learn", "learn", "learn", "index", "look"]
    processes = [
        start(sys.executable, "-c", WORKER, role, str(folder), until, f"{role}{number}")
        for number, role in enumerate(roles)
    ]
    (folder / "memory/learnings/edited.md").write_text("# Edited\n\nA person writes meanwhile.\n")
    outputs = finish(processes)
    learned = [entry_id for out in outputs for entry_id in out.split()]
    assert len(learned) == len(set(learned)) > 0
    kb = open_kb(folder)
    assert set(learned) <= {entry.id for entry in kb.list()}
    assert sorted(entry.id for entry in kb.list(kind=["fact"]) if entry.id in set(learned)) == sorted(learned)
    assert len(list((folder / "memory/learnings").glob("*.md")) + list((home / "learnings").glob("*.md"))) == 401 + len(
        learned
    )
    assert not [
        problem for problem in kb.doctor().problems if "duplicate" in problem.message or "index" in problem.message
    ]
    assert_equals_rebuild(kb, tmp_path / "fresh")


@pytest.mark.slow
def test_first_searches_at_once_on_a_new_vault_all_answer(vault: Vault, start: Start) -> None:
    folder = vault(notes(200))
    processes = [start(*command("--vault", folder, "search", "zebra", "--json", "-k", "50")) for _ in range(5)]
    assert [out.count('"rank"') for out in finish(processes)] == [5] * 5


@pytest.mark.slow
def test_the_same_lesson_from_several_processes_is_kept_once(vault: Vault, open_kb: Open, start: Start) -> None:
    folder = vault({"memory/MEMORY.md": "# Memory\n"})
    processes = [
        start(*command("--vault", folder, "learn", "Zebras need Redis in every test run.", "--json")) for _ in range(5)
    ]
    outputs = finish(processes)
    assert sorted("created" in out for out in outputs) == [False] * 4 + [True]
    kb = open_kb(folder)
    (entry,) = [entry for entry in kb.list() if entry.path.startswith("memory/learnings/")]
    assert len(list((folder / "memory/learnings").glob("*.md"))) == 1
    assert entry.metadata["reinforcement_count"] == 4


@pytest.mark.parametrize("turn", range(2))
def test_threads_that_open_a_new_vault_at_once_all_answer(vault: Vault, home: Path, turn: int) -> None:
    folder = vault(notes(100))
    together = threading.Barrier(8)

    def work(results: list[object]) -> None:
        try:
            with KnowledgeBase.open(folder, home, environ={"HOME": str(home.parent)}, clock=lambda: NOW) as kb:
                together.wait()
                results.extend(len(kb.search("zebra").hits) for _ in range(3))
        except Exception as exc:  # noqa: BLE001
            results.append(exc)

    answers: list[list[object]] = [[] for _ in range(8)]
    threads = [threading.Thread(target=work, args=(results,)) for results in answers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [[3, 3, 3]] * 8


def test_a_search_answers_while_another_process_indexes(
    vault: Vault, open_kb: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory_kb.index.vault_index._SEARCH_WAIT_SECONDS", 0.2)
    folder = vault(notes(50))
    kb = open_kb(folder)
    kb.sync()
    (folder / "memory/learnings/new.md").write_text("A zebra arrives.\n")
    with hold_lock(kb.vault.machine / "index.lock", 1):
        result = kb.search("zebra", limit=50)
        assert len(result.hits) == 2
        assert result.freshness.pending == 1
        assert "another process is indexing; not searched yet: 1 file" in result.degraded[0]
    assert len(kb.search("zebra", limit=50).hits) == 3


def hold_without_waiting(path: Path, wait: float, *more: Any, **named: Any) -> contextlib.AbstractContextManager[None]:
    """Hold a lock; it is an error to wait for it."""
    assert wait == 0, f"it waits for {path.name}"
    return hold_lock(path, wait, *more, **named)


def test_who_writes_takes_the_index_as_it_is_while_another_process_indexes(
    vault: Vault, open_kb: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = vault(notes(20))
    kb = open_kb(folder)
    kb.sync()
    (folder / "memory/learnings/new.md").write_text("A zebra arrives.\n")
    with hold_lock(kb.vault.machine / "index.lock", 1), monkeypatch.context() as patch:
        patch.setattr("memory_kb.index.vault_index.hold_lock", hold_without_waiting)
        assert len(kb.capture("Remember that Anna owns the billing module.").kept) == 1
        assert kb.stage.set("implementation").run is not None
    assert kb.search("billing", limit=50).hits[0].text.startswith("Anna owns")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_lock_is_free_when_it_is_released_though_a_process_was_forked_meanwhile(tmp_path: Path) -> None:
    """A program that another thread starts has all files open until it runs, which takes a while on a busy machine."""
    reading, writing = os.pipe()
    with hold_lock(tmp_path / "lock", 0):
        child = os.fork()
        if not child:
            os.close(writing)
            os.read(reading, 1)
            os._exit(0)
    try:
        with hold_lock(tmp_path / "lock", 0):
            pass
    finally:
        os.close(writing)
        os.close(reading)
        os.waitpid(child, 0)


def test_a_held_lock_is_reported_after_the_wait(tmp_path: Path) -> None:
    waited: list[str] = []
    with (
        hold_lock(tmp_path / "lock", 0),
        pytest.raises(VaultBusy) as caught,
        hold_lock(tmp_path / "lock", 1.2, lambda: waited.append("told")),
    ):
        pass
    assert (waited, caught.value.exit_code) == (["told"], 6)
    with hold_lock(tmp_path / "lock", 0):
        pass
