"""The record of what was installed where, one JSON file of a machine folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memory_kb.agents.planning import Trace

_NAME = "installs.json"


class Traces:
    """The traces of a machine folder; one that is lost or damaged is an empty one."""

    def __init__(self, machine: Path) -> None:
        self.file = machine / _NAME

    def read(self) -> dict[str, Trace]:
        """Return what was installed, by file."""
        try:
            found = json.loads(self.file.read_bytes())
            return {str(name): _make(value) for name, value in found.items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return {}

    def write(self, traces: Mapping[str, Trace]) -> None:
        """Replace the record.

        Raises:
            OSError: it cannot be written.
        """
        if not traces:
            self.file.unlink(missing_ok=True)
            return
        part = self.file.with_name(f"{_NAME}.{os.getpid()}.tmp")
        fields = ("after", "before", "spans", "made", "folders", "agents", "put")
        shown = {name: {field: getattr(trace, field) for field in fields} for name, trace in sorted(traces.items())}
        part.write_text(json.dumps(shown, indent=1), encoding="utf-8")
        os.replace(part, self.file)


def _make(value: Mapping[str, Any]) -> Trace:
    return Trace(
        str(value["after"]),
        None if value["before"] is None else str(value["before"]),
        tuple((int(at), int(length)) for at, length in value["spans"]),
        tuple(tuple(map(str, path)) for path in value["made"]),
        int(value["folders"]),
        tuple(map(str, value["agents"])),
        None if value.get("put") is None else tuple(tuple(map(str, path)) for path in value["put"]),
    )
