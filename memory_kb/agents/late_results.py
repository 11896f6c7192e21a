"""Read the results of tools that an agent writes only to its transcript, not to a hook."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from memory_kb.plainfiles import read_plain
from memory_kb.sessions.codex import read_outcome
from memory_kb.store.events import Event
from memory_kb.text import load_json

#: The end of a transcript that is read, in bytes.
_MOST = 2_000_000


def read_results(transcript: str, calls: Mapping[str, Event]) -> list[Event]:
    """Return what calls gave, in the order of the transcript; a file that cannot be read gives nothing.

    Args:
        transcript: the agent's file of the session, JSON lines.
        calls: the calls that wait for a result, by their ids.
    """
    try:
        with read_plain(Path(transcript)) as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - _MOST))
            lines = stream.read().split(b"\n")
    except OSError:
        return []
    found: dict[str, Event] = {}
    for line in lines:
        if b'_output"' not in line:
            continue
        try:
            item = load_json(line.decode("utf-8", "replace"))["payload"]
            call = calls.get(item["call_id"])
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        if call and call.call_id and "output" in item:
            text, ok = read_outcome(item["output"])
            found[call.call_id] = call._replace(type="tool_result", content=text, ok=ok, seq=0, ts="")
    return list(found.values())
