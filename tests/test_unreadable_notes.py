"""Notes that cannot be read are named, with the reason."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Run, clean_environment, write_files

from memory_kb import KnowledgeBase

NOTE = "---\nid: n1\ntitle: Node\n---\nThe build needs Node 22.\n"


def give_up_rights() -> None:
    """Let root, too, read only what permissions allow, in this process and those that it starts."""
    import ctypes

    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


@pytest.mark.skipif(sys.platform != "linux", reason="permissions are another matter elsewhere")
def test_a_note_without_permission_is_named_though_it_is_indexed(folder: Path, home: Path, run: Run) -> None:
    write_files(folder, {"memory/rules/a.md": NOTE, "memory/jobs/j/learnings/b.md": NOTE.replace("n1", "n2")})
    assert run("--vault", folder, "index").returncode == 0
    (folder / "memory/rules/a.md").chmod(0)
    (folder / "memory/jobs/j/learnings").chmod(0)
    command = [sys.executable, "-m", "memory_kb", "--vault", str(folder)]
    how: Any = {"capture_output": True, "text": True, "env": clean_environment(home), "preexec_fn": give_up_rights}
    try:
        found = [subprocess.run([*command, verb], check=False, **how) for verb in ("lint", "doctor")]
    finally:
        (folder / "memory/jobs/j/learnings").chmod(0o755)
    for done in found:
        assert done.returncode == 7, done.stderr
        assert "memory/rules/a.md:1: cannot be read: Permission denied" in done.stdout
        assert "memory/jobs/j/learnings/:1: cannot be listed: Permission denied" in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="needs links and pipes")
def test_links_to_nothing_circles_and_pipes_are_named(folder: Path, open_kb: Callable[..., KnowledgeBase]) -> None:
    write_files(folder, {"memory/rules/a.md": NOTE})
    kb = open_kb(folder)
    (folder / "memory/rules/lost.md").symlink_to("nowhere")
    (folder / "memory/rules/circle.md").symlink_to("circle.md")
    os.mkfifo(folder / "memory/rules/pipe.md")
    for problems in (kb.lint(), kb.doctor().problems):
        told = {problem.path: problem.message for problem in problems}
        assert "a symbolic link to nothing" in told["memory/rules/lost.md"]
        assert "leads in a circle" in told["memory/rules/circle.md"]
        assert "not a regular file" in told["memory/rules/pipe.md"]
    # A note that became a pipe since it was indexed makes nobody wait.
    kb.sync()
    (folder / "memory/rules/a.md").unlink()
    os.mkfifo(folder / "memory/rules/a.md")
    assert "not a regular file" in {one.path: one.message for one in kb.lint()}["memory/rules/a.md"]
