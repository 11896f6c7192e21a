"""Vaults in git repositories, for the tests of what lives with git."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

from conftest import REPOSITORY, Files, clean_environment, write_files

from memory_kb.cli import run


class Clone:
    """A clone of a vault, and git in it."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder, self._home = folder, home

    @property
    def environ(self) -> dict[str, str]:
        """The environment of a person without a configuration of git."""
        people = {
            f"GIT_{role}_{what}": "nobody@localhost" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
        }
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        alone = {
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "PYTHONPATH": str(REPOSITORY),
            "PATH": path,
        }
        return people | alone

    def git(self, *arguments: str, may_fail: bool = False) -> str:
        """Run git in it; return what it prints."""
        done = subprocess.run(
            ["git", "-C", str(self.folder), *arguments],
            env=os.environ | self.environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert may_fail or done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def save(self, message: str = "x") -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message, "--allow-empty")

    def kb(self, *arguments: str | Path, code: int = 0) -> str:
        """Run a verb on it, in this process, which is faster; it must end with a code. Return what it prints.

        With another code than 0, what it says on stderr comes behind it.
        """
        out, err = io.StringIO(), io.StringIO()
        environ = clean_environment(self._home) | self.environ
        with mock.patch.dict(os.environ, environ, clear=True), redirect_stdout(out), redirect_stderr(err):
            ended = run(["--vault", str(self.folder), *map(str, arguments)])
        assert ended == code, out.getvalue() + err.getvalue()
        return out.getvalue() if code == 0 else out.getvalue() + err.getvalue()


def copied(template: Path, folder: Path, home: Path) -> Clone:
    """Return a copy of a repository, which is faster made than the repository itself."""
    return Clone(shutil.copytree(template, folder), home)


def found(folder: Path, home: Path, files: Files) -> Clone:
    """Make a repository with a first commit of these files."""
    clone = Clone(write_files(folder, files), home)
    clone.git("init", "-q", "-b", "main")
    clone.save("first")
    return clone
