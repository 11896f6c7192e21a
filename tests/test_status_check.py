"""An edit of the same size with its time put back: `status --check` and `doctor` read the bytes."""

from __future__ import annotations

import os
from pathlib import Path

from conftest import Run, write_files


def test_an_edit_that_kept_size_and_time_is_found(folder: Path, run: Run) -> None:
    write_files(folder, {"memory/learnings/a.md": "Alpha walrus sleeps.\n", "memory/learnings/b.md": "Beta.\n"})
    note = folder / "memory/learnings/a.md"
    os.utime(note, ns=(10**18, 10**18))
    run("index", "--vault", folder)
    with note.open("r+b") as stream:
        stream.write(b"Gamma")
    os.utime(note, ns=(10**18, 10**18))
    told = run("status", "--check", "--vault", folder).stdout
    assert "0 new, 1 changed, 0 gone" in told
    found = run("doctor", "--vault", folder)
    assert found.returncode == 7
    assert "memory/learnings/a.md:1: is indexed differently from what it says" in found.stdout
    run("index", "--rebuild", "--vault", folder)
    assert "none" in run("status", "--check", "--vault", folder).stdout
