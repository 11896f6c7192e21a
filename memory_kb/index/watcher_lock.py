"""Whether a watcher runs, and whether it says that the index is current.

A question to it is an empty file in a folder of its own below the notes. The system reports it after every
change below that folder that was made before it; when the index holds those, the watcher deletes the file.
A search that is answered need not scan all files.
"""

from __future__ import annotations

import contextlib
import os
import time
from _thread import get_ident
from pathlib import Path

from memory_kb.errors import VaultBusy
from memory_kb.plainfiles import append_plain, make_folder
from memory_kb.vault import MACHINE, hold_lock

_FOLDER = "watchers"
_TRIES, _SECONDS = 20, 1.0
#: The folder of the questions, in a machine folder.
QUESTIONS = "questions"
_POLL_SECONDS = 0.001


class WatcherLock:
    """A locked file that says that a watcher runs; the system unlocks it however the process ends."""

    def __init__(self, machine: Path) -> None:
        # Never the name of an earlier lock: a search that still holds that one's file would delete this one's.
        self._file = machine / _FOLDER / f"{os.getpid()}-{os.urandom(8).hex()}"
        self._held = contextlib.ExitStack()

    def acquire(self) -> None:
        """Lock the file, if it can be written."""
        with contextlib.suppress(OSError, VaultBusy):
            make_folder(self._file.parent)
            for _ in range(_TRIES):
                self._held.enter_context(hold_lock(self._file, _SECONDS))
                if self._file.exists():
                    return
                # A search found the new file before it was locked, and deleted it as a killed watcher's.
                self._held.close()

    def release(self) -> None:
        """Unlock and delete the file."""
        self._held.close()
        with contextlib.suppress(OSError):
            self._file.unlink()


def has_watcher(machine: Path) -> bool:
    """Return whether any watcher keeps the index in a machine folder."""
    try:
        files = list((machine / _FOLDER).iterdir())
    except OSError:
        return False
    for file in files:
        try:
            with hold_lock(file, 0):
                file.unlink(missing_ok=True)  # its watcher was killed
        except VaultBusy:
            return True
        except OSError:
            continue
    return False


def is_confirmed(machine: Path, seconds: float) -> bool:
    """Return whether a watcher answers within so many seconds that the index is up to date."""
    if not has_watcher(machine):
        return False
    question = machine / QUESTIONS / f"{os.getpid()}-{get_ident()}-{time.monotonic_ns()}"
    end = time.monotonic() + seconds
    try:
        append_plain(question).close()
    except OSError:
        return False
    while question.exists():
        if time.monotonic() > end:
            try:
                question.unlink()
            except FileNotFoundError:  # answered in the last moment
                break
            return False
        time.sleep(_POLL_SECONDS)
    return True


def prepare_questions(machine: Path) -> None:
    """Make the folder of the questions, before the events of it are observed."""
    with contextlib.suppress(OSError):
        make_folder(machine / QUESTIONS)


def find_question(parts: list[str]) -> str | None:
    """Return the question that the parts of a path name, None for any other file.

    Example:
        >>> find_question([".memory-kb", "questions", "12"]), find_question(["questions", "12"])
        ('12', None)
    """
    return parts[-1] if parts[-3:-1] == [MACHINE, QUESTIONS] else None


def confirm(machine: Path, question: str) -> None:
    """Answer a question: the index holds every change that was made before it."""
    with contextlib.suppress(OSError):
        (machine / QUESTIONS / question).unlink()
