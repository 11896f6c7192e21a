"""Read what aider logs: `.aider.chat.history.md`, all sessions of a project in one file.

`#### ` begins a line that the person typed, `> ` one that aider itself printed, `# aider chat started
at` a session; the rest is the model's answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from memory_kb.sessions.transcripts import LineResult, Origins, RawLine, message, notice, numbered, results
from memory_kb.store.events import MAX_TEXT, Event, normal_time

AGENT = "aider"
START = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_EDITED = re.compile(r"(?:Applied edit to|Wrote|Created) (\S.*?)\s*")
_LONGEST = 4 * MAX_TEXT


def read(lines: Iterable[RawLine]) -> Iterator[LineResult]:
    """Yield the events of all sessions; each is called by the moment at which it began."""
    origins, session, ts = Origins("ad"), None, ""
    for kind, text in _blocks(lines):
        if kind == "start":
            ts = normal_time(text)
            session = f"aider-{ts[:19].replace('-', '').replace(':', '')}"
            yield LineResult(session, Event(ts=ts, type="event", event="start", agent=AGENT, origin="start"))
        elif session is not None:
            name = origins.name(f"{session}\n{kind}\n{text}".encode("utf-8", "replace"))
            yield from results(session, numbered(_events(kind, text), name, ts=ts, agent=AGENT))
    if session is None:
        yield LineResult(problem="no line `# aider chat started at ...` found", line=1)


def _blocks(lines: Iterable[RawLine]) -> Iterator[tuple[str, str]]:
    """Yield what belongs together, and whose it is: `start`, `user`, `tool` or `assistant`."""
    fence, kind, text, size = "", "assistant", list[str](), 0
    for raw in lines:
        line = "" if raw is None else raw.decode("utf-8", "replace").rstrip("\r\n")
        start = START.fullmatch(line)
        fenced = _FENCE.match(line)
        if fenced and not fence:
            fence = fenced[1]
        elif fenced and line.strip() == fence:
            fence = ""
        here = "start" if start else "assistant" if fence or fenced else _kind_of(line, kind)
        if here != kind or start:
            yield from _closed(kind, text)
            kind, text, size = here, [], 0
        if start:
            fence = ""
            text = [start[1]]
        elif size < _LONGEST:
            text.append(line[5:] if here == "user" else line[2:] if here == "tool" else line)
            size += len(line)
    yield from _closed(kind, text)


def _kind_of(line: str, before: str) -> str:
    if line.startswith("#### ") or line == "####":
        return "user"
    if line.startswith("> ") or line == ">":
        return "tool"
    return before if not line.strip() and before == "assistant" else "assistant"


def _closed(kind: str, text: list[str]) -> Iterator[tuple[str, str]]:
    joined = "\n".join(text).strip()
    if joined:
        yield kind, joined


def _events(kind: str, text: str) -> Iterator[Event]:
    if kind == "user" and text.startswith(("/", "!")) and "\n" not in text:
        yield notice(text, "command")
        return
    for edited in map(_EDITED.fullmatch, text.split("\n") if kind == "tool" else ()):
        if edited:
            yield Event(type="tool_call", role="assistant", tool="edit", args={"file_path": edited[1]})
    yield from message(kind, text)
