"""Record what was written into which file of an agent, so that uninstalling can remove it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memory_kb.agents.splicing import Installed
from memory_kb.plainfiles import read_plain
from memory_kb.trust import write_plain

_NAME = "installs.json"


class HookTraces:
    """The traces of a machine folder; one that is lost or damaged is an empty one."""

    def __init__(self, machine: Path, name: str = _NAME) -> None:
        self.file = machine / name

    def read(self) -> dict[str, Installed]:
        """Return what was installed, by file."""
        try:
            with read_plain(self.file) as stream:
                found = json.load(stream)
            return {str(name): _make(value) for name, value in found.items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return {}

    def write(self, traces: Mapping[str, Installed]) -> None:
        """Replace the record.

        Raises:
            OSError: it cannot be written.
        """
        if not traces:
            self.file.unlink(missing_ok=True)
            return
        fields = ("after", "before", "spans", "made", "folders", "agents", "put")
        shown = {name: {field: getattr(trace, field) for field in fields} for name, trace in sorted(traces.items())}
        write_plain(self.file, json.dumps(shown, indent=1).encode(), 0o644)


def _make(value: Mapping[str, Any]) -> Installed:
    return Installed(
        str(value["after"]),
        None if value["before"] is None else str(value["before"]),
        tuple((int(at), int(length)) for at, length in value["spans"]),
        tuple(tuple(map(str, path)) for path in value["made"]),
        int(value["folders"]),
        tuple(map(str, value["agents"])),
        None if value.get("put") is None else tuple(tuple(map(str, path)) for path in value["put"]),
    )
