"""The sign of a watcher that an index is being kept up to date, for whoever has no time to look."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from memory_kb.errors import VaultBusy
from memory_kb.locks import hold_lock

_FOLDER = "watchers"


class Attendance:
    """A sign that stands as long as its process lives, or until it is taken down."""

    def __init__(self, machine: Path) -> None:
        self._file = machine / _FOLDER / f"{os.getpid()}-{id(self):x}"
        self._held = contextlib.ExitStack()

    def begin(self) -> None:
        """Put the sign up, if it can be."""
        with contextlib.suppress(OSError, VaultBusy):
            self._file.parent.mkdir(exist_ok=True)
            self._held.enter_context(hold_lock(self._file, 0))

    def end(self) -> None:
        """Take the sign down."""
        self._held.close()
        with contextlib.suppress(OSError):
            self._file.unlink()


def is_attended(machine: Path) -> bool:
    """Tell whether any watcher keeps the index in a machine folder."""
    try:
        signs = list((machine / _FOLDER).iterdir())
    except OSError:
        return False
    for sign in signs:
        try:
            with hold_lock(sign, 0):
                sign.unlink(missing_ok=True)  # its watcher was killed
        except VaultBusy:
            return True
        except OSError:
            continue
    return False
