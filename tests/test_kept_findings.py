"""`lint` keeps what it found in a file until that changes, and says it in totals where it is much."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Files, Run, clean_environment
from watching import eventually

from memory_kb import KnowledgeBase

Vault = Callable[[Files], Path]
Open = Callable[..., KnowledgeBase]

NOTES = {
    "a.md": "# A\n\n## Steps\n\nSee [b](b.md#part), [c](plan.txt.md) and [[b#^one]].\n",
    "b.md": "# B\n\n## Part\n\nText. ^one\n",
}


def _said(kb: KnowledgeBase) -> list[str]:
    return [f"{one.path}:{one.line} {one.message}" for one in kb.lint()]


def test_findings_follow_every_file_that_they_depend_on(vault: Vault, open_kb: Open) -> None:
    folder = vault(NOTES)
    kb = open_kb(folder)
    first = _said(kb)
    assert first == ["a.md:5 the link to 'plan.txt.md' leads to no file"] == _said(kb)
    (folder / "b.md").write_text("# B\n\nNothing.\n")
    assert len(_said(kb)) == 3
    (folder / "b.md").unlink()
    assert _said(kb)[0] == "a.md:5 the link to 'b.md' leads to no file"
    (folder / "b.md").write_text(NOTES["b.md"])
    assert _said(kb) == first
    # What is no note of ours is looked for anew.
    (folder / "plan.txt.md").mkdir()
    assert _said(kb) == []
    (folder / "plan.txt.md").rmdir()
    assert _said(kb) == first == _said(open_kb(folder))


@pytest.mark.parametrize("content", [b"", b"no JSON", b"[1, {}]", b"\xff" * 5000, b"5", b"[" * 100_000])
def test_what_was_kept_may_be_damaged(vault: Vault, open_kb: Open, content: bytes) -> None:
    folder = vault(NOTES)
    first = _said(open_kb(folder))
    for file in (folder / ".memory-kb/lint").glob("*.json"):
        file.write_bytes(content)
    assert first == _said(open_kb(folder))


def test_findings_are_not_kept_without_the_map(vault: Vault, open_kb: Open) -> None:
    folder = vault(NOTES)
    file = folder / ".memory-kb/lint/map.json"
    open_kb(folder).sync()
    file.mkdir(parents=True)
    open_kb(folder).lint()
    file.rmdir()
    assert len(open_kb(folder).busiest_links(9, (), (), "").edges) == 1


def test_the_page_finds_what_the_last_lint_found(vault: Vault, open_kb: Open) -> None:
    folder = vault(NOTES)
    with open_kb(folder) as kb:
        assert kb.last_look("lint").look is None
        found = kb.lint()
        last = kb.last_look("lint")
        assert last.is_current
        assert last.look is not None and (last.look.total, last.look.first) == (1, found)
        (folder / "c.md").write_text("New.\n")
        assert not kb.last_look("lint").is_current


def test_of_many_findings_the_first_are_listed(run: Run, vault: Vault) -> None:
    folder = vault({f"{number}.md": f"See [x](gone-{number}.md).\n" for number in range(60)})
    told = run("--vault", folder, "lint")
    assert told.returncode == 7
    assert told.stdout.splitlines()[0] == "0.md:1: the link to 'gone-0.md' leads to no file"
    assert len(told.stdout.splitlines()) == 50
    assert "… and 10 more; --all lists them all" in told.stderr
    assert len(run("--vault", folder, "lint", "--all").stdout.splitlines()) == 60
    assert len(run("--vault", folder, "doctor", "--all").stdout.splitlines()) == 60


def test_the_same_unknown_word_is_one_line(run: Run, vault: Vault, open_kb: Open) -> None:
    notes = {f"{number}.md": "---\nstatus: sprouting\n---\nText.\n" for number in range(60)}
    folder = vault({**notes, "z.md": "See [x](gone.md).\n"})
    said = "0.md:2: status sprouting is not a known word; read as the default (and in 59 more places)"
    assert run("--vault", folder, "index").stderr.splitlines() == [said]
    told = run("--vault", folder, "lint")
    assert told.stdout.splitlines() == [said, "z.md:1: the link to 'gone.md' leads to no file"]
    assert told.stderr.splitlines() == ["--all lists every place", "61 findings"]
    kept = open_kb(folder).last_look("lint").look
    assert kept is not None and [one.path for one in kept.first[:2]] == ["z.md", "0.md"]
    assert len(run("--vault", folder, "lint", "--all").stdout.splitlines()) == 61


@pytest.mark.parametrize("name", ["lint", "lint/facts.json"])
def test_nothing_is_kept_through_a_link(vault: Vault, open_kb: Open, tmp_path: Path, name: str) -> None:
    folder = vault(NOTES)
    first = _said(open_kb(folder))
    outside = tmp_path / "outside"
    outside.mkdir()
    link = folder / ".memory-kb" / name
    shutil.rmtree(link.parent if link.suffix else link)
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(outside / "facts.json" if link.suffix else outside)
    assert _said(open_kb(folder)) == first
    assert list(outside.iterdir()) == []


@pytest.mark.slow
def test_many_files_are_examined_as_few_are(vault: Vault, open_kb: Open) -> None:
    notes = {f"{number:04}.md": f"# Note {number}\n\nSee [x](gone{number}.md).\n" for number in range(1_050)}
    notes["0007.md"] += "\nThe wifi password is hunter2!\n"
    said = _said(open_kb(vault(notes)))
    assert len(said) == 1_051
    assert said[:2] == [
        "0000.md:3 the link to 'gone0.md' leads to no file",
        "0001.md:3 the link to 'gone1.md' leads to no file",
    ]
    assert [line for line in said if "password" in line and line.startswith("0007.md:5 ")]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or os.cpu_count() == 1, reason="one process does it all")
def test_a_lint_that_is_killed_leaves_no_process(vault: Vault, home: Path) -> None:
    text = "".join(f"## Step {n}\n\nSee [b](b{n}.md) and `code` of token{n}: AKIA{n}.\n\n" for n in range(150))
    folder = vault({f"n{number}.md": text for number in range(1_100)})
    words = [sys.executable, "-m", "memory_kb", "lint", "--vault", str(folder)]
    lint = subprocess.Popen(words, env=clean_environment(home), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    workers = _children(lint.pid)
    while len(workers) < 2 and lint.poll() is None:
        time.sleep(0.005)
        workers = _children(lint.pid)
    assert len(workers) >= 2
    lint.kill()
    lint.wait()
    eventually(lambda: not any(map(_is_running, workers)))


def _children(process: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def _is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
