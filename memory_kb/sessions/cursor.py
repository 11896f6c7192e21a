"""Read chats of Cursor: its export to Markdown, and `~/.cursor/projects/<project>/agent-transcripts/*.jsonl`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from memory_kb.sessions.chats import name_session, turns_of
from memory_kb.sessions.transcripts import LineResult, Origins, RawLine, from_person, records_of
from memory_kb.store.events import Event, normal_time, printable_line, text_of

AGENT = "cursor"
SIGN = re.compile(r"_Exported on .{4,60} from Cursor\b")
_DATE = re.compile(r"_Exported on (\d{1,2})/(\d{1,2})/(\d{4}) at (\d\d:\d\d:\d\d)")
_STYLES = {"bold": re.compile(r"\*\*(?P<name>User|Cursor)\*\*(?P<when>)(?P<rest>)")}


def read(lines: Iterable[RawLine]) -> Iterator[LineResult]:
    """Yield the events of a chat, in either form."""
    rest = iter(lines)
    first = next((line for line in rest if line and line.strip()), b"")
    whole = chain([first], rest)
    return _read_transcript(whole) if first.lstrip().startswith(b"{") else _read_export(whole)


def _read_export(lines: Iterable[RawLine]) -> Iterator[LineResult]:
    origins, session, ts = Origins("cu"), None, ""
    for turn in turns_of(lines, _STYLES):
        if turn.role == "preamble":
            ts = _day(turn.text)
            continue
        key = f"{turn.role}\n{turn.text}".encode("utf-8", "replace")
        if session is None:
            session = name_session(turn.text, key)
            yield LineResult(session, Event(ts=ts, type="event", event="start", agent=AGENT, origin="start"))
        made = from_person(turn.text) if turn.role == "user" else [Event(role="assistant", content=turn.text)]
        origin = origins.name(key)
        for number, event in enumerate(made):
            yield LineResult(session, event._replace(ts=ts, agent=AGENT, origin=f"{origin}.{number}"))
    if session is None:
        yield LineResult(problem="no turn such as `**User**` found", line=1)


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
    origins, is_first = Origins("cu"), True
    for line, record in records_of(lines):
        if isinstance(record, LineResult):
            yield record
            continue
        made = list(_events(record))
        if not made:
            yield LineResult()
            continue
        if is_first:
            yield LineResult(None, Event(type="event", event="start", agent=AGENT, origin="start"))
            is_first = False
        origin = origins.name(line)
        for number, event in enumerate(made):
            yield LineResult(None, event._replace(agent=AGENT, origin=f"{origin}.{number}"))


def _events(record: dict[str, object]) -> Iterator[Event]:
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, dict) and block.get("type") == "tool_use":
            args = block.get("input")
            name = printable_line(text_of(block.get("name") or "tool"))
            yield Event(type="tool_call", role="assistant", tool=name, args=args if isinstance(args, dict) else None)
        elif not (text := text_of(block)).strip():
            continue
        elif record.get("role") == "user":
            yield from from_person(text)
        else:
            yield Event(role="assistant", content=text)
