"""Headers that lie, ids that are repeated, files of very many entries."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import Run, write_files
from pages import start  # noqa: F401 - a fixture

from memory_kb import KnowledgeBase

if TYPE_CHECKING:
    from pages import Start

OpenKB = Callable[..., KnowledgeBase]


def test_a_number_of_any_length_is_refused_in_a_sentence(folder: Path, run: Run) -> None:
    huge = f'{{"role": "user", "content": "Feed the walrus.", "n": {"1" * 100_000}}}'
    appended = run("session", "append", "s", "--vault", folder, stdin=huge)
    assert (appended.returncode, "not a JSON object" in appended.stderr) == (4, True)
    hooked = run("hook", "prompt", "--vault", folder, stdin=huge)
    assert (hooked.returncode, hooked.stderr) == (0, "")


def test_a_hook_that_is_sent_too_much_says_so_in_its_log(folder: Path, run: Run) -> None:
    said = f'{{"session_id": "s", "prompt": "{"x" * 17_000_000}"}}'
    done = run("hook", "prompt", "--vault", folder, stdin=said)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (log,) = folder.rglob("hooks.log")
    assert "what Claude Code said at prompt is longer than 16,000,000 bytes" in log.read_text(encoding="utf-8")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_no_pipe_in_the_place_of_a_file_makes_anybody_wait(folder: Path, run: Run) -> None:
    write_files(folder, {"memory/config.yaml": "", "memory/learnings/a.md": "The walrus swims.\n"})
    for name in ("CONTINUITY.md", "queries.yaml", "../INTENT.md"):
        os.mkfifo(folder / "memory" / name)
    said = json.dumps({"session_id": "s", "cwd": str(folder), "source": "startup"})
    assert run("hook", "session-start", "--vault", folder, stdin=said).returncode == 0
    assert run("lint", "--vault", folder).returncode != 1
    (folder / "memory/config.yaml").unlink()
    os.mkfifo(folder / "memory/config.yaml")
    assert "config.yaml cannot be read" in run("search", "walrus", "--vault", folder).stderr


@pytest.mark.slow
def test_a_length_that_cannot_be_is_refused_at_once(start: Start) -> None:  # noqa: F811
    server = start({"a.md": "Text.\n"}, "--no-watch")
    for length in ("99999999999999", "9" * 5_000, "-1", "1e3", "0x10", "5, 6", ""):
        head = f"POST /review HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Length: {length}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", server.port), 10) as connection:
            connection.sendall(head.encode())
            assert connection.recv(4096).split(b" ")[1] in (b"400", b"413"), length
        assert server.ask("/").status == 200


def test_the_page_shows_entries_whose_id_is_repeated(start: Start) -> None:  # noqa: F811
    server = start(
        {
            "memory/config.yaml": "",
            "memory/learnings/both.md": "---\nid: same\n---\nOne walrus.\n\n---\nid: same\n---\nTwo walruses.\n",
            "memory/review/a.md": "---\nid: p\nkind: rule\nstatus: proposed\n---\nThe first rule.\n",
            "memory/review/b.md": "---\nid: p\nkind: rule\nstatus: proposed\n---\nThe second rule.\n",
        },
        "--no-watch",
    )
    choice = server.ask("/entry?id=same")
    assert choice.status == 409
    for line, text in ((1, "One walrus."), (6, "Two walruses.")):
        place = f"at=memory%2Flearnings%2Fboth.md%3A{line}"
        for page in ("/entry", "/entry/links", "/entry/exposure", "/entry/history"):
            assert server.ask(f"{page}?id=same&{place}").status in (200, 404), page
        assert text in server.ask(f"/entry?id=same&{place}").text
        form = server.ask(f"/entry/edit?id=same&{place}")
        assert (form.status, "the same id" in form.text) == (400, True)
    for name, text in (("a", "The first rule."), ("b", "The second rule.")):
        shown = server.ask(f"/review/item?id=p&at=memory%2Freview%2F{name}.md%3A1")
        assert (shown.status, text in shown.text) == (200, True)


@pytest.mark.slow
def test_the_preview_of_a_long_file_says_what_changes(folder: Path, open_kb: OpenKB) -> None:
    notes = "".join(f"---\nid: e{number}\n---\nSee [[e7]].\n\n" for number in range(2_100))
    write_files(folder, {"memory/all.md": notes})
    diff = open_kb(folder).rename("e7", "seven", dry_run=True).diff
    assert (diff.count("\n+See [[seven]].\n"), diff.count("\n-See [[e7]].\n")) == (2_100, 2_100)
    assert diff.count("\n+id: seven\n") == diff.count("\n-id: e7\n") == 1


@pytest.mark.slow
def test_very_many_entries_in_one_file(folder: Path, run: Run) -> None:
    words = ("Always", "Never")
    notes = "".join(
        f"---\nid: e{number}\nkind: rule\n---\n{words[number % 2]} use tool{number // 20} here.\n\n"
        for number in range(25_000)
    )
    write_files(folder, {"memory/all.md": notes})
    run("index", "--vault", folder)
    found = run("contradictions", "--vault", folder)
    assert found.returncode == 0
    assert "only the first 200,000 pairs were compared" in found.stderr
    renamed = run("rename", "e5", "five", "--dry-run", "--vault", folder)
    assert (renamed.returncode, "+id: five" in renamed.stdout) == (0, True)


@pytest.mark.slow
def test_a_note_made_to_take_long_does_not(folder: Path, run: Run) -> None:
    ticks = "".join(f"{'`' * number}x" for number in range(1, 1_000))
    write_files(folder, {"memory/deep.md": f"{'- ' * 50_000}`x` [b](b.md)\n\n{ticks} [b](b.md)\n"})
    found = run("lint", "--vault", folder)
    assert "b.md" in found.stdout
    assert found.returncode == 7
