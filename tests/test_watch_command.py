"""The end of a watch, and the command that runs one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Files, Run
from watching import PATIENCE, eventually, read_words, save, watch_process

from memory_kb import KnowledgeBase, WatchReport

MakeVault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]


# -- its end -------------------------------------------------------------------------------


def test_it_ends_when_the_event_is_set(vault: MakeVault, open_kb: Open) -> None:
    kb = open_kb(vault({"memory/a.md": "zebra\n"}))
    stop, begun = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: kb.watch(lambda _: begun.set(), stop=stop))
    thread.start()
    assert begun.wait(PATIENCE)
    stop.set()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    kb.watch(stop=stop)


def test_an_error_of_the_listener_ends_it_and_is_raised(vault: MakeVault, open_kb: Open) -> None:
    def listen(report: WatchReport) -> None:
        raise BrokenPipeError(report.cause)

    threads = threading.active_count()
    with pytest.raises(BrokenPipeError, match="start"):
        open_kb(vault({"memory/a.md": "zebra\n"})).watch(listen)
    eventually(lambda: threading.active_count() == threads)


# -- the command ---------------------------------------------------------------------------


def test_the_command_reports_each_batch_on_one_line(vault: MakeVault, home: Path) -> None:
    folder = vault({"memory/config.yaml": "", "memory/a.md": "x\n"})
    with watch_process(folder, home) as process:
        assert process.stdout
        assert process.stdout.readline().rpartition(" in ")[0].endswith("  1 added")
        save(folder / "memory/a.md", "---\nkind: nonsense\n---\ny\n")
        assert process.stdout.readline().rpartition(" in ")[0].endswith("  1 changed")
        process.terminate()
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (0, "")
    assert err.startswith("memory/a.md:2: ")


def test_the_command_writes_json_lines_and_ends_with_its_standard_input(vault: MakeVault, home: Path) -> None:
    folder = vault({"memory/a.md": "x\n"})
    with watch_process(folder, home, "--json", "--stdin", "--poll") as process:
        assert process.stdout
        assert process.stdin
        first = json.loads(process.stdout.readline())
        assert (first["cause"], first["added"], first["generation"], first["problems"]) == ("start", 1, 1, [])
        (folder / "memory/a.md").unlink()
        second = json.loads(process.stdout.readline())
        assert (second["added"], second["changed"], second["removed"], second["files"]) == (0, 0, 1, 0)
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_the_command_at_once(
    vault: MakeVault, home: Path, number: signal.Signals, code: int, run: Run
) -> None:
    folder = vault({"memory/a.md": "zebra\n"})
    with watch_process(
        folder, home, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler)
    ) as process:
        process.send_signal(number)
        _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err) == (code, "")
    assert run("--vault", folder, "search", "zebra").returncode == 0


@pytest.mark.slow
def test_a_first_indexing_can_be_ended(vault: MakeVault, home: Path) -> None:
    folder = vault({f"memory/{number}.md": "zebra text. " * 2_000 for number in range(3_000)})
    command = [sys.executable, "-m", "memory_kb", "--vault", str(folder), "--home", str(home), "watch"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        log = folder / ".memory-kb/.memory.db-wal"
        eventually(lambda: log.exists() and log.stat().st_size)
        process.terminate()
        out, err = process.communicate(timeout=PATIENCE)
    said = [line for line in err.splitlines() if not line.startswith(b"Indexing ")]
    assert (process.returncode, out, said) == (0, b"", [])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no such priorities there")
def test_a_watch_lets_everything_else_go_first(vault: MakeVault, home: Path) -> None:
    folder = vault({"memory/a.md": "x\n"})
    command = [sys.executable, "-m", "memory_kb", "--vault", str(folder), "--home", str(home), "watch", "--stdin"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        assert process.stderr
        assert read_words(process.stderr).startswith("watching ")
        assert os.getpriority(os.PRIO_PROCESS, process.pid) > os.getpriority(os.PRIO_PROCESS, 0)
        process.communicate(timeout=PATIENCE)
