"""What `learn -` takes from stdin, and what it refuses."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from conftest import Run, clean_environment
from forking import command

LIMIT = 1_000_000


def learn(folder: Path, home: Path, data: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command("--vault", folder, "learn", "-", "--json"),
        input=data,
        capture_output=True,
        timeout=60,
        check=False,
        env=clean_environment(home),
    )


@pytest.mark.parametrize(
    ("data", "said"),
    [
        pytest.param(b"x" * (LIMIT + 1), "longer than 1,000,000 characters", id="by-one"),
        pytest.param("\U0001f9a6".encode() * (LIMIT + 1), "longer than 1,000,000 characters", id="in-characters"),
        pytest.param(b"One\x00two.", "contains NUL bytes", id="nul"),
        pytest.param("Otters hold hands.".encode("utf-16"), "contains NUL bytes", id="utf-16"),
    ],
)
def test_what_is_no_learning_is_refused_in_one_sentence(folder: Path, home: Path, data: bytes, said: str) -> None:
    done = learn(folder, home, data)
    answer = json.loads(done.stderr or done.stdout)
    assert (done.returncode, answer["code"]) == (2, "usage")
    assert said in answer["error"]
    assert not (folder / "memory/learnings").exists()


@pytest.mark.slow
def test_a_long_one_is_kept(folder: Path, home: Path) -> None:
    assert learn(folder, home, "\U0001f9a6 ".encode() * (LIMIT // 2)).returncode == 0


def test_a_mark_before_the_text_is_no_part_of_it(run: Run, folder: Path) -> None:
    done = run("--vault", folder, "learn", "-", "--json", stdin="\ufeffBom text about otters.\n")
    note = (folder / json.loads(done.stdout)["path"]).read_bytes()
    assert b"\xef\xbb\xbf" not in note
    assert note.endswith(b"\nBom text about otters.\n")
    assert run("--vault", folder, "learn", "-", stdin="\ufeff \n").returncode == 2
