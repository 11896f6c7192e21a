"""Read the results of tools that an agent writes only to its transcript, not to a hook."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memory_kb.plainfiles import read_plain
from memory_kb.sessions.codex import read_outcome
from memory_kb.store.events import Event, text_of
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
        if b'_output"' not in line and b'"item_completed"' not in line:
            continue
        try:
            call_id, text, ok = _read_result(load_json(line.decode("utf-8", "replace"))["payload"])
            call = calls.get(call_id)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue
        if call:
            found[call_id] = call._replace(type="tool_result", content=text, ok=ok, seq=0, ts="")
    return list(found.values())


def _read_result(payload: Mapping[str, Any]) -> tuple[str, str, bool | None]:
    """Return the call that a record is about, what it gave, and whether that was good.

    Where a model calls its tools from a script, the record of a call that is over alone names it.
    """
    item = payload.get("item")
    if item is None:
        return (payload["call_id"], *read_outcome(payload["output"]))
    text = text_of(item.get("aggregated_output", item.get("stdout")))
    return item["id"], text, {"completed": True, "failed": False}.get(item["status"])
