"""The commands (`check:`) of rules: which of them may be run here, and running one.

A rule comes with a cloned repository. Its command is run only if the person's own configuration has exactly that
text in `checks`, or if they allowed it on this machine, for this vault.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memory_kb.machine_seal import Seal
from memory_kb.providers.command import run_group
from memory_kb.regular_files import make_folder, open_for_reading, replace_file
from memory_kb.text import load_json
from memory_kb.vault import Vault

#: How long a command may take, in seconds.
_SECONDS = 300
_MAX_OUTPUT, _MAX_SAID = 100_000, 200


class AllowedChecks:
    """The commands that may be run for a vault."""

    def __init__(self, vault: Vault) -> None:
        self._file = vault.machine / "checks.json"
        self._seal: Seal = vault.seal
        self._named = vault.settings.checks

    def allows(self, command: str) -> bool:
        """Return whether a command may be run."""
        return command in self._named or (bool(self._seal.key) and self._read().get(command) == self._sign(command))

    def allow(self, command: str) -> None:
        """Let a command be run from now on."""
        kept = {one: mark for one, mark in self._read().items() if mark == self._sign(one)}
        make_folder(self._file.parent)
        replace_file(self._file, json.dumps(kept | {command: self._sign(command)}, indent=1).encode())

    def _sign(self, command: str) -> str:
        return self._seal.sign(b"check\n" + command.encode("utf-8", "surrogatepass"))

    def _read(self) -> dict[str, Any]:
        try:
            with open_for_reading(self._file) as stream:
                found = load_json(stream.read())
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}


def run_check(command: str, folder: Path, environ: Mapping[str, str]) -> str | None:
    """Return why a command fails in a folder, None where it exits with 0."""
    with tempfile.TemporaryFile() as out:
        how = {"cwd": folder, "env": dict(environ), "stdin": subprocess.DEVNULL, "stdout": out, "stderr": out}
        try:
            code = run_group(command, _SECONDS, shell=True, **how)  # noqa: S604 - the person allowed this very line
        except OSError as exc:
            return f"it cannot be run: {exc.strerror}"
        except subprocess.TimeoutExpired:
            return f"it took over {_SECONDS:g} s"
        size = out.seek(0, os.SEEK_END)
        out.seek(max(0, size - _MAX_OUTPUT))
        lines = [line for line in out.read().decode("utf-8", "replace").splitlines() if line.strip()]
    said = " ".join(lines[-1].split())[:_MAX_SAID] if lines else ""
    return f"exit code {code}{f': {said}' if said else ''}" if code else None
