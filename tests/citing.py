"""A repository with a vault whose note is about its code, for the tests of claims."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Files
from support import days_ago, entry

from memory_kb import KnowledgeBase

MakeVault = Callable[[Files], Path]
CODE = """import os


def retry(count):
    for number in range(count):
        upload(number)
    return count


class Client:
    LIMIT = 3

    def send(self, data):
        return data


def other():
    return "the end"
"""
NOTE = "Uploads are retried, see `src/a.py:4-7`."


def git(folder: Path, *arguments: str) -> str:
    """Run git as somebody without settings, and return what it prints."""
    done = subprocess.run(
        [
            "git",
            "-c",
            "user.name=n",
            "-c",
            "user.email=n@example.org",
            "-c",
            "commit.gpgsign=false",
            "-c",
            "core.autocrlf=false",
            *arguments,
        ],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"},
    )
    return done.stdout.strip()


def commit(folder: Path, message: str = "more") -> str:
    """Commit all there is, and return the commit."""
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message)
    return git(folder, "rev-parse", "HEAD")


def edit(file: Path, old: str, new: str) -> None:
    """Put one text in the place of another in a file."""
    text = file.read_bytes().decode()
    assert old in text
    file.write_bytes(text.replace(old, new).encode())


@pytest.fixture
def project(vault: MakeVault) -> Path:
    """A repository with a vault, whose one note is about `src/a.py`."""
    folder = vault(
        {
            "memory/config.yaml": "",
            "memory/learnings/note.md": entry(
                NOTE, id="note", kind="fact", title="Upload retries", last_reinforced=days_ago(1)
            ),
            "src/a.py": CODE,
            "src/b.py": "def nothing():\n    return None\n",
        }
    )
    git(folder, "init", "-q")
    commit(folder, "one")
    return folder


def verdicts(kb: KnowledgeBase) -> dict[str, str]:
    """Return the verdict on each citation."""
    return {one.ref: one.verdict for claim in kb.verify().claims for one in claim.findings}
