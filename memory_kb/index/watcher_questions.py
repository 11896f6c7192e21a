"""How a search asks a watcher whether the index is up to date, so that it need not compare all files.

A search puts an empty file into a folder below the notes. The system announces that file after every earlier change
below the same folder; when the index holds those, the watcher deletes it.
"""

from __future__ import annotations

import os
import time
from _thread import get_ident
from pathlib import Path

from memory_kb.errors import VaultBusy
from memory_kb.regular_files import open_for_appending
from memory_kb.vault import hold_lock

#: Held by a watcher from its first comparison on; the system releases it however the process ends.
WATCHER_LOCK = "watcher.lock"
#: The folder in a machine folder of the questions that searches ask a watcher.
QUESTIONS = "questions"
_POLL_SECONDS = 0.001


def has_watcher(machine: Path) -> bool:
    """Return whether any watcher keeps the index in a machine folder."""
    file = machine / WATCHER_LOCK
    try:
        if file.exists():
            with hold_lock(file, 0.0, is_shared=True):  # so that two who ask do not take each other for a watcher
                pass
    except VaultBusy:
        return True
    except OSError:
        pass
    return False


def is_confirmed(machine: Path, seconds: float) -> bool:
    """Return whether a watcher answers within `seconds` that the index is up to date."""
    if not has_watcher(machine):
        return False
    question = machine / QUESTIONS / f"{os.getpid()}-{get_ident()}-{time.monotonic_ns()}"
    end = time.monotonic() + seconds
    try:
        open_for_appending(question).close()
    except OSError:
        return False
    while question.exists() and time.monotonic() <= end:
        time.sleep(_POLL_SECONDS)
    try:
        question.unlink()
    except FileNotFoundError:  # answered, perhaps in the last moment
        return True
    return False
