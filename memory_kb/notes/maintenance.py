"""When each part of the maintenance was last done."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from memory_kb.notes import jsonlines
from memory_kb.plainfiles import make_folder

_NAME = "maintenance.jsonl"


class MaintenanceLog:
    """The days of maintenance of one vault, on this machine."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / _NAME

    def last(self) -> dict[str, datetime]:
        """Return when each step was done last; a line that nobody can read counts for nothing."""
        found: dict[str, datetime] = {}
        for line in jsonlines.read(self._file):
            try:
                moment = datetime.fromisoformat(str(line["ts"]))
                found[str(line["step"])] = max(moment, found.get(str(line["step"]), moment))
            except (KeyError, ValueError, TypeError):
                continue
        return found

    def done(self, step: str, now: datetime) -> None:
        """Write down that a step is done.

        Raises:
            OSError: it cannot be written.
        """
        make_folder(self._file.parent)
        jsonlines.append(self._file, [{"ts": now.isoformat(timespec="seconds"), "step": step}])
