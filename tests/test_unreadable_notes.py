"""A note that the system does not let us read: every verb gives the same reason."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import clean_environment, write_files

Ask = Callable[..., "subprocess.CompletedProcess[str]"]

REASON = "memory/secret.md:1: cannot be read: Permission denied; left out"


def plain_rights() -> list[str]:
    """Return what to put before a command so that the rights of files hold for it, for a superuser too."""
    if not hasattr(os, "geteuid"):
        pytest.skip("there are no such rights")
    if os.geteuid():
        return []
    if shutil.which("setpriv") is None:
        pytest.skip("nothing takes a superuser's powers away")
    powers = "-dac_override,-dac_read_search"
    return ["setpriv", f"--bounding-set={powers}", f"--inh-caps={powers}"]


@pytest.fixture
def ask(tmp_path: Path, home: Path) -> Iterator[Ask]:
    """A function that runs the command in a vault with a note that may not be read."""
    folder = write_files(
        tmp_path / "vault",
        {"memory/config.yaml": "", "memory/a.md": "Otters hold hands.\n", "memory/secret.md": "zebra\n"},
    )
    note = folder / "memory/secret.md"
    note.chmod(0)
    before = plain_rights()
    if not subprocess.run([*before, "cat", note], capture_output=True, check=False).returncode:
        pytest.skip("the rights of files do not hold here")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*before, sys.executable, "-m", "memory_kb", "--vault", str(folder), *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, env=clean_environment(home), check=False, timeout=60
        )

    yield run
    note.chmod(0o600)


@pytest.mark.parametrize("verb", ["lint", "doctor", "index"])
def test_lint_and_doctor_tell_why(ask: Ask, verb: str) -> None:
    ask("index")
    done = ask(verb)
    assert [line for line in (done.stdout + done.stderr).splitlines() if "secret" in line] == [REASON]


def test_show_tells_why(ask: Ask) -> None:
    for wanted in ("memory/secret.md", "memory/secret.md:1"):
        done = ask("show", wanted, "--json")
        assert done.returncode == 4
        assert json.loads(done.stdout or done.stderr)["error"] == REASON


def test_status_does_not_wait_for_it(ask: Ask) -> None:
    ask("index")
    status = json.loads(ask("status", "--json").stdout)
    assert (status["pending"], [problem["message"] for problem in status["problems"]]) == (
        0,
        [REASON.partition(": ")[2]],
    )


def test_repairing_does_not_promise_to_mend_it(ask: Ask) -> None:
    ask("index")
    assert "rebuilt" not in ask("doctor", "--fix").stderr
