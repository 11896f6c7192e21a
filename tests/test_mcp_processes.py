"""The MCP server as a process: how it starts, watches and ends, and whom it lets in."""

from __future__ import annotations

import functools
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

import mcp_client
import pytest
from conftest import REPOSITORY, Files, Run, clean_environment
from mcp_client import Told, ask, call, greet, http, inside, process, receive, run, send
from support import entry
from watching import eventually

from memory_kb import KnowledgeBase
from memory_kb.errors import UsageError
from memory_kb.http_server import ListenAddress, parse_address
from memory_kb.workers import NamedVault, VaultWatcher

set_nothing = mcp_client.set_nothing
project = mcp_client.project


def test_the_handshake_is_answered_before_anything_heavy_loads(
    project: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with process(project, home, "--no-watch", env={"PYTHONPROFILEIMPORTTIME": "1"}) as server:
        lines: list[str] = []
        reader = threading.Thread(target=lambda: lines.extend(server.stderr or ()))
        reader.start()
        began = time.perf_counter()
        assert greet(server)["result"]["serverInfo"]["name"] == "memory-kb"
        seconds = time.perf_counter() - began
        send(server, {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        assert len(receive(server)["result"]["tools"]) == 6
        send(server, call(2, "memory_recall", query="linter"))
        assert not receive(server)["result"]["isError"]
        assert server.stdin
        server.stdin.close()
        assert server.wait(60) == 0
        reader.join(60)
    loaded = [line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")]
    assert "mcp.server.lowlevel" in loaded
    heavy = {"numpy", "openai", "google.genai", "anthropic", "onnxruntime", "tokenizers", "watchdog"}
    assert not heavy.intersection(loaded)
    assert "yaml" not in loaded[: loaded.index("mcp.server.lowlevel")]
    with capsys.disabled():
        sys.stdout.write(f"\ninitialize answered after {seconds:.2f} s\n")


def test_odd_lines_and_a_missing_vault_are_survived(vault: Callable[[Files], Path], home: Path, tmp_path: Path) -> None:
    gone = tmp_path / "later"
    with process(gone, home) as server:
        greet(server)
        send(server, "no json", '{"jsonrpc": "2.0", "id": 9}', call(1, "memory_recall", query="pair"))
        assert [(bad["id"], bad["error"]["code"]) for bad in (receive(server), receive(server))] == [
            (None, -32700),
            (9, -32600),
        ]
        told = receive(server)["result"]
        assert (
            told["isError"]
            and "cannot be opened" in told["content"][0]["text"]
            and str(tmp_path) not in told["content"][0]["text"]
        )
        (gone / "memory").mkdir(parents=True)
        (gone / "memory" / "config.yaml").write_text("", encoding="utf-8")
        send(
            server,
            r'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"memory_learn","arguments":{"text":"half \ud83d of a pair"}}}',
        )
        made = Told(receive(server)["result"]["content"][0]["text"], is_error=False)
        assert "half ? of a pair" in (gone / made.path).read_text(encoding="utf-8")
        send(server, call(3, "memory_recall", query="pair"))
        assert "1 found" in receive(server)["result"]["content"][0]["text"]
        server.terminate()
        assert server.wait(60) == 0
        assert server.stderr and "Traceback" not in server.stderr.read()


def test_another_configuration_is_taken_up(project: Path, home: Path) -> None:
    async def work() -> None:
        async with inside(project, home) as client:
            assert (await ask(client, "memory_recall", query="linter")).ids
            (project / "memory" / "config.yaml").write_text(
                "ignore: ['memory/rules/**', 'rules/**']\n", encoding="utf-8"
            )
            assert not (await ask(client, "memory_recall", query="linter")).ids

    run(work)


def test_while_the_memories_are_away_nothing_is_stored_beside_them(project: Path, home: Path) -> None:
    (project / "README.md").write_text("The linter is ruff.\n")
    away, beside = project.parent / "away", sorted({*os.listdir(project)} - {"memory"})

    async def work() -> None:
        async with inside(project, home) as client:
            assert (await ask(client, "memory_recall", query="linter")).ids
            (project / "memory").rename(away)
            assert (await ask(client, "memory_recall", query="linter")).is_error
            assert (await ask(client, "memory_learn", text="Okapis are shy.")).is_error
            assert sorted(os.listdir(project)) == beside
            away.rename(project / "memory")
            told = await ask(client, "memory_learn", text="Okapis are shy.")
            assert told.path.startswith("memory/learnings/")

    run(work)


def test_a_link_in_the_place_of_the_memories_makes_no_memories_of_other_notes(
    project: Path, home: Path, tmp_path: Path
) -> None:
    private = tmp_path / "private"
    private.mkdir()
    (private / "diary.md").write_text("The linter is a secret.\n")

    async def work() -> None:
        async with inside(project, home) as client:
            assert (await ask(client, "memory_recall", query="linter")).ids
            shutil.rmtree(project / "memory")
            (project / "memory").symlink_to(private)
            assert (await ask(client, "memory_recall", query="linter")).is_error
            assert os.listdir(private) == ["diary.md"]

    run(work)


def test_a_link_that_leads_to_another_vault_now_is_followed(project: Path, home: Path, tmp_path: Path) -> None:
    other, link = tmp_path / "other", tmp_path / "current"
    (other / "memory/learnings").mkdir(parents=True)
    (other / "memory/learnings/okapi.md").write_text("# Okapis\n\nThe okapi is shy.\n")
    link.symlink_to(project)

    async def work() -> None:
        async with inside(link, home) as client:
            assert (await ask(client, "memory_recall", query="linter")).ids
            link.unlink()
            link.symlink_to(other)
            shutil.rmtree(project)
            assert "okapi is shy" in (await ask(client, "memory_recall", query="okapi")).text

    run(work)


@pytest.mark.slow
def test_ctrl_c_ends_it_cleanly(project: Path, home: Path) -> None:
    with process(project, home) as server:
        greet(server)
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 130
        assert server.stderr and "Traceback" not in server.stderr.read()


def test_a_watch_may_end_while_it_begins(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """A signal may come with the first message; the server waits for ever when ending fails."""
    request.addfinalizer(functools.partial(sys.setswitchinterval, sys.getswitchinterval()))
    sys.setswitchinterval(1e-6)
    for _ in range(200):
        watcher = VaultWatcher(NamedVault(str(tmp_path / "none"), str(tmp_path), {}), lambda _: None)
        beginning = threading.Thread(target=watcher.begin)
        beginning.start()
        watcher.end(0.0)
        beginning.join()


def test_of_servers_that_begin_together_one_watches(project: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first comparison of a large vault takes a while, in which nobody else can know of the watch."""
    opened, watching = [0], list[threading.Event]()
    usual = NamedVault.open

    def count(address: NamedVault) -> KnowledgeBase:
        opened[0] += 1
        return usual(address)

    def watch(_: KnowledgeBase, *, stop: threading.Event, **__: object) -> None:
        watching.append(stop)
        stop.wait()

    for name, seconds in (("PAUSE", 0.0), ("LOOK", 0.01)):
        monkeypatch.setattr(f"memory_kb.workers._{name}_SECONDS", seconds)
    monkeypatch.setattr(NamedVault, "open", count)
    monkeypatch.setattr(KnowledgeBase, "watch", watch)
    watchers = [VaultWatcher(NamedVault(str(project), str(home), {}), lambda _: None) for _ in range(2)]
    for one in watchers:
        one.begin()
    eventually(lambda: opened[0] > 5)
    assert len(watching) == 1
    for one in watchers:
        one.end(60.0)


@pytest.mark.slow
def test_it_ends_with_the_process_that_started_it(project: Path, home: Path) -> None:
    """Somebody else may hold the other end of its input."""
    reading, writing = os.pipe()
    code = (
        "import subprocess, sys, time; print(subprocess.Popen(sys.argv[1:], stdin=0).pid, flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-m", "memory_kb", "--vault", str(project), "mcp", "--no-watch"]
    with subprocess.Popen(
        [sys.executable, "-c", code, *command],
        stdin=reading,
        stdout=subprocess.PIPE,
        text=True,
        env=clean_environment(home),
    ) as parent:
        assert parent.stdout
        server = int(parent.stdout.readline())
        os.write(writing, f"{json.dumps(mcp_client.INITIALIZE)}\n".encode())
        assert "serverInfo" in parent.stdout.readline()
        parent.kill()
        eventually(lambda: not Path(f"/proc/{server}").exists() or _is_zombie(server))
    os.close(reading)
    os.close(writing)


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.slow
def test_of_several_servers_one_watches_and_the_next_takes_over(
    project: Path, home: Path, open_kb: Callable[[Path], KnowledgeBase]
) -> None:
    with process(project, home) as first, process(project, home) as second:
        greet(first)
        assert first.stderr and first.stdin
        assert "watching" in first.stderr.readline()
        greet(second)
        for number, server in enumerate((first, second, first)):
            send(server, call(number, "memory_learn", text=f"Learning {number} of {'abc'[number]}{number}."))
            assert receive(server)["result"]["content"][0]["text"].startswith("Stored: ")
        assert second.stderr and not select.select([second.stderr], [], [], 1.0)[0], "both watch"
        first.stdin.close()
        assert first.wait(60) == 0
        assert "watching" in second.stderr.readline()
        (project / "memory/learnings/new.md").write_text(entry("A quokka arrived.", id="quokka-1"), encoding="utf-8")
        kb = open_kb(project)
        eventually(lambda: any(hit.id == "quokka-1" for hit in kb.search("quokka", sync=False).hits))


def test_http_lets_in_only_what_is_meant_for_it(project: Path, home: Path) -> None:
    with http(project, home, "--no-watch", "--token", "sesame") as address:
        port = address.rpartition(":")[2].partition("/")[0]
        good = {"Authorization": "Bearer sesame"}
        assert _post(address, good) == 200
        assert _post(address, {}) == 401
        assert _post(address, {"Authorization": "Bearer sesam"}) == 401
        assert _post(address, good | {"Host": f"evil.example:{port}"}) == 421
        assert _post(address, good | {"Origin": "https://evil.example"}) == 403
        assert _post(address, good | {"Origin": "null"}) == 403
        assert _post(address, good | {"Origin": f"http://127.0.0.1:{port}"}) == 200
        for other in (f"http://localhost:{port}", "http://127.0.0.1:3000", "http://localhost:3000", "http://127.0.0.1"):
            assert _post(address, good | {"Origin": other}) == 403, "a page at another port is another origin"


def _post(address: str, headers: Mapping[str, str]) -> int:
    usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    request = urllib.request.Request(address, json.dumps(mcp_client.INITIALIZE).encode(), usual | dict(headers))
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code


def test_a_client_that_goes_in_the_middle_of_a_request_stops_no_other(project: Path, home: Path) -> None:
    with process(project, home, "--http", "127.0.0.1:0", "--no-watch") as server:
        assert server.stderr
        port = int(server.stderr.readline().rpartition("/")[0].rpartition(":")[2])
        head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nAccept: */*\r\n"
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(f"{head}Content-Length: 99\r\n\r\n{{".encode())
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(f"{head}Content-Length: 2\r\n\r\n{{}}".encode())
            assert client.recv(12).endswith(b"400")


def test_elsewhere_takes_a_token_and_places_are_read_or_refused(project: Path, home: Path, run: Run) -> None:
    refused = run("--vault", project, "mcp", "--http", "0.0.0.0:0")
    assert refused.returncode == 2 and "--token" in refused.stderr
    assert parse_address("[::1]:90") == ListenAddress("::1", 90) and parse_address("10.0.0.1").is_loopback is False
    for text in ("127.0.0.1:port", "127.0.0.1:99999"):
        with pytest.raises(UsageError, match="no place"):
            parse_address(text)


def test_without_the_sdk_it_says_what_to_install(project: Path, home: Path) -> None:
    code = f"import sys; sys.modules['mcp'] = None; from memory_kb.cli import run; sys.exit(run(['--vault', {str(project)!r}, 'mcp']))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        env=clean_environment(home),
    )
    assert done.returncode == 2 and 'pip install "memory-kb[mcp]"' in done.stderr
