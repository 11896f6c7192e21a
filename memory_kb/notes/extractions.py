"""`log/extractions.jsonl`: which questions about a session were answered, so that none is paid for twice.

It belongs to this machine: losing it costs the calls again and nothing else, since what was kept
is known by its key.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from memory_kb.plainfiles import make_folder, open_plain, read_plain

_NAME = "extractions.jsonl"


class Mark(NamedTuple):
    """A question that was answered.

    `input` tells what it was about, `seq` the last event of the session then; `step` is `norms`,
    `tasks` or empty; `kept` and `dropped` count learnings.
    """

    session: str
    scope: str
    step: str
    seq: int
    input: str
    time: str
    outcome: str
    kept: int = 0
    dropped: int = 0


class ExtractionLog:
    """The questions that were answered in one vault."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / _NAME

    def done(self) -> frozenset[str]:
        """Return the inputs that were dealt with; a torn line tells of none."""
        found = set()
        with contextlib.suppress(FileNotFoundError), read_plain(self.file) as lines:
            for line in lines:
                with contextlib.suppress(ValueError, TypeError, KeyError):
                    found.add(str(json.loads(line)["input"]))
        return frozenset(found)

    def add(self, marks: Iterable[Mark]) -> None:
        """Note some answers, if that can be written."""
        data = b"".join(json.dumps(mark._asdict(), ensure_ascii=False).encode() + b"\n" for mark in marks)
        if not data:
            return
        with contextlib.suppress(OSError):
            make_folder(self.file.parent)
            descriptor = open_plain(self.file, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            try:
                size = os.lseek(descriptor, 0, os.SEEK_END)
                is_torn = size > 0 and os.lseek(descriptor, -1, os.SEEK_END) >= 0 and os.read(descriptor, 1) != b"\n"
                os.write(descriptor, b"\n" * is_torn + data)
            finally:
                os.close(descriptor)
