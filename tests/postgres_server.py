"""A real PostgreSQL server for the tests, with a database for each."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_kb import KnowledgeBase

OpenTeam = Callable[..., KnowledgeBase]
SCRIPT = Path(__file__).parent.parent / "scripts" / "postgres"


class Server:
    """A server that runs, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._databases = folder, 0
        self.start()

    def start(self) -> None:
        done = self._call("start")
        if done.returncode:
            pytest.skip(done.stderr.strip())
        self.url = done.stdout.strip()

    def stop(self) -> None:
        self._call("stop")

    def _call(self, verb: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(SCRIPT), verb, str(self._folder)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def new_database(self) -> str:
        """Return the address of an empty database."""
        self._databases += 1
        self.run(self.url, f"CREATE DATABASE d{self._databases}")
        return f"{self.url.rpartition('/')[0]}/d{self._databases}"

    def run(self, url: str, statement: str) -> list[tuple[object, ...]]:
        """Run a statement as somebody, and return its rows."""
        import psycopg

        with psycopg.connect(url, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []


def as_role(url: str, role: str) -> str:
    """Return an address for another role, whose password is its name."""
    return f"postgresql://{role}:{role}@{url.rpartition('@')[2]}"
