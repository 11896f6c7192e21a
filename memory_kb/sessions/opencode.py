"""Read sessions of OpenCode, as `opencode export SESSION > session.json` writes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from memory_kb.injected import is_own_call
from memory_kb.sessions.documents import field_of, open_document
from memory_kb.sessions.transcripts import LineResult, RawLine, from_person, notice, tool_result
from memory_kb.store.events import Event, normal_time, printable_line, text_of

AGENT = "opencode"


def read(lines: Iterable[RawLine]) -> Iterator[LineResult]:
    """Yield the events of a session: its messages, each with parts of several kinds."""
    head, messages = open_document(lines)
    info = field_of(head, "info")
    info = info if isinstance(info, dict) else {}
    session = info["id"] if isinstance(info.get("id"), str) else None
    agent = f"{AGENT}-subagent" if info.get("parentID") else AGENT
    cwd, title = info.get("directory"), info.get("title")
    start = Event(
        ts=_time(info, "created"),
        type="event",
        event="start",
        agent=agent,
        args={"cwd": cwd} if isinstance(cwd, str) else None,
        content=title if isinstance(title, str) else None,
        origin="start",
    )
    for number, message in enumerate(messages):
        if isinstance(message, LineResult):
            yield message
            continue
        if number == 0:
            yield LineResult(session, start)
        made = list(_events(message))
        for event in made:
            role = "agent" if event.role == "user" and agent != AGENT else event.role
            yield LineResult(session, event._replace(agent=agent, role=role))
        if not made:
            yield LineResult(session)


def _events(message: Mapping[str, Any]) -> Iterator[Event]:
    info, parts = message.get("info"), message.get("parts")
    if not isinstance(info, dict) or not isinstance(parts, list):
        return
    for part in parts:
        if not isinstance(part, dict):
            continue
        ts = _time(part, "start") or _time(info, "created")
        name = printable_line(text_of(part.get("id") or info.get("id")))[:80]
        for number, event in enumerate(_part(part, info.get("role"))):
            yield event._replace(ts=event.ts or ts, origin=f"oc:{name}.{number}")


def _part(part: Mapping[str, Any], role: object) -> Iterator[Event]:
    kind, text = part.get("type"), text_of(part.get("text") or "")
    if kind == "text" and text.strip():
        if part.get("synthetic") is True or part.get("ignored") is True:
            yield notice(text)
        elif role == "user":
            yield from from_person(text)
        else:
            yield Event(type="message", role="assistant", content=text)
    elif kind == "reasoning" and text.strip():
        yield Event(type="event", event="thinking", role="assistant", content=text)
    elif kind == "tool":
        yield from _tool(part)


def _tool(part: Mapping[str, Any]) -> Iterator[Event]:
    state = part["state"] if isinstance(part.get("state"), dict) else {}
    tool, call_id = printable_line(text_of(part.get("tool") or "tool")), part.get("callID")
    args = state["input"] if isinstance(state.get("input"), dict) else None
    known: dict[str, Any] = {"tool": tool, "call_id": call_id if isinstance(call_id, str) else None}
    yield Event(type="tool_call", role="assistant", args=args, **known)
    status = state.get("status")
    if status in ("completed", "error"):
        metadata = state.get("metadata")
        code = metadata.get("exit") if isinstance(metadata, dict) else None
        ok = status == "completed" and code in (None, 0)
        made = tool_result(state.get("output" if status == "completed" else "error"), ok=ok, **known)
        yield made._replace(injected="whole") if is_own_call(tool, args) else made


def _time(record: Mapping[str, Any], name: str) -> str:
    times = record.get("time")
    return normal_time(times.get(name)) if isinstance(times, dict) else ""
