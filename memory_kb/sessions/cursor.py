"""Read chats of Cursor: its export to Markdown, and `~/.cursor/projects/<project>/agent-transcripts/*.jsonl`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from memory_kb.sessions.chats import Preamble, read_turns, turns_of
from memory_kb.sessions.transcripts import (
    Calls,
    LineResult,
    Origins,
    RawLine,
    message,
    numbered,
    records_of,
    results,
)
from memory_kb.store.events import Event, normal_time, text_of

AGENT = "cursor"
SIGN = re.compile(r"_Exported on .{4,60} from Cursor\b")
_DATE = re.compile(r"_Exported on (\d{1,2})/(\d{1,2})/(\d{4}) at (\d\d:\d\d:\d\d)")
_STYLES = {"bold": re.compile(r"\*\*(?P<name>User|Cursor)\*\*(?P<when>)(?P<rest>)")}


def read(lines: Iterable[RawLine]) -> Iterator[LineResult]:
    """Return the events of a chat, in either form."""
    rest = iter(lines)
    first = next((line for line in rest if line and line.strip()), b"")
    whole = chain([first], rest)
    if first.lstrip().startswith(b"{"):
        return _read_transcript(whole)
    turns = turns_of(whole, _STYLES)
    return read_turns(turns, "cu", lambda text: Preamble(agent=AGENT, ts=_day(text)), wanted="**User**")


def _day(text: str) -> str:
    """Return when a chat was exported, where its date can be read in one way only.

    Example:
        >>> _day("_Exported on 3/28/2026 at 10:44:59 PDT from Cursor (2.6)_"), _day("_Exported on 3/4/2026 at 10:44:59")
        ('2026-03-28T10:44:59.000Z', '')
    """
    found = _DATE.search(text)
    if not found:
        return ""
    one, two = int(found[1]), int(found[2])
    if one <= 12 and two <= 12 and one != two:
        return ""
    month, day = (two, one) if one > 12 else (one, two)
    return normal_time(f"{found[3]}-{month:02}-{day:02}T{found[4]}")


def _read_transcript(lines: Iterable[RawLine]) -> Iterator[LineResult]:
    origins, calls = Origins("cu"), Calls()
    yield LineResult(None, Event(type="event", event="start", agent=AGENT, origin="start"))
    for line, record in records_of(lines):
        if isinstance(record, LineResult):
            yield record
        else:
            made = list(_events(record, calls))
            yield from results(None, numbered(made, origins.name(line) if made else "", agent=AGENT))


def _events(record: Mapping[str, object], calls: Calls) -> Iterator[Event]:
    held = record.get("message")
    content = held.get("content") if isinstance(held, dict) else None
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, dict) and block.get("type") == "tool_use":
            args = block.get("input")
            yield calls.call(block.get("name"), args if isinstance(args, dict) else None)
        else:
            yield from message("user" if record.get("role") == "user" else "assistant", text_of(block))
