"""How sessions ended, by the last lines of their logs."""

from __future__ import annotations

import os
from pathlib import Path

from memory_kb.notes.events import NoEvent
from memory_kb.notes.sessionlog import read_lines

#: The end of a session stands in its last events.
_TAIL = 262_144


def read_outcome(file: Path) -> str | None:
    """Return the outcome that the end of a session names, or None where it names none or goes on."""
    try:
        size = os.path.getsize(file)
        lines = list(read_lines(file, max(0, size - _TAIL)))
    except OSError:
        return None
    for line in reversed(lines):
        try:
            event = line.parse()
        except NoEvent:
            continue
        if event and event.event == "end":
            outcome = (event.args or {}).get("outcome")
            return outcome if isinstance(outcome, str) else None
    return None
