"""Ask a running watcher whether the index is current, so that a search need not scan all files.

A question is an empty file in a folder of its own below the notes. The system reports it after every
change below that folder that was made before it; when the index holds those, the watcher deletes the file.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from memory_kb.index.watcher_lock import has_watcher
from memory_kb.plainfiles import append_plain, make_folder
from memory_kb.vault import MACHINE

#: The folder of the questions, in a machine folder.
QUESTIONS = "questions"
_POLL_SECONDS = 0.001
#: Nobody waits for an answer to a question as old as this.
_OLD_SECONDS = 60.0


def is_confirmed(machine: Path, seconds: float) -> bool:
    """Return whether a watcher answers within so many seconds that the index is up to date."""
    if not has_watcher(machine):
        return False
    question = machine / QUESTIONS / f"{os.getpid()}-{threading.get_ident()}-{time.monotonic_ns()}"
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
    """Make the folder of the questions, and delete those that nobody waits for."""
    with contextlib.suppress(OSError):
        for question in make_folder(machine / QUESTIONS).iterdir():
            if question.lstat().st_mtime < time.time() - _OLD_SECONDS:
                question.unlink()


def find_question(parts: list[str]) -> str | None:
    """Return the question that the parts of a path name, None for any other file.

    Example:
        >>> find_question([".memory-kb", "questions", "12"]), find_question(["questions", "12"])
        ('12', None)
    """
    return parts[-1] if parts[-3:-1] == [MACHINE, QUESTIONS] else None


def confirm(machine: Path, questions: Iterable[str]) -> None:
    """Answer questions: the index holds every change that was made before them."""
    for question in questions:
        with contextlib.suppress(OSError):
            (machine / QUESTIONS / question).unlink()
