"""With an index that is complete, a full or read-only disk answers all questions; writing verbs say what is missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from memory_kb import KnowledgeBase
from memory_kb.regular_files import replace_file

if TYPE_CHECKING:
    from conftest import Run

Open = Callable[..., KnowledgeBase]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="mounts a small disk")
READING = [
    ("search", "gateway"),
    ("context", "the gateway"),
    ("show", "gate"),
    ("status",),
    ("list",),
    ("lint",),
    ("doctor",),
]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a few megabytes with an indexed vault."""
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", place], capture_output=True, check=False
    ).returncode:
        pytest.skip("needs the right to mount")
    try:
        notes = place / "vault/memory/learnings"
        notes.mkdir(parents=True)
        (notes / "gate.md").write_text("---\nid: gate\nkind: fact\n---\nThe gateway keeps a retry budget.\n")
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def fill(disk: Path) -> None:
    with open(disk / "filler", "wb", buffering=0) as filler, pytest.raises(OSError, match="space"):
        while True:
            filler.write(b"x" * 4096)


@pytest.mark.parametrize("state", ["full", "read-only"])
def test_what_is_asked_is_answered_and_writing_says_what_is_missing(disk: Path, run: Run, state: str) -> None:
    vault = ("--vault", str(disk / "vault"))
    assert run(*vault, "index").returncode == 0
    if state == "full":
        fill(disk)
    else:
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    for verb in READING:
        done = run(*vault, *verb)
        assert (done.returncode, "cannot" in done.stderr) == (0, False), verb
        assert verb[0] not in ("search", "context", "show") or "retry budget" in done.stdout
    before = sorted(path.name for path in (disk / "vault/memory").rglob("*.md"))
    for verb in (("learn", "Okapis need Redis."), ("forget", "gate")):
        done = run(*vault, *verb)
        assert done.returncode in (3, 4)
        assert ("No space left" if state == "full" else "Read-only") in done.stderr
    assert sorted(path.name for path in (disk / "vault/memory").rglob("*.md")) == before
    assert "status" not in (disk / "vault/memory/learnings/gate.md").read_text()


@pytest.mark.slow
def test_a_vault_that_can_only_be_read_has_its_index_elsewhere(disk: Path, run: Run) -> None:
    vault = ("--vault", str(disk / "vault"))
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    assert "retry budget" in run(*vault, "search", "gateway").stdout
    assert not Path(json.loads(run(*vault, "status", "--json").stdout)["index"]).is_relative_to(disk)


def test_a_search_over_an_index_that_could_not_be_written_finds_room_again(disk: Path, open_kb: Open) -> None:
    folder = disk / "vault"
    kb = open_kb(folder)
    kb.sync()
    kb.close()
    (folder / "memory/learnings/new.md").write_text("The gateway has a second door.\n")
    fill(disk)
    found = kb.search("gateway")
    assert ([hit.id for hit in found.hits], found.freshness.pending) == (["gate"], 1)
    assert "the disk is full" in found.degraded[0]
    (disk / "filler").unlink()
    assert len(kb.search("gateway").hits) == 2


def test_a_file_of_the_machine_folder_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    import resource

    file = tmp_path / "record"
    replace_file(file, b"old")
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
        try:
            replace_file(file, b"x" * 200)
        except OSError:
            os._exit(0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert file.read_bytes() == b"old"
